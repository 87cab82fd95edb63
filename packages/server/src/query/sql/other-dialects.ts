/** The elements below a path that a condition chooses, and whether there is one. */
const elements = "ARRAY(SELECT item -> 'd' FROM jsonb_array_elements(a #> '{b,c}') AS item WHERE …)"
const found = `a @> '{"b": 1}', or EXISTS (SELECT 1 FROM jsonb_array_elements(a #> '{b,c}') AS item WHERE …)`
const bucket = "date_bin(interval '15 minutes', a, timestamp '2000-01-01')"
const words = "string_to_array(regexp_replace(a, '\\s+', ' ', 'g'), ' ')"
const search =
  "a ILIKE '%word%' AND a ILIKE '%other%', which a trigram index serves, or a ~* '\\yword\\y' for a whole word"

/** Functions of other dialects and of PostgreSQL that are not here, with the way to write them. */
export const otherFunctions: ReadonlyMap<string, string> = new Map([
  ['ifnull', 'coalesce(a, b)'],
  ['nvl', 'coalesce(a, b)'],
  ['isnull', 'a IS NULL'],
  ['len', 'length(a)'],
  ['ucase', 'upper(a)'],
  ['lcase', 'lower(a)'],
  ['instr', 'strpos(text, part)'],
  ['charindex', 'strpos(text, part)'],
  ['substring_index', 'split_part(text, delimiter, n)'],
  ['arg_max', 'first(a ORDER BY b DESC)'],
  ['arg_min', 'first(a ORDER BY b)'],
  ['max_by', 'first(a ORDER BY b DESC)'],
  ['min_by', 'first(a ORDER BY b)'],
  ['anylast', 'first(a ORDER BY b DESC)'],
  ['list', 'array_agg(a)'],
  ['groupuniqarray', 'array_agg(DISTINCT a)'],
  ['group_concat', "string_agg(a, ',')"],
  ['listagg', "string_agg(a, ',')"],
  ['grouparray', 'array_agg(a)'],
  ['countif', 'count(*) FILTER (WHERE …)'],
  ['sumif', 'sum(a) FILTER (WHERE …)'],
  ['avgif', 'avg(a) FILTER (WHERE …)'],
  ['uniq', 'count(DISTINCT a)'],
  ['uniqexact', 'count(DISTINCT a)'],
  ...['quantile', 'quantile_cont', 'quantiles', 'approx_quantile', 'approx_quantiles'].map(
    (name) => [name, 'percentile_cont(0.5) WITHIN GROUP (ORDER BY a)'] as const,
  ),
  ['quantile_disc', 'percentile_disc(0.5) WITHIN GROUP (ORDER BY a)'],
  ['argmax', 'first(a ORDER BY b DESC)'],
  ['argmin', 'first(a ORDER BY b)'],
  ['datediff', 'a::date - b::date, or extract(epoch FROM a - b)'],
  ['date_diff', 'a::date - b::date, or extract(epoch FROM a - b)'],
  ['dateadd', "a + interval '1 day'"],
  ['date_add', "a + interval '1 day'"],
  ['date_sub', "a - interval '1 day'"],
  ['getdate', 'now()'],
  ['sysdate', 'now()'],
  ['epoch', 'extract(epoch FROM a)'],
  ['tounixtimestamp', 'extract(epoch FROM a)'],
  ['time_bucket', bucket],
  ['tostartofinterval', bucket],
  ['timestamp_trunc', "date_trunc('day', a)"],
  ['datetime_trunc', "date_trunc('day', a)"],
  ['tostartofminute', "date_trunc('minute', a)"],
  ['tostartofweek', "date_trunc('week', a)"],
  ['tomonday', "date_trunc('week', a)"],
  ['tostartofyear', "date_trunc('year', a)"],
  ['toyyyymm', "to_char(a, 'YYYYMM')"],
  ['dayname', "to_char(a, 'FMDay')"],
  ['monthname', "to_char(a, 'FMMonth')"],
  ['formatdatetime', "to_char(a, 'YYYY-MM-DD')"],
  ['make_timestamp', 'make_date(y, m, d)::timestamp + make_interval(hours => h)'],
  ['todate', 'a::date'],
  ['todatetime', 'a::timestamp'],
  ['tostring', 'a::text'],
  ['toint32', 'a::int'],
  ['toint64', 'a::bigint'],
  ['tofloat64', 'a::numeric'],
  ['to_number', "replace(a, ',', '')::numeric"],
  ['convert', 'a::text'],
  ['try_cast', 'a::numeric, which is NULL where it cannot be cast'],
  ['safe_cast', 'a::numeric, which is NULL where it cannot be cast'],
  ['safe_divide', 'a / b, which is NULL where b is 0'],
  ['year', 'extract(year FROM a)'],
  ['month', 'extract(month FROM a)'],
  ['day', 'extract(day FROM a)'],
  ['hour', 'extract(hour FROM a)'],
  ['date_format', "to_char(a, 'YYYY-MM-DD')"],
  ['strftime', "to_char(a, 'YYYY-MM-DD')"],
  ['from_unixtime', 'to_timestamp(a)'],
  ['unix_timestamp', 'extract(epoch FROM a)'],
  ['tostartofhour', "date_trunc('hour', a)"],
  ['tostartofday', "date_trunc('day', a)"],
  ['tostartofmonth', "date_trunc('month', a)"],
  ['array_length', 'cardinality(a)'],
  ['list_contains', 'includes(list, value)'],
  ['array_contains', 'includes(list, value)'],
  ['has', 'includes(list, value)'],
  ['arrayjoin', 'FROM …, unnest(list) AS item'],
  ['string_split', "string_to_array(a, ' ')"],
  ['splitbychar', "string_to_array(a, ' ')"],
  ['string_to_table', "FROM …, unnest(string_to_array(a, ' ')) AS part"],
  ['array_append', 'a || b'],
  ['array_prepend', 'a || b'],
  ['array_cat', 'a || b'],
  ['array_position', 'includes(to_jsonb(a), b)'],
  [
    'random',
    "md5(concat(id, 'seed')) to choose by, because the same request must give the same answer",
  ],
  [
    'gen_random_uuid',
    "md5(concat(id, 'seed')), because the same request must give the same answer",
  ],
  [
    'uuid_generate_v4',
    "md5(concat(id, 'seed')), because the same request must give the same answer",
  ],
  ['setseed', 'md5(concat(id, seed)) to choose by'],
  ['json_extract', "a #> '{b,c}'"],
  ['json_extract_string', "a #>> '{b,c}'"],
  ['jsonextractstring', "a #>> '{b,c}'"],
  ['jsonextractint', "(a ->> 'b')::int"],
  ['jsonextractfloat', "(a ->> 'b')::numeric"],
  ['row_to_json', "jsonb_build_object('b', a.b, 'c', a.c)"],
  ['json_extract_path_text', "a #>> '{b,c}'"],
  ['json_value', "a ->> 'b'"],
  ['regexp_like', "a ~ 'pattern'"],
  ['regexp_substr', "(regexp_match(a, 'pattern'))[1]"],
  ['regexp_matches', "regexp_match(a, 'pattern'), which finds the first"],
  ['regexp_count', "cardinality(string_to_array(a, 'b')) - 1, which counts a text"],
  ['regexp_split_to_array', words],
  ['regexp_split_to_table', `FROM …, unnest(${words}) AS part`],
  ...[
    'to_tsvector',
    'to_tsquery',
    'plainto_tsquery',
    'phraseto_tsquery',
    'websearch_to_tsquery',
  ].map((name) => [name, search] as const),
  ...['similarity', 'word_similarity', 'levenshtein', 'soundex'].map(
    (name) => [name, search] as const,
  ),
  ['ts_rank', search],
  ['ts_headline', search],
  ['encode', 'sha256(a) or md5(a), which give hexadecimal digits'],
  ['pow', 'power(a, b)'],
  ['if', 'CASE WHEN … THEN … ELSE … END'],
  ['iif', 'CASE WHEN … THEN … ELSE … END'],
  ['multiif', 'CASE WHEN … THEN … ELSE … END'],
  ['decode', 'CASE a WHEN … THEN … END'],
  ['unnest', 'FROM …, unnest(list) AS item'],
  ['generate_series', 'FROM generate_series(…) AS n'],
  ['jsonb_array_elements', 'FROM …, jsonb_array_elements(list) AS item'],
  ['jsonb_array_elements_text', 'FROM …, jsonb_array_elements_text(list) AS item'],
  ['json_array_elements', 'FROM …, jsonb_array_elements(list) AS item'],
  ['json_array_elements_text', 'FROM …, jsonb_array_elements_text(list) AS item'],
  ['jsonb_object_keys', 'FROM …, jsonb_object_keys(object) AS key'],
  ['jsonb_each', 'FROM …, jsonb_each(object) AS member'],
  ['jsonb_each_text', 'FROM …, jsonb_each_text(object) AS member'],
  ['jsonb_pretty', 'a::text, the same JSON in one line'],
  ['jsonb_path_exists', found],
  ['jsonb_path_match', found],
  ['jsonb_path_query', "FROM …, jsonb_array_elements(a #> '{b,c}') AS item"],
  ['jsonb_path_query_array', elements],
  ['jsonb_path_query_first', `a #> '{b,c}', or (${elements})[1]`],
  ['overlaps', 'a < d AND c < b'],
])

/** Functions in FROM that are not here, with the way to write them. */
export const otherRowFunctions: ReadonlyMap<string, string> = new Map([
  ['jsonb_path_query', "jsonb_array_elements(a #> '{b,c}') AS item"],
  ['regexp_split_to_table', `unnest(${words}) AS part`],
  ['string_to_table', "unnest(string_to_array(a, ' ')) AS part"],
  ['range', 'generate_series(1, 10) AS n'],
  ['explode', 'unnest(list) AS item'],
])

/** Operators of other dialects and of PostgreSQL that are not here, with the way to write them. */
export const otherOperators: ReadonlyMap<string, string> = new Map([
  ['==', 'write ='],
  ['&&', "write AND, or a ?| ARRAY['b', 'c'] for lists of texts"],
  ['^@', 'write starts_with(a, b)'],
  ['|', 'write OR, or || for texts'],
  ['&', 'write mod(div(a, 4), 2) = 1 for the bit of 4, or AND'],
  ['<<', 'write a * power(2, n)'],
  ['>>', 'write div(a, power(2, n))'],
  ['@?', `write ${found}`],
  ['@@', `write ${found}; for words in a text ${search}`],
])

/** Aggregates that PostgreSQL also has WITHIN GROUP, for the place of a value among others; n is the value. */
export const otherWithinGroup: ReadonlyMap<string, string> = new Map([
  ['rank', 'count(*) FILTER (WHERE a < n) + 1'],
  ['dense_rank', 'count(DISTINCT a) FILTER (WHERE a < n) + 1'],
  ['percent_rank', 'avg(CASE WHEN a < n THEN 1 ELSE 0 END)'],
  ['cume_dist', '(count(*) FILTER (WHERE a <= n) + 1) / (count(*) + 1.0)'],
])

/** Types of other dialects, with those to write. */
export const otherTypes: ReadonlyMap<string, string> = new Map([
  ['double', 'numeric'],
  ['float64', 'numeric'],
  ['number', 'numeric'],
  ['int64', 'bigint'],
  ['string', 'text'],
  ['uuid', 'text'],
  ['datetime', 'timestamp'],
])

const any = /^/
const name = 'a name is written "name"'
const parameter = 'a parameter is written $1, with a list in params'
const chosen = 'write SELECT … FROM (SELECT …, row_number() OVER (…) AS n …) t WHERE n = 1'
const columns = 'write the names of the columns that you want'
const quantiles = 'write percentile_cont(0.5) WITHIN GROUP (ORDER BY a)'
const filled =
  'number the values by count(a) OVER (ORDER BY b) AS n in a sub-query, and write max(a) OVER (PARTITION BY n)'

/**
 * Mistakes of people who know other dialects, by what stands before the place where the parser stops and there, with
 * the way to write it.
 */
const otherSyntax: readonly (readonly [before: RegExp, here: RegExp, way: string])[] = [
  [any, /^`/, name],
  [/`\w*`?\s*$/, any, name],
  [any, /^\?/, parameter],
  [/\?\s*$/, any, parameter],
  [any, /^QUALIFY\b/i, chosen],
  [/\bQUALIFY\s*$/i, any, chosen],
  [/\bLIMIT\s+\d+\s*$/i, /^BY\b/i, chosen],
  [/\bTOP\s*$/i, any, 'write LIMIT behind ORDER BY'],
  [/\bGROUP\s+BY\s+ALL\s*$/i, any, 'write the numbers of the columns, GROUP BY 1, 2'],
  [/\bORDER\s+BY\s*$/i, /^ALL\b/i, 'write the numbers of the columns, ORDER BY 1, 2'],
  [/\*\s*$/, /^EXCLUDE\b/i, columns],
  [/\*\s*EXCEPT\s*\(\s*$/i, any, columns],
  [/\*\s*$/, /^REPLACE\b/i, columns],
  [any, /^PIVOT\b/i, "write count(*) FILTER (WHERE a = 'x') AS x for each column"],
  [
    any,
    /^ASOF\b/i,
    'write LEFT JOIN LATERAL (SELECT … WHERE b.at <= a.at ORDER BY b.at DESC LIMIT 1) b ON true',
  ],
  [/\bquantiles?\w*\([^()]*\)\s*$/i, /^\(/, quantiles],
  [any, /^WITH\s+FILL\b/i, 'write generate_series(…) AS n LEFT JOIN … ON …'],
  [any, /^(RLIKE|REGEXP)\b/i, "write a ~ 'pattern'"],
  [any, /^GLOB\b/i, "write a LIKE 'text%'"],
  [/\bIGNORE\s*$/i, /^NULLS\b/i, filled],
  [any, /^IGNORE\s+NULLS\b/i, filled],
  [any, /^\[/, 'a list is written ARRAY[1, 2], a name "name"'],
  [any, /^FORMAT\b/i, 'leave it out: the answer is JSON'],
  [/\bPREWHERE\s*$/i, any, 'write WHERE'],
  [/\bINTERVAL\s*$/i, /^\d/, "write interval '15 minutes'"],
  [any, /^LIMIT\b/i, 'write (array_agg(a ORDER BY b))[1], or LIMIT at the end of a SELECT'],
]

/** Returns the way to write what stands around the place where the parser stopped. */
export function findOtherWay(sql: string, position: number): string | undefined {
  const here = sql.slice(position, position + 20)
  const text = sql.slice(Math.max(0, position - 40), position)
  const found = otherSyntax.find(([before, form]) => before.test(text) && form.test(here))
  return found?.[2]
}
