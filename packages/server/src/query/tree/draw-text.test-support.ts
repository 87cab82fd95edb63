import fc from 'fast-check'

const leaves = [
  'a',
  'b',
  'c',
  'list::text',
  'list ->> 2',
  'm::text',
  "m ->> 'p'",
  "m ->> 'q'",
  'm.q::text',
  "m -> 'q' ->> 'r'",
  "m #>> '{q,s,0}'",
  "'ä'",
  "''",
  "'x-y'",
  "'ɐɐ'",
  `'${'\u0001'.repeat(50)}'`,
  `'${'\\"'.repeat(25)}'`,
  `'[1e-20,{"a":"\\u0001"},1E30]'::jsonb::text`,
]

/** Signs that JSON writes a control character by, all of which become control characters again. */
const again = ['"', '\\', 'u', '0', '1'].reduce(
  (all, sign) => `replace(${all}, '${sign}', '\u0001')`,
  'jsonb_build_array($1)::text',
)

/** Texts of other texts `$1`, `$2`, of a number `#1`, and of one row of the collection `@`; most are longer than these. */
const templates = [
  'concat($1)',
  'concat($1, $2, $3)',
  'concat_ws($1, $2)',
  'concat_ws($1, $2, $3)',
  '($1 || $2)',
  'replace($1, $2, $3)',
  "replace($1, '\"', $2)",
  'translate($1, $2, $3)',
  "translate($1, '\u0001\\x', 'äx\u0002')",
  'lpad($1, least(400, #1), $2)',
  'left($1, #1)',
  'substr($1, #1, 40)',
  'split_part($1, $2, #1)',
  'overlay($1 placing $2 from 2)',
  'repeat($1, 3)',
  'coalesce($1, $2)',
  'CASE WHEN n > #1 THEN $1 ELSE $2 END',
  'upper(reverse($1))',
  'initcap(lower($1))',
  "replace(upper($1), 'ⱯⱯ', 'ɐɐɐ')",
  'quote_literal($1)',
  "format('%L-%12s%%%1$s', $1, $2)",
  "regexp_replace($1, '(.)|$', $2 || '\\1\\1', 'g')",
  "to_jsonb(regexp_match($1, '((.*).*)'))::text",
  'to_jsonb(string_to_array($1, NULL))::text',
  "to_jsonb(string_to_array($1, 'x', ''))::text",
  '(SELECT array_to_string(string_to_array(t.x, NULL), t.y) FROM (SELECT $1 AS x, $2 AS y @) AS t)',
  'to_jsonb($1)::text',
  again,
  'jsonb_build_array($1)::text',
  'jsonb_build_object($1, $2)::text',
  '(jsonb_build_object($1, $2) -> $1)::text',
  '(to_jsonb($1) || to_jsonb($2))::text',
  '(jsonb_build_array(jsonb_build_array($1)) ->> 0)',
  "(jsonb_build_object('k', jsonb_build_array($1)) ->> 'k')",
  "(jsonb_build_object('k', jsonb_build_object($1, $2)) #>> '{k}')",
  "jsonb_set(jsonb_build_object('k', $1), '{m}', to_jsonb($2))::text",
  "(jsonb_build_array($1, 'x') - 'x')::text",
  "(jsonb_build_object('k', $1, 'l', 1) #- '{l}')::text",
  'to_jsonb(ARRAY[($1)::text] || ($2)::text)::text',
  '(ARRAY[($1)::text, ($2)::text])[2]',
  'CAST(#1 AS text)',
  'max($1) OVER ()',
  'first_value($1) OVER ()',
  '(SELECT $1 @)',
  ...[
    'jsonb_agg(t.x)::text',
    'jsonb_object_agg(t.x, t.x)::text',
    "string_agg(concat(t.x, t.x), '')",
    'min(t.x)',
    'any_value(t.x)',
    'to_jsonb(array_agg(t.x))::text',
    'jsonb_agg(t.x) OVER ()::text',
  ].map((gathered) => `(SELECT ${gathered} FROM (SELECT $1 AS x @) AS t)`),
  "(SELECT concat(t.x ->> 'k', t.x ->> 'l', t.x -> 'k' ->> 'p') FROM (SELECT jsonb_build_object('k', m, 'l', $1) AS x @) AS t)",
  '(SELECT concat(t.x, t.y, t.z, t.x) FROM ((SELECT $1 AS x, b AS y, one.a AS z @) UNION ALL (SELECT $2, c, one.b @)) AS t LIMIT 1 OFFSET 1)',
  '(SELECT concat(t.x, t.y, t.x) FROM (SELECT $1 AS x, $2 AS y @) AS t)',
  '(SELECT concat(t.key, t.value) FROM jsonb_each_text(jsonb_build_object($1, $2)) AS t LIMIT 1)',
  '(SELECT t.key || t.value::text FROM jsonb_each(jsonb_build_object($1, $2)) AS t LIMIT 1)',
  '(SELECT t.k FROM jsonb_object_keys(jsonb_build_object($1, 1)) AS t(k) LIMIT 1)',
  '(SELECT t.v FROM jsonb_array_elements_text(jsonb_build_array(1, jsonb_build_array($1))) AS t(v) LIMIT 1 OFFSET 1)',
  '(SELECT t.v FROM jsonb_array_elements_text(jsonb_build_array(jsonb_build_object($1, $2))) AS t(v))',
  "(SELECT t.value FROM jsonb_each_text(jsonb_build_object('k', jsonb_build_array($1))) AS t)",
  '(SELECT t.v FROM unnest(ARRAY[$1, $2]) AS t(v) LIMIT 1 OFFSET 1)',
  '(WITH t AS (SELECT $1 AS x, b @) SELECT concat(t.x, u.b, u.x, t.b) FROM t, t AS u LIMIT 1)',
  '(WITH t AS (SELECT a, c @), u AS (SELECT a, c @) SELECT t.a || u.c FROM t, u LIMIT 1)',
  '(SELECT t.x FROM (SELECT $1 AS x @) AS t UNION SELECT $2 FROM app::one ORDER BY 1 LIMIT 1)',
]

/**
 * Draws SQL of a text of any nesting over the fields of `app::one`, which has so many rows. An aggregate gathers one
 * value, as that is how the estimate counts it.
 */
export function drawText(rows: number): fc.Arbitrary<string> {
  const row = fc.nat(rows - 1).map((at) => `FROM app::one LIMIT 1 OFFSET ${at}`)
  return fc.letrec<{ text: string; number: string }>((tie) => ({
    number: fc.oneof(
      { maxDepth: 3 },
      fc.constantFrom('1', '3', '-2', '40', 'n'),
      tie('text').map((of) => `length(${of})`),
      tie('number').map((of) => `(${of}) * (${of})`),
    ),
    text: fc.oneof(
      { maxDepth: 5 },
      fc.constantFrom(...leaves),
      ...templates.map((template) => {
        const parts = template.split(/(\$\d|#\d|@)/)
        const places = [...new Set(parts.filter((_, at) => at % 2 === 1))]
        const values = places.map((place) =>
          place === '@' ? row : tie(place.startsWith('$') ? 'text' : 'number'),
        )
        return fc
          .tuple(...values)
          .map((given) => parts.map((part) => given[places.indexOf(part)] ?? part).join(''))
      }),
    ),
  })).text
}
