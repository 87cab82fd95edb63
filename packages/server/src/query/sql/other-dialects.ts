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
  ['group_concat', "string_agg(a, ',')"],
  ['listagg', "string_agg(a, ',')"],
  ['grouparray', 'array_agg(a)'],
  ['countif', 'count(*) FILTER (WHERE …)'],
  ['sumif', 'sum(a) FILTER (WHERE …)'],
  ['avgif', 'avg(a) FILTER (WHERE …)'],
  ['uniq', 'count(DISTINCT a)'],
  ['uniqexact', 'count(DISTINCT a)'],
  ['quantile', 'percentile_cont(0.5) WITHIN GROUP (ORDER BY a)'],
  ['argmax', 'first(a ORDER BY b DESC)'],
  ['argmin', 'first(a ORDER BY b)'],
  ['datediff', 'a::date - b::date, or extract(epoch FROM a - b)'],
  ['date_diff', 'a::date - b::date, or extract(epoch FROM a - b)'],
  ['dateadd', "a + interval '1 day'"],
  ['date_add', "a + interval '1 day'"],
  ['date_sub', "a - interval '1 day'"],
  ['getdate', 'now()'],
  ['sysdate', 'now()'],
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
  ['json_extract_path_text', "a #>> '{b,c}'"],
  ['json_value', "a ->> 'b'"],
  ['regexp_like', "a ~ 'pattern'"],
  ['regexp_substr', "(regexp_match(a, 'pattern'))[1]"],
  ['encode', 'sha256(a) or md5(a), which give hexadecimal digits'],
  ['pow', 'power(a, b)'],
  ['if', 'CASE WHEN … THEN … ELSE … END'],
  ['iif', 'CASE WHEN … THEN … ELSE … END'],
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
  ['jsonb_path_exists', `a #> '{b,c}' IS NOT NULL, or a @> '{"b": 1}'`],
  ['jsonb_path_match', `a @> '{"b": 1}', or a comparison of a #>> '{b,c}'`],
  ['jsonb_path_query', "FROM …, jsonb_array_elements(a #> '{b,c}') AS item"],
  ['jsonb_path_query_array', "ARRAY(SELECT … FROM jsonb_array_elements(a #> '{b,c}') AS item)"],
  ['jsonb_path_query_first', "a #> '{b,c}'"],
  ['overlaps', 'a < d AND c < b'],
])

/** Mistakes of people who know other dialects, by what stands where the parser stops, with the way to write it. */
const otherSyntax: readonly (readonly [RegExp, string])[] = [
  [/^`/, 'a name is written "name"'],
  [/^\?/, 'a parameter is written $1, with a list in params'],
  [/^QUALIFY\b/i, 'write SELECT … FROM (SELECT …, row_number() OVER (…) AS n …) t WHERE n = 1'],
]

/** Returns the way to write what stands around the place where the parser stopped. */
export function findOtherWay(sql: string, position: number): string | undefined {
  const here = sql.slice(position, position + 20)
  const before = sql.slice(Math.max(0, position - 20), position)
  const [, way] = otherSyntax.find(([form]) => form.test(here)) ?? []
  if (way !== undefined) return way
  if (/\?\s*$/.test(before)) return otherSyntax[1]?.[1]
  if (/`\w*`?\s*$/.test(before)) return otherSyntax[0]?.[1]
  if (/\bTOP\s*$/i.test(before)) return 'write LIMIT behind ORDER BY'
  if (/\bQUALIFY\s*$/i.test(before)) return otherSyntax[2]?.[1]
  return undefined
}
