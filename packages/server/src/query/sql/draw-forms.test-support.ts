import fc from 'fast-check'
import { any, list, one, type Text, terms } from './draw-term.test-support.ts'

const where = terms.boolean
const nulls = one('', '', ' DESC', ' NULLS FIRST', ' DESC NULLS LAST')
const plainAggregate: Text = fc.oneof(
  one('count(*)', 'count(o.amount)', 'sum(o.amount)', 'min(o.at)', 'max(o.status)', 'avg(o.id)'),
  list([where], 'count(*) FILTER (WHERE $0)'),
  list([where, terms.number], 'max($1) FILTER (WHERE $0)'),
  list([one('sum', 'avg', 'count'), terms.number], '$0(DISTINCT $1)'),
)

const frame: Text = fc.oneof(
  list(
    [
      one('ROWS', 'GROUPS'),
      one('UNBOUNDED PRECEDING', '2 PRECEDING', 'CURRENT ROW', '1 FOLLOWING'),
      one('3 FOLLOWING', 'UNBOUNDED FOLLOWING', '1 FOLLOWING'),
      one('', ' EXCLUDE CURRENT ROW', ' EXCLUDE GROUP', ' EXCLUDE TIES', ' EXCLUDE NO OTHERS'),
    ],
    ' $0 BETWEEN $1 AND $2$3',
  ),
  one('', ' ROWS 2 PRECEDING', ' GROUPS UNBOUNDED PRECEDING', ' RANGE UNBOUNDED PRECEDING'),
)
const windows: Text = fc.oneof(
  list(
    [plainAggregate, any, nulls, frame, where, any],
    'SELECT o.id, $0 OVER w AS a, count(*) OVER (w ROWS 1 PRECEDING) AS n FROM app::orders o WHERE $4 WINDOW w AS (PARTITION BY o.paid ORDER BY o.status$2, o.id) ORDER BY o.id',
  ),
  list(
    [one('sum(o.amount)', 'count(*)', 'max(o.at)', 'min(o.customer)'), any, nulls, frame, where],
    'SELECT o.id, $0 FILTER (WHERE $4) OVER (PARTITION BY o.status ORDER BY $1$2, o.id$3) AS a FROM app::orders o ORDER BY o.id',
  ),
  list(
    [one('first_value', 'last_value'), any, terms.text, nulls, frame],
    'SELECT o.id, $0($1) OVER (ORDER BY $2$3, o.id$4) AS a FROM app::orders o ORDER BY o.id',
  ),
  list(
    [any, plainAggregate, one('o.status', 'o.paid', 'o.customer'), where],
    'SELECT $2 AS k, $1 AS a, rank() OVER (ORDER BY count(*) DESC) AS r, sum(count(*)) OVER () AS s FROM app::orders o WHERE $3 GROUP BY $2',
  ),
  list(
    [any, terms.text, nulls],
    'SELECT t.id, t.v FROM (SELECT o.id, $0 AS v, row_number() OVER (PARTITION BY o.status ORDER BY $1$2, o.id) AS n FROM app::orders o) t WHERE t.n < 3 ORDER BY t.id',
  ),
  list(
    [terms.number, one('lag', 'lead'), one('1', '2', '-1'), any],
    'SELECT o.id, $1($0, $2, 0.5) OVER (PARTITION BY o.paid ORDER BY o.id) AS a, $3 AS b FROM app::orders o ORDER BY o.id',
  ),
)

const inner: Text = fc.oneof(
  list([any, where], 'SELECT o.id, $0 AS v FROM app::orders o WHERE $1'),
  list(
    [any, where, nulls],
    'SELECT o.id, $0 AS v FROM app::orders o WHERE $1 ORDER BY o.status$2, o.id LIMIT 9',
  ),
  list(
    [terms.number, where],
    'SELECT o.id, sum($0) AS v FROM app::orders o WHERE $1 GROUP BY o.id',
  ),
  one('SELECT i.id, i.price AS v FROM app::items i', "VALUES (1, 'a'), (3, 'b')"),
)
const setOperation = one('UNION', 'UNION ALL', 'INTERSECT', 'EXCEPT', 'INTERSECT ALL', 'EXCEPT ALL')
const ctes: Text = fc.oneof(
  list(
    [inner, one('', ' MATERIALIZED', ' NOT MATERIALIZED'), one('JOIN', 'LEFT JOIN', 'FULL JOIN')],
    'WITH a (k, v) AS$1 ($0) SELECT x.k, x.v, y.v AS w FROM a x $2 a y ON y.k = x.k + 1 ORDER BY x.k, y.k',
  ),
  list(
    [inner, inner],
    'WITH a (k, v) AS ($0), b (k, w) AS ($1) SELECT count(*) AS n, count(a.v) AS c, count(b.w) AS d FROM a, b WHERE a.k = b.k',
  ),
  list(
    [inner],
    'WITH a (k, v) AS ($0), b AS (SELECT a.v, count(*) AS n FROM a GROUP BY a.v) SELECT b.n, count(*) AS c FROM b GROUP BY b.n ORDER BY b.n',
  ),
  list(
    [inner, any, where],
    'WITH a (k, v) AS ($0) SELECT o.id, $1 AS b, (SELECT a.v FROM a WHERE a.k = o.id ORDER BY a.k LIMIT 1) AS v FROM app::orders o WHERE $2 AND o.id NOT IN (SELECT a.k FROM a WHERE a.v IS NOT NULL) ORDER BY o.id',
  ),
  list(
    [where, setOperation, where, setOperation, where],
    'SELECT o.status, o.paid FROM app::orders o WHERE $0 $1 SELECT o.status, o.paid FROM app::orders o WHERE $2 $3 SELECT o.status, true FROM app::orders o WHERE $4',
  ),
  list(
    [where, setOperation, where, setOperation],
    'SELECT o.status AS s FROM app::orders o WHERE $0 $1 (SELECT o.customer FROM app::orders o WHERE $2 $3 SELECT c.id FROM app::customers c) ORDER BY s DESC LIMIT 5',
  ),
)

const json: Text = fc.oneof(
  list(
    [any, terms.number, terms.text],
    "jsonb_build_object('a', $0, 'b', jsonb_build_array($1, NULL, $2))",
  ),
  list([terms.number, terms.boolean], "jsonb_build_object('b', jsonb_build_array($0), 'a', $1)"),
  list([any, any], 'jsonb_build_array($0, $1)'),
  one('\'{"a": 1, "b": [1, 2, {"c": null}]}\'::jsonb', "'[]'::jsonb"),
)
const jsonTerms: Text = fc.oneof(
  list([json, one("'a'", "'b'", "'x'", '0', '-1', '1')], '($0 ->> $1)'),
  list([json, one("'a'", "'b'", "'x'", '0', '-1', '1')], '($0 -> $1)'),
  list([json, one("'{a}'", "'{b,0}'", "'{b,-1}'", "'{b,2,c}'", "'{}'", "'{0}'")], '($0 #> $1)'),
  list([json, one("'{a}'", "'{b,0}'", "'{b,-1}'", "'{b,2,c}'", "'{}'", "'{0}'")], '($0 #>> $1)'),
  list([json], 'jsonb_typeof($0)'),
  list([json], "jsonb_typeof($0 -> 'b')"),
  list([json], "jsonb_array_length(jsonb_build_object('b', jsonb_build_array($0, 1)) -> 'b')"),
  list([json, json], '($0 @> $1)'),
  list([json, json], '($0 = $1)'),
  list([json, one("'a'", "'b'", "'open'")], '($0 ? $1)'),
  list([json, one('?|', '?&'), list([terms.text], "ARRAY['a', $0]")], '($0 $1 $2)'),
  list([json], '($0)::text'),
  list([json], "(($0 ->> 'a') IS NULL)"),
  list([json, terms.number], "(($0 -> 'b' ->> 0)::text || $1)"),
)

/** Values that PostgreSQL holds as jsonb, and operators of them. */
const document: Text = fc.oneof(
  json,
  list([json, json], '($0 || $1)'),
  list([json, one("'a'", "'b'", "'x'", '0', '1', '-1')], '($0 - $1)'),
  list([json, terms.text], '($0 - $1)'),
  list([json, one("'{a}'", "'{b,0}'", "'{b,-1}'", "'{b,2,c}'", "'{}'", "'{x,y}'")], '($0 #- $1)'),
  list(
    [
      json,
      one("'{a}'", "'{b,0}'", "'{b,-9}'", "'{b,2,c}'", "'{x}'", "'{x,y}'"),
      fc.oneof(list([any], 'to_jsonb($0)'), one("'1'", '\'{"z": [1]}\'', 'NULL')),
      one('', ', false', ', true'),
    ],
    'jsonb_set($0, $1, $2$3)',
  ),
  list([any], 'to_jsonb($0)'),
  list([json], 'jsonb_strip_nulls($0)'),
  list([json, one("'[]'", "'{}'")], 'coalesce($0, $1)'),
)
const numberArray: Text = fc.oneof(
  list([terms.number, terms.number], 'ARRAY[($0)::numeric, ($1)::numeric]'),
  one('ARRAY[]::numeric[]', 'ARRAY[1.5, NULL, 2]', 'NULL::numeric[]'),
  one('ARRAY(SELECT i.price FROM app::items i WHERE i.order_id = o.id ORDER BY i.price, i.id)'),
)
const arrayTerms: Text = fc.oneof(
  numberArray,
  list([terms.text, terms.text], 'ARRAY[$0, $1]'),
  list([numberArray, numberArray], '($0 || $1)'),
  list([numberArray, terms.number], '($0 || ($1)::numeric)'),
  list([numberArray, one('=', '<>', '@>', '<@', 'IS DISTINCT FROM'), numberArray], '($0 $1 $2)'),
  list([numberArray, one('1', '2', '3')], '(($0)[$1])'),
  list([terms.time, terms.time], '((ARRAY[$0, $1])[2])'),
  list([numberArray], 'cardinality($0)'),
  list([numberArray], 'to_jsonb($0)'),
  list(
    [terms.text, terms.text, one("','", "''", 'NULL')],
    "array_to_string(ARRAY[$0, $1], $2, '-')",
  ),
  list([numberArray, one("', '", "''")], 'array_to_string($0, $1)'),
)
const timeTexts: Text = fc.oneof(
  list(
    [terms.time, one("'YYYY-MM-DD HH24:MI:SS'", "'DD.MM.YYYY HH24:MI'", "'YYYYMMDD HH24MISS'")],
    'to_timestamp(to_char($0, $1), $1)',
  ),
  list(
    [
      one("'January 8, 2024'", "'8 feb 2024'", "'2024-Mar-01'", "'20240201'", "'2024/2/1'"),
      terms.date,
    ],
    '(date $0 - $1)',
  ),
  list(
    [
      one(
        "interval '1' day",
        "interval 'P1M2DT3H'",
        "interval '2 days 3 hours ago'",
        "interval '1-2'",
      ),
      terms.time,
    ],
    '($1 + $0)',
  ),
)

/** Terms of an order that both have: lists and objects are all alike here. */
const sortedTerms: Text = fc.oneof(
  list(
    [terms.text, one("'abc'", "'open'", "'c1'"), one("'xy'", "''", "'12345'")],
    'translate($0, $1, $2)',
  ),
  list(
    [terms.text, terms.text, one('1', '2', '5'), one('0', '1', '3')],
    'overlay($0 PLACING left($1, 9) FROM $2 FOR $3)',
  ),
  list([terms.text, terms.text], 'starts_with($0, $1)'),
  list([terms.text], 'quote_literal($0)'),
  list([terms.text, one('1', '2', '4')], 'substring($0 FROM $1)'),
  list([terms.text, one('1', '2', '-1'), one('1', '2', '3')], 'substring($0 FROM $1 FOR $2)'),
  list([one('BOTH', 'LEADING', 'TRAILING'), one("'o'", "' c'"), terms.text], 'trim($0 $1 FROM $2)'),
  list([terms.text, terms.text], 'position($0 IN $1)'),
  list([terms.boolean, terms.number, terms.text], 'concat($0, $1, $2)'),
  list(
    [terms.number, one('2', '3', '0.5', '-1', '0')],
    'round(power(abs($0) + 1, $1)::numeric, 6)',
  ),
  list([one('sqrt', 'ln', 'log'), terms.number], 'round(($0(abs($1) + 1))::numeric, 6)'),
  list([terms.number], 'round(exp(($0) / 100.0)::numeric, 6)'),
  list([one('gcd', 'lcm'), terms.number], '$0(trunc(($1)::numeric), 6)'),
  list(
    [terms.number, one('0', '-5', '100'), one('50', '10', '-100'), one('5', '1')],
    'width_bucket($0, $1, $2, $3)',
  ),
  list([terms.number], "CASE $0 WHEN 1 THEN 'one' WHEN NULL THEN 'none' WHEN o.id THEN 'id' END"),
  list([terms.text, terms.number], 'CASE $0 WHEN o.status THEN $1 ELSE o.id END'),
  list([terms.number, terms.number, terms.number], '($0 BETWEEN SYMMETRIC $1 AND $2)'),
  list([terms.text, one("'open'", "'c3'"), one("'sent'", "'c1'")], '($0 NOT BETWEEN $1 AND $2)'),
  one(
    'o.id = ANY (ARRAY[1, 5, 9.0])',
    "o.status = ANY (ARRAY['open', 'x'])",
    "o.customer <> ALL (ARRAY['c1', 'c3'])",
    'o.amount <> ALL (ARRAY[1.5, 37])',
  ),
  list([terms.number], '($0 = ANY (ARRAY[0, 1, 2.5, 16]))'),
  list([terms.text], "($0 <> ALL (ARRAY['open', 'c1', '']))"),
  list(
    [terms.number, one('<', '=', '>='), one('ANY', 'ALL'), where],
    '($0 $1 $2 (SELECT i.price FROM app::items i WHERE i.order_id = o.id AND $3))',
  ),
  list([terms.text, one('~', '!~', '~*'), one("'^o'", "'e+'", "'[^a-z]'", "'n$|1'")], '($0 $1 $2)'),
  list([terms.text, one("'o_*'", "'%(e|1)'", "'[a-p]+%'", "'c{1,2}1'")], '($0 SIMILAR TO $1)'),
  list([terms.time], '($0)::timestamptz::text'),
  list(
    [
      terms.time,
      one("'YYYY-MM-DD'", "'HH12:MI:SS AM'", "'Dy, DD Mon YYYY'", "'IYYY-IW'", "'Q DDD'"),
    ],
    'to_char($0, $1)',
  ),
  list([terms.time], '($0)::date::text'),
  list([terms.time], '($0)::timestamp::text'),
  list([terms.boolean], '($0)::text'),
  list([terms.number], '(($0)::numeric(12, 3))::text'),
  list([terms.boolean], '($0)::int'),
  list([one('0', '86400', '1.5', 'o.id * 100000')], 'to_timestamp($0)'),
  list([terms.time, terms.time], 'extract(epoch FROM ($0 - $1))'),
  list([terms.time, terms.time], '(age($0, $1))::text'),
  list([terms.text, terms.text], '($0 || $1) COLLATE "C"'),
  list([terms.text, one("'o'", "'1'")], 'array_length(string_to_array($0, $1), 1)'),
  jsonTerms,
)
const moreTerms: Text = fc.oneof(
  { weight: 40, arbitrary: sortedTerms },
  { weight: 2, arbitrary: document },
  { weight: 1, arbitrary: list([document, one("'a'", "'b'")], '($0 -> $1)') },
  { weight: 1, arbitrary: list([document, document], '($0 = $1)') },
  { weight: 6, arbitrary: arrayTerms },
  { weight: 2, arbitrary: timeTexts },
)
const orders: Text = fc.oneof(
  list(
    [moreTerms, moreTerms, where],
    'SELECT o.id, $0 AS a, $1 AS b FROM app::orders o WHERE $2 ORDER BY o.id',
  ),
  list([moreTerms, plainAggregate], 'SELECT $0 AS k, $1 AS a FROM app::orders o GROUP BY 1'),
  list(
    [moreTerms, moreTerms, nulls],
    'SELECT o.id, $0 AS a FROM app::orders o ORDER BY o.paid$2, o.status DESC, o.id LIMIT 11',
  ),
  list(
    [any, nulls, any, nulls],
    'SELECT o.id, $0 AS a, $2 AS b FROM app::orders o ORDER BY 2$1, b$3, o.id',
  ),
  list([sortedTerms, nulls], 'SELECT o.id, $0 AS a FROM app::orders o ORDER BY a$1, o.id'),
  list([any, moreTerms, where], 'SELECT DISTINCT $0 AS a, $1 AS b FROM app::orders o WHERE $2'),
)

const gathered: Text = fc.oneof(
  plainAggregate,
  list([any], 'jsonb_agg($0 ORDER BY o.id)'),
  list([any, where, nulls], 'array_agg($0 ORDER BY o.status$2, o.id) FILTER (WHERE $1)'),
  list([terms.text, any], "string_agg($0, '/' ORDER BY o.paid, o.id DESC)"),
  list([moreTerms], 'count(DISTINCT $0)'),
  list([moreTerms], 'count($0)'),
  list([any], "coalesce(jsonb_agg($0 ORDER BY o.id), '[]')"),
  list([terms.number], '(array_agg($0 ORDER BY o.id))[2]'),
  list([terms.number], 'cardinality(array_agg($0))'),
  list([where, any], 'jsonb_object_agg(o.id, $1) FILTER (WHERE $0)'),
)
const groups: Text = fc.oneof(
  list(
    [gathered, gathered, where],
    'SELECT o.status, $0 AS a, $1 AS b FROM app::orders o WHERE $2 GROUP BY o.status ORDER BY o.status',
  ),
  list(
    [any, gathered, one('ROLLUP', 'CUBE'), where],
    'SELECT $0 AS k, GROUPING($0) AS g, $1 AS a FROM app::orders o WHERE $3 GROUP BY $2 ($0, o.paid)',
  ),
  list(
    [terms.text, gathered, where],
    'SELECT $0 AS k, o.paid, $1 AS a FROM app::orders o GROUP BY GROUPING SETS (($0), (o.paid), ()) HAVING bool_or($2)',
  ),
  list(
    [gathered, where],
    'SELECT o.id, $0 AS a FROM app::orders o LEFT JOIN app::items i ON i.order_id = o.id WHERE $1 GROUP BY o.id ORDER BY o.id',
  ),
  list(
    [gathered, where, terms.number],
    'SELECT c.city, $0 AS a, sum($2) AS s FROM app::customers c LEFT JOIN app::orders o ON o.customer = c.id AND $1 GROUP BY c.city ORDER BY c.city NULLS FIRST',
  ),
  list([gathered, where], 'SELECT $0 AS a FROM app::orders o WHERE $1 HAVING count(*) > 3'),
)
const joins: Text = fc.oneof(
  list(
    [one('JOIN', 'LEFT JOIN', 'RIGHT JOIN', 'FULL JOIN'), one('JOIN', 'LEFT JOIN'), where, any],
    'SELECT o.id, i.id AS i, c.id AS c, $3 AS a FROM app::items i $0 app::orders o ON i.order_id = o.id $1 app::customers c ON c.id = o.customer AND $2 ORDER BY o.id, i.id',
  ),
  list(
    [one('JOIN', 'LEFT JOIN', 'FULL JOIN'), where, one('o.amount', 'o.status', 'o.paid')],
    'SELECT o.id, p.id AS p FROM app::orders o $0 app::orders p ON p.id = o.id + 1 AND $1 ORDER BY $2, o.id, p.id',
  ),
  list(
    [where, one('', 'NOT ')],
    'SELECT c.id, c.name FROM app::customers c WHERE $1EXISTS (SELECT 1 FROM app::orders o WHERE o.customer = c.id AND $0) ORDER BY c.id',
  ),
  list(
    [any, where, one('o.amount DESC', 'o.at', 'o.status, o.amount')],
    'SELECT c.id, (SELECT $0 FROM app::orders o WHERE o.customer = c.id AND $1 ORDER BY $2, o.id LIMIT 1) AS a FROM app::customers c ORDER BY c.id',
  ),
  list(
    [any, plainAggregate, where],
    'SELECT c.id, t.a, t.b FROM app::customers c LEFT JOIN LATERAL (SELECT $1 AS a, max(c.score) AS b FROM app::orders o WHERE o.customer = c.id AND $2) t ON t.a IS NOT NULL ORDER BY c.id',
  ),
  list(
    [where, any],
    'SELECT o.id, $1 AS a FROM app::orders o WHERE (o.status, o.paid) IN (SELECT o.status, o.paid FROM app::orders o WHERE $0) ORDER BY o.id',
  ),
  list(
    [where, where],
    'SELECT o.id FROM app::orders o WHERE o.id IN (SELECT i.order_id FROM app::items i WHERE i.quantity > 2 AND $0) OR NOT $1 ORDER BY 1 DESC',
  ),
  list(
    [any, any],
    'SELECT t.a, u.b FROM (SELECT o.id, $0 AS a FROM app::orders o) t JOIN (SELECT o.id, $1 AS b FROM app::orders o) u USING (id) ORDER BY id',
  ),
)

/** Statements of the forms that came later: windows by name, tables by name, JSON, lists, groups and joins of more. */
export const formStatements: Text = fc.oneof(windows, ctes, orders, groups, joins)
