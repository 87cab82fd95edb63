import fc from 'fast-check'
import { formStatements } from './draw-forms.test-support.ts'
import { statements } from './draw-statement.test-support.ts'
import { any, list, one, terms } from './draw-term.test-support.ts'

/** Functions that give rows of `x`, of numbers or of texts; `o` stands for an order. */
const numberRows = fc.oneof(
  list(
    [one('0', '1', '-2', 'o.id - 2'), one('3', 'o.id + 1', '4.5')],
    'generate_series($0, $1) AS x',
  ),
  one('generate_series(9, o.id / 10, -3) AS x', 'generate_series(1, NULL::int) AS x'),
  list([terms.number, terms.number], 'unnest(ARRAY[$0, $1, NULL]) AS x'),
)
const textRows = fc.oneof(
  list([terms.text], "unnest(string_to_array(left($0, 40), 'e')) AS x"),
  list([terms.text, terms.text], 'unnest(ARRAY[$0, $1]) AS x'),
  list([terms.text, terms.boolean], 'jsonb_array_elements_text(jsonb_build_array($0, $1)) AS x'),
  list(
    [terms.text, terms.text],
    "jsonb_array_elements_text(jsonb_build_object('a', jsonb_build_array($0, $1)) -> 'a') AS x",
  ),
)
const memberRows = fc.oneof(
  list(
    [terms.text, terms.number],
    "jsonb_each_text(jsonb_build_object('a', $0, 'b', $1)) AS x (k, x)",
  ),
  list([terms.text], "jsonb_object_keys(jsonb_build_object('a', $0, 'bb', NULL)) AS x"),
)
const joined = one(', ', ' CROSS JOIN ', ' CROSS JOIN LATERAL ')
const gathered = one(
  'count(*)',
  'max(i.price)',
  'sum(i.quantity)',
  'string_agg(i.sku, i.sku ORDER BY i.id)',
)

const rows: fc.Arbitrary<string> = fc.oneof(
  list(
    [joined, fc.oneof(numberRows, textRows, memberRows), terms.boolean, any],
    'SELECT o.id, x, $3 AS a FROM app::orders o$0$1 WHERE $2 ORDER BY o.id, x',
  ),
  list(
    [numberRows, terms.boolean, any],
    'SELECT o.id, x, $2 AS a FROM app::orders o LEFT JOIN $0 ON $1 ORDER BY o.id, x',
  ),
  list(
    [fc.oneof(numberRows, textRows), terms.boolean],
    'SELECT x, count(*) AS n, min(o.id) AS m FROM app::orders o, $0 WHERE $1 GROUP BY x',
  ),
  list(
    [numberRows, terms.number],
    'SELECT o.id, (SELECT sum(x) FROM $0 WHERE x > $1) AS s FROM app::orders o ORDER BY o.id',
  ),
  list(
    [gathered, terms.boolean, terms.boolean, one(', LATERAL', ' CROSS JOIN LATERAL')],
    'SELECT o.id, t.g FROM app::orders o$3 (SELECT $0 AS g FROM app::items i WHERE i.order_id = o.id AND $1) t WHERE $2 ORDER BY o.id',
  ),
  list(
    [any, terms.boolean, one('i.price', 'i.id DESC', 'i.sku DESC, i.id'), one('1', '2')],
    'SELECT o.id, t.i, $0 AS a FROM app::orders o LEFT JOIN LATERAL (SELECT i.id AS i FROM app::items i WHERE i.order_id >= o.id AND $1 ORDER BY $2, i.id LIMIT $3) t ON true ORDER BY o.id, t.i',
  ),
  list(
    [terms.boolean, one('UNION', 'UNION ALL'), one('i.order_id', 'i.quantity', 't.n + 1')],
    'WITH RECURSIVE t (id, n) AS (SELECT o.id, 1 FROM app::orders o WHERE o.id < 6 AND $0 $1 SELECT $2, t.n + 1 FROM t JOIN app::items i ON i.id = t.id WHERE t.n < 5) SELECT id, n, count(*) AS c FROM t GROUP BY id, n',
  ),
  list(
    [terms.number, terms.boolean],
    'WITH RECURSIVE t (id, v) AS (SELECT o.id, ($0)::numeric FROM app::orders o WHERE o.id < 4 UNION ALL SELECT o.id, t.v + o.id FROM t JOIN app::orders o ON o.id = t.id + 4 WHERE ($1)) SELECT id, v FROM t ORDER BY id',
  ),
)

/** Statements of all forms. */
export const allStatements: fc.Arbitrary<string> = fc.oneof(
  { weight: 4, arbitrary: statements },
  { weight: 1, arbitrary: rows },
  { weight: 4, arbitrary: formStatements },
)
