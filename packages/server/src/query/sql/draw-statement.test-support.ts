import fc from 'fast-check'
import { any, interval, list, one, type Text, terms } from './draw-term.test-support.ts'

const aggregate: Text = fc.oneof(
  list(
    [one('stddev_pop', 'var_samp', 'var_pop', 'stddev'), terms.number, terms.boolean],
    'round(($0(($1)::numeric) FILTER (WHERE $2))::numeric, 6)',
  ),
  list(
    [
      one('corr', 'covar_pop', 'covar_samp', 'regr_slope', 'regr_intercept', 'regr_r2'),
      one('o.amount', 'o.id', 'length(o.status)'),
      one('o.id', 'o.amount', '1', 'length(o.customer)'),
    ],
    'round($0($1, $2)::numeric, 6)',
  ),
  one('count(*)', 'count(DISTINCT o.status)'),
  list([one('sum', 'avg', 'min', 'max', 'count'), terms.number], '$0($1)'),
  list([one('min', 'max', 'count'), fc.oneof(terms.text, terms.time)], '$0($1)'),
  list([one('bool_and', 'bool_or', 'every'), terms.boolean], '$0($1)'),
  list([terms.text], "string_agg($0, ',' ORDER BY o.id)"),
  list([terms.text, one('', ' DESC')], "string_agg(DISTINCT $0, ',' ORDER BY $0$1)"),
  list([terms.number, terms.boolean], 'sum($0) FILTER (WHERE $1)'),
  list([one('sum', 'avg', 'min', 'max', 'count'), interval], '($0($1))::text'),
  list([terms.text], 'jsonb_object_agg(o.id, $0)'),
  list(
    [
      one('percentile_cont', 'percentile_disc'),
      one('0', '0.25', '0.5', '1'),
      terms.number,
      one('', ' DESC'),
    ],
    '$0($1) WITHIN GROUP (ORDER BY ($2)::numeric$3)',
  ),
  list(
    [fc.oneof(terms.text, terms.time), terms.boolean],
    'percentile_disc(0.4) WITHIN GROUP (ORDER BY $0) FILTER (WHERE $1)',
  ),
  list([fc.oneof(terms.number, terms.text, terms.time)], 'mode() WITHIN GROUP (ORDER BY $0)'),
)
const framed: Text = fc.oneof(
  list(
    [
      one('o.amount', 'o.id', 'o.amount DESC'),
      one('0', '2.5', '10'),
      one('PRECEDING', 'FOLLOWING'),
      one('', ' EXCLUDE CURRENT ROW', ' EXCLUDE TIES'),
    ],
    '(ORDER BY $0 RANGE BETWEEN 7 PRECEDING AND 20 FOLLOWING$3)',
  ),
  list(
    [one("interval '1 day'", "interval '1 month'", "interval '90 minutes'")],
    '(ORDER BY o.at::timestamp RANGE BETWEEN $0 PRECEDING AND CURRENT ROW)',
  ),
)
const groupings = one(
  'ROLLUP (o.status, o.paid)',
  'CUBE (o.status, o.customer)',
  'GROUPING SETS ((o.status, o.paid), (o.status), ())',
  'o.status, ROLLUP (o.paid)',
  'ROLLUP ((o.status, o.paid), o.customer)',
)
const ranked = one('percent_rank()', 'cume_dist()', 'rank()', 'dense_rank()')
const whole = list([terms.boolean], 'SELECT * FROM app::orders o WHERE $0')
const over = one(
  '(ORDER BY o.id)',
  '(PARTITION BY o.status ORDER BY o.id)',
  '(PARTITION BY o.paid ORDER BY o.id DESC)',
)
const windowed: Text = fc.oneof(
  list(
    [one('corr(o.amount, o.id)', 'stddev(o.amount)', 'regr_slope(o.id, o.amount)'), over],
    'round(($0 OVER $1)::numeric, 6)',
  ),
  list(
    [one('row_number()', 'rank()', 'ntile(3)', 'ntile(NULL)', 'sum(o.amount)', 'count(*)'), over],
    '$0 OVER $1',
  ),
  list([one('lag', 'lead'), any, one('1', '2', '0', 'NULL::int'), over], '$0($1, $2) OVER $3'),
  list([any, one('1', '2', '3', 'NULL::int'), over], 'nth_value($0, $1) OVER $2'),
  list([one('first_value', 'last_value'), any, over], '$0($1) OVER $2'),
  list([one('sum(o.amount)', 'count(*)', 'max(o.id)'), framed], '$0 OVER $1'),
  list([ranked, one('o.amount', 'o.status', 'o.at')], '$0 OVER (PARTITION BY o.paid ORDER BY $1)'),
)
const page = one('', '', ' LIMIT 7', ' LIMIT 5 OFFSET 3', ' LIMIT NULL')

/**
 * Random statements over the collections of orders.test-data.ts that mean the same to PostgreSQL over tables with
 * the same values; `o` stands for orders. Whatever PostgreSQL refuses is no case.
 */
export const statements: Text = fc.oneof(
  {
    weight: 5,
    arbitrary: list(
      [any, any, terms.boolean, page],
      'SELECT o.id, $0 AS a, $1 AS b FROM app::orders o WHERE $2 ORDER BY o.id$3',
    ),
  },
  {
    weight: 2,
    arbitrary: list(
      [windowed, any, terms.boolean],
      'SELECT o.id, $0 AS a, $1 AS b FROM app::orders o WHERE $2 ORDER BY o.id',
    ),
  },
  {
    weight: 2,
    arbitrary: list(
      [aggregate, aggregate, terms.boolean],
      'SELECT $0 AS a, $1 AS b FROM app::orders o WHERE $2',
    ),
  },
  {
    weight: 3,
    arbitrary: list(
      [any, aggregate, terms.boolean, aggregate],
      'SELECT $0 AS k, $1 AS a FROM app::orders o WHERE $2 GROUP BY 1 HAVING $3 IS NOT NULL',
    ),
  },
  {
    weight: 1,
    arbitrary: list([any, terms.boolean], 'SELECT DISTINCT $0 AS a FROM app::orders o WHERE $1'),
  },
  ...(['number', 'text', 'boolean', 'time'] as const).map((kind) => ({
    weight: 1,
    arbitrary: list(
      [
        terms[kind],
        one('UNION', 'UNION ALL', 'EXCEPT', 'INTERSECT ALL'),
        terms[kind],
        terms.boolean,
      ],
      'SELECT $0 AS a FROM app::orders o WHERE $3 $1 SELECT $2 FROM app::orders o',
    ),
  })),
  {
    weight: 2,
    arbitrary: list(
      [one('JOIN', 'LEFT JOIN'), terms.boolean, any],
      'SELECT o.id, i.id AS i, $2 AS a FROM app::orders o $0 app::items i ON i.order_id = o.id AND $1 ORDER BY o.id, i.id',
    ),
  },
  {
    weight: 2,
    arbitrary: list(
      [aggregate, groupings, aggregate, terms.boolean],
      'SELECT o.status, GROUPING(o.status) AS g, $0 AS a FROM app::orders o WHERE $3 GROUP BY $1 HAVING $2 IS NOT NULL OR GROUPING(o.status) = 1',
    ),
  },
  {
    weight: 2,
    arbitrary: list(
      [any, any, terms.boolean, page],
      'SELECT DISTINCT ON ($0) $0 AS k, o.id, $1 AS a FROM app::orders o WHERE $2 ORDER BY $0, o.id DESC$3',
    ),
  },
  {
    weight: 1,
    arbitrary: list(
      [whole, one('UNION', 'UNION ALL', 'EXCEPT', 'INTERSECT', 'EXCEPT ALL'), whole],
      '$0 $1 $2',
    ),
  },
  {
    weight: 1,
    arbitrary: list(
      [one('JOIN', 'LEFT JOIN', 'RIGHT JOIN', 'FULL JOIN'), terms.boolean, any],
      'SELECT id, x.sku, $2 AS a FROM (SELECT * FROM app::orders o WHERE $1) o $0 app::items x USING (id) ORDER BY id',
    ),
  },
  {
    weight: 1,
    arbitrary: list(
      [any, terms.boolean, one('JOIN', 'LEFT JOIN')],
      "SELECT o.id, v.b, $0 AS a FROM app::orders o $2 (VALUES ('open', 1), ('sent', 2), (NULL, 3)) AS v (s, b) ON v.s = o.status AND $1 ORDER BY o.id",
    ),
  },
  {
    weight: 2,
    arbitrary: list(
      [any, aggregate, terms.boolean],
      'SELECT $0 AS k, $1 AS a, (SELECT count(*) FROM app::items i WHERE i.order_id > o.id) AS n FROM app::orders o WHERE $2 GROUP BY o.id, $0',
    ),
  },
  {
    weight: 1,
    arbitrary: list(
      [terms.number, aggregate, terms.boolean],
      'SELECT ($0) + 1 AS k, $1 AS a FROM app::orders o WHERE $2 GROUP BY $0 HAVING ($0) IS NOT NULL OR count(*) > 1',
    ),
  },
)
