/** Statements with functions, LATERAL and recursion in FROM that are refused, each with what the error must name. */
export const refusedRows: readonly (readonly [string, string])[] = [
  ['SELECT n FROM generate_series(1, 100001) n', 'more than 100000 rows'],
  ['SELECT n FROM generate_series(1, 10, 0.00001) n', 'more than 100000 rows'],
  ['SELECT n FROM generate_sries(1, 10) n', 'did you mean "generate_series"?'],
  ["SELECT n FROM generate_series(1, 10, interval '1 day') n", 'a number where a time'],
  ["SELECT t FROM generate_series(now(), now(), interval '1 mon -30 days') t", 'go both ways'],
  ["SELECT t FROM generate_series(now(), now(), interval '0 days') t", 'written out'],
  [
    "SELECT t FROM app::orders o, generate_series(now(), now(), interval '1 day' * o.id) t",
    'written out',
  ],
  ['SELECT n FROM generate_series(1) n', 'of 1 arguments'],
  ['SELECT n FROM unnest(1) n', 'no list'],
  ['SELECT n FROM unnest(ARRAY[1], ARRAY[2]) n', 'unnest of 2 arguments'],
  ["SELECT * FROM pg_ls_dir('/')", 'function pg_ls_dir in FROM'],
  ["SELECT * FROM dblink('x', 'y') AS t(a int)", 'names of columns with types'],
  ["SELECT * FROM dblink('x', 'y') AS t", 'function dblink in FROM'],
  ["SELECT * FROM json_to_recordset('[]') AS t(a int)", 'names of columns with types'],
  ['SELECT * FROM public.unnest(ARRAY[1]) t', 'function public.unnest in FROM'],
  ['SELECT * FROM ROWS FROM (pg_stat_get_activity(1)) x', 'ROWS FROM'],
  ['SELECT * FROM current_date', 'in FROM'],
  ['SELECT * FROM coalesce(1, 2) c', 'in FROM'],
  ['SELECT * FROM generate_series(1, count(*)) n', 'the aggregate count in a function in FROM'],
  ['SELECT e.sku FROM app::orders o, unnest(o.items) e', "write e -> 'sku'"],
  ['SELECT a, b FROM unnest(ARRAY[1]) AS t (a, b)', '2 names for the 1 columns'],
  ['SELECT t FROM unnest(ARRAY[1]) WITH ORDINALITY AS t (a)', 'name t'],
  ['SELECT n FROM generate_series(1, o.id) n, app::orders o', 'name o.id'],
  ['SELECT n FROM app::orders o RIGHT JOIN generate_series(1, o.id) n ON true', 'RIGHT JOIN'],
  ['SELECT 1 FROM app::orders o FULL JOIN LATERAL (SELECT o.id AS x) t ON t.x = o.id', 'FULL JOIN'],
  ['SELECT 1 FROM app::orders o, (SELECT o.id) x', 'name o.id'],
  [
    'SELECT 1 FROM app::customers c, LATERAL (SELECT o.id FROM app::orders o WHERE o.customer = name) t',
    'write o.name or c.name',
  ],
  [
    `SELECT 1 FROM ${Array.from({ length: 65 }, (_, at) => `generate_series(1, 2) g${at}`).join(', ')}`,
    'more than 64 uses',
  ],
  ['WITH RECURSIVE t AS (SELECT n FROM t) SELECT n FROM t', 'without UNION'],
  [
    'WITH RECURSIVE t AS (SELECT n FROM t UNION ALL SELECT 1) SELECT n FROM t',
    'names itself before UNION',
  ],
  ['WITH RECURSIVE t AS (SELECT 1 AS n EXCEPT SELECT n FROM t) SELECT n FROM t', 'without UNION'],
  [
    'WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t LIMIT 5) SELECT n FROM t',
    'ORDER BY or LIMIT inside t',
  ],
  [
    'WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL (SELECT n + 1 FROM t LIMIT 5)) SELECT n FROM t',
    'ORDER BY or LIMIT in the recursive part',
  ],
  [
    'WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT count(*) FROM t) SELECT n FROM t',
    'an aggregate in the recursive part',
  ],
  [
    'WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT a.n FROM t a, t b) SELECT n FROM t',
    'a second use of its own name',
  ],
  [
    'WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n FROM (VALUES (1)) x (n) WHERE n IN (SELECT n FROM t)) SELECT n FROM t',
    'its own name in a sub-query',
  ],
  [
    'WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT x.n FROM (VALUES (1)) x (n) LEFT JOIN t ON true) SELECT n FROM t',
    'outer join',
  ],
  [
    'WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT x.n FROM (SELECT n FROM t) x) SELECT n FROM t',
    'in a sub-query',
  ],
  [
    "WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT 'a' || n FROM t) SELECT n FROM t",
    'a text where a number',
  ],
  [
    'WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n, 1 AS m FROM t) SELECT n FROM t',
    '1 with 2 columns',
  ],
  [
    'WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL (SELECT 1 UNION SELECT n FROM t)) SELECT n FROM t',
    'a set operation in the recursive part',
  ],
  [
    'WITH RECURSIVE t AS (SELECT * FROM app::orders UNION ALL SELECT * FROM t) SELECT * FROM t',
    'whole records',
  ],
  [
    'WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t WHERE n < 9) SEARCH DEPTH FIRST BY n SET o SELECT n FROM t',
    'SEARCH or CYCLE',
  ],
  [
    'WITH RECURSIVE a AS (SELECT n FROM b), b AS (SELECT 1 AS n UNION ALL SELECT n FROM a) SELECT n FROM b',
    'the table b',
  ],
  [
    "WITH RECURSIVE t AS (SELECT 'a' AS s UNION ALL SELECT repeat(s, 20) FROM t) SELECT s FROM t",
    'repeat could give more than 16 MiB',
  ],
  [
    'WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n / 2 FROM t) SELECT n FROM t',
    'whole numbers',
  ],
  [
    `WITH RECURSIVE ${Array.from({ length: 5 }, (_, at) => `t${at} AS (SELECT 1 AS n UNION SELECT n FROM t${at})`).join(', ')} SELECT 1 AS n`,
    'more than 4 tables that name themselves',
  ],
  ['SELECT foo(id) FROM app::orders', 'the function foo, which does not exist here (line'],
  ['SELECT lenght(id) FROM app::orders', 'which does not exist here; did you mean "length"?'],
  ['SELECT o FROM app::orders o', 'o, which is a relation and no value; a field is written o.o'],
  [
    'SELECT (SELECT q FROM (SELECT 1 AS a) q) AS x FROM app::orders o',
    'q, which is a relation and no value',
  ],
  [
    'SELECT (SELECT max(o.id)::int FROM app::items i) AS x FROM app::orders o',
    "max of nothing but an outer query's fields",
  ],
  [
    'SELECT (SELECT max((SELECT i.id FROM app::items i WHERE i.order_id = o.id))) AS x FROM app::orders o',
    "max of nothing but an outer query's fields",
  ],
  ["SELECT (status || 'x')::jsonb FROM app::orders", 'a text that is to become JSON'],
  ["SELECT ('[' || id || ']')::json FROM app::orders", 'a text that is to become JSON'],
  [
    'SELECT lower(status) AS status, count(*) AS n FROM app::orders GROUP BY status',
    'GROUP BY status, which is a column and a field',
  ],
  [
    'SELECT 1 AS i, sum(t.i) AS s FROM (SELECT id AS i FROM app::orders) t GROUP BY i',
    'GROUP BY i, which is a column and a field',
  ],
  [
    'SELECT (SELECT min(i.id) FROM app::items i GROUP BY GROUPING SETS (o.id, i.id) HAVING o.id = i.id) AS m FROM app::orders o',
    "an outer query's field in a grouping set",
  ],
]
