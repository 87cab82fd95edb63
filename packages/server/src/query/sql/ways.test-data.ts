/**
 * Statements that are refused, each with the way that the error names, and what somebody writes who goes that way. It is
 * possible, and gives what PostgreSQL gives if that knows all of its functions.
 */
export const ways: readonly {
  readonly refused: string
  readonly way: string
  readonly by: string
}[] = [
  {
    refused: 'SELECT jsonb_pretty(to_jsonb(status)) AS a FROM app::orders',
    way: 'a::text',
    by: `SELECT ('{"a": [1, 2]}'::jsonb)::text AS a`,
  },
  {
    refused: `SELECT jsonb_path_exists('{"b": 1}', '$.b') AS a`,
    way: `a @> '{"b": 1}', or EXISTS (SELECT 1 FROM jsonb_array_elements(a #> '{b,c}') AS item WHERE …)`,
    by: `SELECT a @> '{"b": {"c": []}}' AS a, EXISTS (SELECT 1 FROM jsonb_array_elements(a #> '{b,c}') AS item WHERE (item ->> 'd')::numeric > 1) AS b FROM (SELECT '{"b": {"c": [{"d": 1}, {"d": 2}]}}'::jsonb AS a) t`,
  },
  {
    refused: "SELECT id FROM app::orders WHERE jsonb_path_match(status, '$.b > 1')",
    way: 'EXISTS (SELECT 1 FROM jsonb_array_elements',
    by: `SELECT EXISTS (SELECT 1 FROM jsonb_array_elements('[{"d": 1}]'::jsonb #> '{}') AS item WHERE item ->> 'd' = '1') AS a`,
  },
  {
    refused: "SELECT id FROM app::orders WHERE status @? '$[*] ? (@.d > 1)'",
    way: 'write a @> ',
    by: `SELECT '[{"d": 1}]'::jsonb @> '[{"d": 1}]' AS a`,
  },
  {
    refused: "SELECT id FROM app::orders WHERE status @@ '$.d > 1'",
    way: 'or EXISTS (SELECT 1',
    by: `SELECT EXISTS (SELECT 1 FROM jsonb_array_elements('[{"d": 1}]'::jsonb) AS item WHERE (item ->> 'd')::numeric > 1) AS a`,
  },
  {
    refused: "SELECT q FROM app::orders o, jsonb_path_query(o.items, '$[*].sku') AS q",
    way: "write jsonb_array_elements(a #> '{b,c}') AS item",
    by: `SELECT item FROM (SELECT '{"b": {"c": [1, 2]}}'::jsonb AS a) t, jsonb_array_elements(a #> '{b,c}') AS item`,
  },
  {
    refused: "SELECT jsonb_path_query_array(items, '$[*].sku') AS a FROM app::orders",
    way: "ARRAY(SELECT item -> 'd' FROM jsonb_array_elements(a #> '{b,c}') AS item WHERE …)",
    by: `SELECT to_jsonb(ARRAY(SELECT item -> 'd' FROM jsonb_array_elements(a #> '{b,c}') AS item WHERE item ->> 'd' <> '2')) AS a FROM (SELECT '{"b": {"c": [{"d": 1}, {"d": 2}]}}'::jsonb AS a) t`,
  },
  {
    refused: "SELECT jsonb_path_query_first(items, '$[*].sku') AS a FROM app::orders",
    way: "a #> '{b,c}', or (ARRAY(SELECT item -> 'd'",
    by: `SELECT (ARRAY(SELECT item -> 'd' FROM jsonb_array_elements(a #> '{b,c}') AS item WHERE item ->> 'd' <> '1'))[1] AS a FROM (SELECT '{"b": {"c": [{"d": 1}, {"d": 2}]}}'::jsonb AS a) t`,
  },
  {
    refused: "SELECT * FROM jsonb_to_recordset('[]') AS i (sku text)",
    way: "jsonb_array_elements(list) AS item, and (item ->> 'name')::text for a column",
    by: `SELECT (item ->> 'sku')::text AS sku FROM jsonb_array_elements('[{"sku": "tea"}]'::jsonb) AS item`,
  },
  {
    refused: "SELECT a FROM JSON_TABLE('[]', '$' COLUMNS (a int PATH '$')) t",
    way: "jsonb_array_elements(a #> '{b,c}') AS item",
    by: `SELECT item ->> 'd' AS d FROM jsonb_array_elements('[{"d": 1}]'::jsonb #> '{}') AS item`,
  },
  {
    refused: "SELECT JSON_VALUE(status, '$.page') AS a FROM app::orders",
    way: "write a ->> 'name', or a ? 'name'",
    by: `SELECT a ->> 'name' AS a, a ? 'name' AS b FROM (SELECT '{"name": 1}'::jsonb AS a) t`,
  },
  {
    refused: "SELECT JSON_OBJECT('a': 1) AS a",
    way: "write jsonb_build_object('name', value)",
    by: "SELECT jsonb_build_object('name', id) AS a FROM app::orders",
  },
  {
    refused: 'SELECT row_to_json(o) AS a FROM app::orders o',
    way: "write jsonb_build_object('b', a.b, 'c', a.c)",
    by: "SELECT jsonb_build_object('id', a.id, 'status', a.status) AS a FROM app::orders a",
  },
  {
    refused: 'SELECT to_jsonb(o) AS a FROM app::orders o',
    way: "an object of fields jsonb_build_object('b', o.b)",
    by: "SELECT jsonb_build_object('id', o.id) AS a FROM app::orders o",
  },
  {
    refused: "SELECT id FROM app::orders WHERE to_tsvector(status) @@ to_tsquery('open')",
    way: "write a ILIKE '%word%' AND a ILIKE '%other%', which a trigram index serves, or a ~* '\\yword\\y' for a whole word",
    by: "SELECT id FROM app::orders WHERE status ILIKE '%op%' AND status ILIKE '%en%' AND status ~* '\\yopen\\y'",
  },
  {
    refused: "SELECT part FROM app::orders, regexp_split_to_table(status, '\\s+') AS part",
    way: "write unnest(string_to_array(regexp_replace(a, '\\s+', ' ', 'g'), ' ')) AS part",
    by: "SELECT part FROM (SELECT 'a  b c' AS a) t, unnest(string_to_array(regexp_replace(a, '\\s+', ' ', 'g'), ' ')) AS part",
  },
  {
    refused: "SELECT regexp_split_to_array(status, '\\s+') AS a FROM app::orders",
    way: "write string_to_array(regexp_replace(a, '\\s+', ' ', 'g'), ' ')",
    by: "SELECT to_jsonb(string_to_array(regexp_replace('a  b', '\\s+', ' ', 'g'), ' ')) AS a",
  },
  {
    refused: "SELECT regexp_count(status, 'e') AS a FROM app::orders",
    way: "write cardinality(string_to_array(a, 'b')) - 1",
    by: "SELECT id, cardinality(string_to_array(status, 'e')) - 1 AS a FROM app::orders",
  },
  {
    refused: 'SELECT id FROM app::orders ORDER BY amount FETCH FIRST 3 ROWS WITH TIES',
    way: 'write rank() OVER (ORDER BY …) AS place in a sub-query, and place <= 3',
    by: 'SELECT id FROM (SELECT id, rank() OVER (ORDER BY amount) AS place FROM app::orders) t WHERE place <= 3',
  },
  {
    refused: 'SELECT id FROM app::orders TABLESAMPLE BERNOULLI (10)',
    way: "write ORDER BY md5(concat(id, 'seed')) LIMIT 100",
    by: "SELECT id FROM app::orders ORDER BY md5(concat(id, 'seed')) LIMIT 10",
  },
  {
    refused:
      'SELECT percentile_cont(ARRAY[0.25, 0.5]) WITHIN GROUP (ORDER BY amount) AS a FROM app::orders',
    way: 'of several write one call for each',
    by: 'SELECT percentile_cont(0.25) WITHIN GROUP (ORDER BY amount) AS a, percentile_cont(0.5) WITHIN GROUP (ORDER BY amount) AS b FROM app::orders',
  },
  {
    refused: "SELECT time_bucket(interval '1 day', at) AS a FROM app::orders",
    way: "write date_bin(interval '15 minutes', a, timestamp '2000-01-01')",
    by: "SELECT date_bin(interval '15 minutes', at, timestamp '2000-01-01') AS a, count(*) AS n FROM app::orders GROUP BY 1",
  },
  {
    refused: 'SELECT customer, arg_max(id, amount) AS a FROM app::orders GROUP BY customer',
    way: 'write first(a ORDER BY b DESC)',
    by: 'SELECT customer, first(id ORDER BY amount DESC) AS a FROM app::orders GROUP BY customer',
  },
  {
    refused: 'SELECT quantile_cont(amount, 0.5) AS a FROM app::orders',
    way: 'write percentile_cont(0.5) WITHIN GROUP (ORDER BY a)',
    by: 'SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY amount) AS a FROM app::orders',
  },
  {
    refused: 'SELECT quantile(0.9)(amount) AS a FROM app::orders',
    way: 'write percentile_cont(0.5) WITHIN GROUP (ORDER BY a)',
    by: 'SELECT percentile_cont(0.9) WITHIN GROUP (ORDER BY amount) AS a FROM app::orders',
  },
  {
    refused: "SELECT id FROM app::orders WHERE list_contains(tags, 'new')",
    way: 'write includes(list, value)',
    by: `SELECT includes('["new"]'::jsonb, 'new') AS a`,
  },
  {
    refused: 'SELECT dayname(at) AS a, toYYYYMM(at) AS b FROM app::orders',
    way: "write to_char(a, 'FMDay')",
    by: "SELECT to_char(at, 'FMDay') AS a, to_char(at, 'YYYYMM') AS b FROM app::orders",
  },
  {
    refused: 'SELECT make_timestamp(2024, 1, 1, 5, 0, 0) AS a',
    way: 'write make_date(y, m, d)::timestamp + make_interval(hours => h)',
    by: 'SELECT make_date(2024, 1, 1)::timestamp + make_interval(hours => 5) AS a',
  },
  {
    refused: "SELECT to_number(status, '999') AS a FROM app::orders",
    way: "write replace(a, ',', '')::numeric",
    by: "SELECT replace('1,234.5', ',', '')::numeric AS a",
  },
  {
    refused: 'SELECT amount::double AS a FROM app::orders',
    way: 'write numeric',
    by: 'SELECT amount::numeric AS a FROM app::orders',
  },
  {
    refused: 'SELECT id::string AS a FROM app::orders',
    way: 'write text',
    by: 'SELECT id::text AS a FROM app::orders',
  },
  {
    refused: 'SELECT status, count(*) AS n FROM app::orders GROUP BY ALL',
    way: 'write the numbers of the columns, GROUP BY 1, 2',
    by: 'SELECT status, count(*) AS n FROM app::orders GROUP BY 1',
  },
  {
    refused: 'SELECT status, id FROM app::orders ORDER BY ALL',
    way: 'write the numbers of the columns, ORDER BY 1, 2',
    by: 'SELECT status, id FROM app::orders ORDER BY 1, 2',
  },
  {
    refused: 'SELECT * EXCLUDE (id) FROM app::orders',
    way: 'write the names of the columns that you want',
    by: 'SELECT status, amount FROM app::orders',
  },
  {
    refused: 'SELECT * FROM app::orders ORDER BY id LIMIT 2 BY customer',
    way: 'row_number() OVER (…) AS n …) t WHERE n = 1',
    by: 'SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY customer ORDER BY id) AS n FROM app::orders) t WHERE n <= 2',
  },
  {
    refused: 'PIVOT app::orders ON status USING count(*)',
    way: "write count(*) FILTER (WHERE a = 'x') AS x for each column",
    by: "SELECT customer, count(*) FILTER (WHERE status = 'open') AS open FROM app::orders GROUP BY customer",
  },
  {
    refused: 'SELECT o.id FROM app::orders o ASOF JOIN app::items i ON o.id >= i.id',
    way: 'write LEFT JOIN LATERAL (SELECT … WHERE b.at <= a.at ORDER BY b.at DESC LIMIT 1) b ON true',
    by: 'SELECT a.id, b.id AS b FROM app::orders a LEFT JOIN LATERAL (SELECT i.id FROM app::items i WHERE i.id <= a.id ORDER BY i.id DESC LIMIT 1) b ON true',
  },
  {
    refused: 'SELECT id, lag(amount) IGNORE NULLS OVER (ORDER BY id) AS a FROM app::orders',
    way: 'number the values by count(a) OVER (ORDER BY b) AS n in a sub-query, and write max(a) OVER (PARTITION BY n)',
    by: 'SELECT id, max(amount) OVER (PARTITION BY n) AS a FROM (SELECT id, amount, count(amount) OVER (ORDER BY id) AS n FROM app::orders) t',
  },
  {
    refused: 'SELECT at FROM app::orders ORDER BY at WITH FILL',
    way: 'write generate_series(…) AS n LEFT JOIN … ON …',
    by: 'SELECT n, count(o.id) AS orders FROM generate_series(1, 50) AS n LEFT JOIN app::orders o ON o.id = n GROUP BY n',
  },
  {
    refused: "SELECT id FROM app::orders WHERE status RLIKE '^o'",
    way: "write a ~ 'pattern'",
    by: "SELECT id FROM app::orders WHERE status ~ '^o'",
  },
  {
    refused: 'SELECT id FROM app::orders WHERE id IN [1, 2]',
    way: 'a list is written ARRAY[1, 2]',
    by: 'SELECT id FROM app::orders WHERE id = ANY (ARRAY[1, 2])',
  },
  {
    refused: 'SELECT id FROM app::orders FORMAT JSON',
    way: 'leave it out: the answer is JSON',
    by: 'SELECT id FROM app::orders',
  },
  {
    refused: 'SELECT at + INTERVAL 15 minute AS a FROM app::orders',
    way: "write interval '15 minutes'",
    by: "SELECT at + interval '15 minutes' AS a FROM app::orders",
  },
  {
    refused: 'SELECT array_agg(id ORDER BY at LIMIT 1) AS a FROM app::orders',
    way: 'write (array_agg(a ORDER BY b))[1]',
    by: 'SELECT (array_agg(id ORDER BY at, id))[1] AS a FROM app::orders',
  },
  {
    refused: 'SELECT sin(n) AS a FROM (SELECT unnest(ARRAY[1])) t',
    way: 'write FROM …, unnest(list) AS item',
    by: 'SELECT item FROM unnest(ARRAY[1, 2]) AS item',
  },
]
