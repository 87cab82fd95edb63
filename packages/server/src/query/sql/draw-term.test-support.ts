import fc from 'fast-check'

/** Random terms over the orders of orders.test-data.ts, which `o` stands for. */
export type Text = fc.Arbitrary<string>

export const one = (...list: readonly string[]): Text => fc.constantFrom(...list)
/** Puts the texts in the places of `$0`, `$1` ... of a form. */
export const list = (parts: readonly Text[], form: string): Text =>
  fc
    .tuple(...parts)
    .map((texts) => form.replaceAll(/\$(\d)/g, (_, at: string) => texts[Number(at)] ?? ''))

const day = one("DATE '2024-02-01'", "DATE '2024-01-10'", "'2024-03-05'::date")
const moment = one("timestamp '2024-02-01T12:00:00'", "'2024-01-10T00:30:00'::timestamp")
export const interval = one(
  "interval '1 day'",
  "interval '90 minutes'",
  "interval '1 month'",
  "interval '1 mon -2 days 03:00:00.5'",
  "interval '1 day' * o.id",
  "interval '1 month' * 2.5",
  "- interval '1 day'",
  "interval '1 day' / 7",
  "(interval '1 day' + interval '1 month' * 3)",
  "(o.at - timestamp '2024-01-15')",
  "age(o.at, timestamp '2023-11-30 13:00')",
  'make_interval(days => o.id::int, hours => 5)',
)
const zone = one("'UTC'", "'Europe/Vienna'", "'America/St_Johns'", "'Asia/Kolkata'")
const pattern = one("'e'", "'(o)(.)'", "'[oc]+'", "'(.*?)e(n?)'", "'(a|e|x)?'", "'^.'", "'.$'")
const count = one('0', '1', '2', '3', '-1', '-2', '5', 'NULL::int', 'o.id::int', '40')

type Kinds = { number: string; text: string; boolean: string; time: string; date: string }

type Tie = fc.LetrecTypedTie<Kinds>

const numbers = (tie: Tie): Text =>
  fc.oneof(
    { maxDepth: 3, depthIdentifier: 'term' },
    one('o.id', 'o.amount', '1', '2.5', '-3', '0', 'NULL::numeric', '- CAST(NULL AS numeric)'),
    list([tie('number'), one('+', '-', '*', '/', '%'), tie('number')], '($0 $1 $2)'),
    list(
      [one('abs', 'ceil', 'floor', 'round', 'sign', 'trunc'), tie('number')],
      '$0(($1)::numeric)',
    ),
    list([one('mod', 'div'), tie('number'), tie('number')], '$0($1, $2)'),
    list([one('round', 'trunc'), tie('number'), count], '$0(($1)::numeric, $2)'),
    list([one('length', 'char_length'), tie('text')], '$0($1)'),
    list([tie('text'), tie('text')], 'strpos($0, $1)'),
    list([one('ascii', 'octet_length'), tie('text')], '$0($1)'),
    list([one('epoch', 'day', 'hour', 'month', 'century'), interval], 'extract($0 FROM $1)'),
    list([tie('number')], '- ($0)'),
    list([tie('number'), one('int', 'numeric(6, 1)', 'numeric(8)', 'bigint')], '($0)::$1'),
    list(
      [
        one('year', 'month', 'day', 'dow', 'epoch', 'hour', 'isoyear', 'decade', 'millisecond'),
        tie('time'),
      ],
      'extract($0 FROM $1)',
    ),
    list([tie('date'), tie('date')], '($0 - $1)'),
    list([tie('boolean'), tie('number'), tie('number')], 'CASE WHEN $0 THEN $1 ELSE $2 END'),
    list(
      [one('coalesce', 'greatest', 'least', 'nullif'), tie('number'), tie('number')],
      '$0($1, $2)',
    ),
    list([tie('boolean')], '(SELECT count(*) FROM app::items i WHERE i.order_id = o.id AND ($0))'),
    one('(SELECT max(i.price) FROM app::items i WHERE i.order_id = o.id)'),
  )

const texts = (tie: Tie): Text =>
  fc.oneof(
    { maxDepth: 3, depthIdentifier: 'term' },
    one('o.customer', 'o.status', "'c1'", "''", "'Open '", "'é%_'", 'NULL::text'),
    list([one('lower', 'upper', 'initcap', 'reverse', 'btrim', 'rtrim'), tie('text')], '$0($1)'),
    list([one('left', 'right'), tie('text'), count], '$0($1, $2)'),
    list([tie('text'), one('1', '2', '-1', '0'), one('0', '1', '3')], 'substr($0, $1, $2)'),
    list(
      [one('lpad', 'rpad'), tie('text'), one('0', '3', '9', '-1'), one("'x'", "''", "'yz'")],
      '$0($1, $2, $3)',
    ),
    list([tie('text'), one('varchar(2)', 'varchar(5)', 'text')], '($0)::$1'),
    list([tie('text'), tie('text')], '($0 || $1)'),
    list([tie('text'), tie('text')], 'concat($0, $1, o.id)'),
    list([tie('text'), tie('text')], "concat_ws('-', $0, $1)"),
    list([tie('text'), one("'e'", "'n'"), one('1', '2', '-1')], 'split_part($0, $1, $2)'),
    list([tie('text'), one("'o'", "'c'"), one("'x'", "''")], 'replace(left($0, 9), $1, $2)'),
    list([tie('boolean'), tie('text'), tie('text')], 'CASE WHEN $0 THEN $1 ELSE $2 END'),
    list([one('coalesce', 'greatest', 'least', 'nullif'), tie('text'), tie('text')], '$0($1, $2)'),
    list([tie('time')], "to_char($0, 'YYYY-MM-DD HH24')"),
    list(
      [tie('text'), pattern, one("'x'", "'[\\1]'", "'<\\&>'"), one('', ", 'g'", ", 'gi'")],
      'regexp_replace(left($0, 40), $1, $2$3)',
    ),
    list([tie('text'), pattern, one('1', '2')], '(regexp_match($0, $1))[$2]'),
    list(
      [tie('text'), one("'e'", "''", 'NULL'), one('1', '2', '9')],
      '(string_to_array($0, $1))[$2]',
    ),
    list([tie('text'), tie('text')], "format('%s-%L %2$s%%', $0, $1)"),
    list([tie('text'), one('0', '2', '-1')], 'repeat(left($0, 9), $1)'),
    list([tie('text')], 'md5($0)'),
    list([interval], '($0)::text'),
    list(
      [tie('text'), tie('number'), one("'{a}'", "'{b,0}'", "'{b,-1}'", "'{c}'")],
      "(jsonb_build_object('a', $0, 'b', jsonb_build_array($0, $1)) #>> $2)",
    ),
  )

const booleans = (tie: Tie): Text =>
  fc.oneof(
    { maxDepth: 3, depthIdentifier: 'term' },
    one('o.paid', 'true', 'false', 'NULL::boolean', 'o.amount IS NULL', "o.status = 'open'"),
    list([tie('number'), one('=', '<>', '<', '>='), tie('number')], '($0 $1 $2)'),
    list([tie('text'), one('=', '<>', '<', '>='), tie('text')], '($0 $1 $2)'),
    list(
      [tie('time'), one('=', '<>', '<', '>='), fc.oneof(day, moment, tie('time'))],
      '($0 $1 $2)',
    ),
    list([tie('date'), one('=', '<', '>='), fc.oneof(tie('date'), tie('time'))], '($0 $1 $2)'),
    list([tie('time'), day, day], '($0 BETWEEN $1 AND $2)'),
    list([tie('time'), day, moment], '($0 IN ($1, $2))'),
    list([tie('number'), tie('number')], '($0 IN ($1, 1, NULL))'),
    list([tie('text')], "($0 IN ('c1', 'open', NULL))"),
    list([tie('text'), one("'%e%'", "'c_'", "''", "'Op%'")], '($0 LIKE $1)'),
    list([tie('text'), one("'%xe%'", "'cx_'", "'xx%'")], "($0 LIKE $1 ESCAPE 'x')"),
    list([tie('text'), one('=', '<', '>='), tie('text')], '($0 $1 $2 COLLATE "C")'),
    list(
      [tie('boolean'), one('@>', '<@'), one("'[true]'", "'[]'", "'[null, false]'")],
      '(jsonb_build_array($0) $1 $2)',
    ),
    list([tie('text')], "(jsonb_build_object('open', $0) ? $0)"),
    list([interval, one('=', '<', '>='), interval], '($0 $1 $2)'),
    list([tie('boolean'), one('true', 'NULL', 'false')], '($0 IN ($1, false))'),
    list([tie('number'), tie('number')], '($0 IS DISTINCT FROM $1)'),
    list(
      [tie('number'), one('= ANY', '<> ALL', '> ANY', '<= ALL'), tie('number')],
      '($0 $1 (ARRAY[$2, 5, NULL]))',
    ),
    list(
      [
        tie('number'),
        tie('text'),
        one('=', '<>', '<', '>=', 'IS DISTINCT FROM'),
        tie('number'),
        tie('text'),
      ],
      '(($0, $1) $2 ($3, $4))',
    ),
    list(
      [tie('text'), tie('boolean'), one('IN', 'NOT IN'), tie('text')],
      "(($0, $1) $2 (($3, true), ('open', NULL)))",
    ),
    list([tie('number')], '($0 <> ALL (SELECT i.order_id FROM app::items i))'),
    list([tie('boolean'), one('IS TRUE', 'IS NOT FALSE', 'IS UNKNOWN')], '(($0) $1)'),
    list([tie('boolean')], '(NOT $0)'),
    list([tie('boolean'), one('AND', 'OR'), tie('boolean')], '($0 $1 $2)'),
    list(
      [tie('number'), one('IN', 'NOT IN'), one('i.quantity', 'i.price', 'i.id')],
      '(($0, o.id) $1 (SELECT $2, i.order_id FROM app::items i))',
    ),
    list(
      [
        tie('text'),
        one('LIKE', 'NOT LIKE', 'ILIKE'),
        one('ANY', 'ALL'),
        one("'%e%'", "'c_'"),
        one("''", "'Op%'"),
      ],
      '($0 $1 $2 (ARRAY[$3, $4]))',
    ),
    one('EXISTS (SELECT 1 FROM app::items i WHERE i.order_id = o.id AND i.quantity > 2)'),
    one('o.customer IN (SELECT c.id FROM app::customers c WHERE c.score > 1)'),
  )

const times = (tie: Tie): Text =>
  fc.oneof(
    { maxDepth: 2, depthIdentifier: 'term' },
    one('o.at', 'NULL::timestamp'),
    moment,
    list([tie('time'), one('+', '-'), interval], '($0 $1 $2)'),
    list(
      [one('day', 'month', 'hour', 'year', 'week', 'quarter'), tie('time')],
      "date_trunc('$0', $1)",
    ),
    list(
      [one('coalesce', 'greatest', 'least', 'nullif'), tie('time'), fc.oneof(day, tie('time'))],
      '$0($1, $2)',
    ),
    list([tie('boolean'), tie('time'), day], 'CASE WHEN $0 THEN $1 ELSE $2 END'),
    list([tie('date')], '($0)::timestamp'),
    list([tie('time'), zone], '(($0)::timestamptz AT TIME ZONE $1)'),
    list([tie('time'), zone, zone], '(($0)::timestamp AT TIME ZONE $1 AT TIME ZONE $2)'),
    list(
      [one('day', 'month', 'week'), tie('time'), zone],
      "date_trunc('$0', ($1)::timestamptz, $2)",
    ),
    list([tie('time'), one("'1 day'", "'7 hours'"), moment], 'date_bin($1, $0, $2)'),
  )

const dates = (tie: Tie): Text =>
  fc.oneof(
    { maxDepth: 2, depthIdentifier: 'term' },
    day,
    list([tie('time')], '($0)::date'),
    list([tie('date'), one('+', '-'), one('1', '30', 'o.id::int', 'NULL::int')], '($0 $1 $2)'),
    list([one('coalesce', 'greatest'), tie('date'), tie('date')], '$0($1, $2)'),
    list([one('2024', '2023'), one('2', '12'), one('1', '28')], 'make_date($0, $1, $2)'),
    list([tie('date')], "to_date(to_char(($0)::timestamp, 'DD.MM.YYYY'), 'DD.MM.YYYY')"),
  )

export const terms = fc.letrec<Kinds>((tie) => ({
  number: numbers(tie),
  text: texts(tie),
  boolean: booleans(tie),
  time: times(tie),
  date: dates(tie),
}))

/** A term of any kind. */
export const any = fc.oneof(terms.number, terms.text, terms.boolean, terms.time, terms.date)
