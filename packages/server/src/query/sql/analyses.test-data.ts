/** Statements as people write them who analyze data, in forms that the other lists lack; see accepted.test-data.ts. */
export const analyses: readonly string[] = [
  "SELECT id, to_char(amount, 'FM999,990.00') AS a, to_char(amount, '0000.9') AS b, to_char(- amount, 'S99D9') AS c FROM app::orders ORDER BY id",
  `SELECT to_char(1234567.891, 'FM$9,999,999.00') AS a, to_char(-0.5, 'FM990.0%') AS b, to_char(12, '9') AS c, to_char(-7, '999PR') AS d, to_char(0.256 * 100, 'FM990.0" percent"') AS e, to_char(3, '"n"00MI') AS f, to_char(4, 'S9') AS g, to_char(1e20, '9G999') AS h, to_char(NULL::numeric, '9') AS i`,
  "SELECT to_char(at, 'YYYY-MM') AS month, to_char(sum(amount), 'FM999,990.00') AS total FROM app::orders GROUP BY 1 ORDER BY 1",
  "SELECT trim(to_char(amount, '999990.00')) AS a FROM app::orders ORDER BY id",
  "SELECT id, substring(status FROM 'o(p|s)e') AS a, substring(status, '[a-m]+') AS b, substring(status FROM 2 FOR 3) AS c FROM app::orders ORDER BY id",
  'SELECT customer, array_agg(DISTINCT status ORDER BY status) AS a, array_agg(DISTINCT amount ORDER BY amount DESC) AS b, jsonb_agg(DISTINCT paid ORDER BY paid DESC NULLS LAST) AS c FROM app::orders GROUP BY customer ORDER BY customer',
  'SELECT array_agg(DISTINCT i.quantity ORDER BY i.quantity DESC) FILTER (WHERE i.price > 5) AS a, array_agg(DISTINCT o.at::date ORDER BY o.at::date) AS b FROM app::items i, app::orders o',
  'SELECT count(DISTINCT (customer, status)) AS a, count((customer, status)) AS b, count(DISTINCT (customer, amount)) FILTER (WHERE paid) AS c FROM app::orders',
  `SELECT (to_jsonb('{"a": {"b": [1]}}'::jsonb))['a']['b'] AS a, ('{"a": 1}'::jsonb)['x'] AS b`,
  'SELECT id, round(sin(amount)::numeric, 9) AS a, round(cos(radians(amount))::numeric, 9) AS b, round(degrees(atan2(amount, 3))::numeric, 9) AS c, round(cbrt(amount)::numeric, 9) AS d, round(tan(amount)::numeric, 6) AS e FROM app::orders ORDER BY id',
  'SELECT round((2 * 6371 * asin(sqrt(power(sin(radians((47.07 - 48.21) / 2)), 2) + cos(radians(48.21)) * cos(radians(47.07)) * power(sin(radians((15.44 - 16.37) / 2)), 2))))::numeric, 6) AS km, round(acos(0.5)::numeric, 12) AS a, round(atan(1)::numeric, 12) AS b, round(asin(1)::numeric, 12) AS c',
  "SELECT id FROM app::orders WHERE status ~ '\\yopen\\y' OR status ~ '\\Ylo\\Y' ORDER BY id",
  "SELECT coalesce(customer, 'all') AS customer, count(*) AS n FROM app::orders GROUP BY ROLLUP (orders.customer) ORDER BY 2, 1",
]
