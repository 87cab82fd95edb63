import { expect, test } from 'vitest'
import { compileQuery } from '../compile/compile-query.ts'
import { parseSql } from './parse-sql.ts'

const now = Date.UTC(2024, 5, 1)
const options = {
  schema: 'app',
  caps: { rows: 1_000, bytes: 1_000_000 },
  resolve: (model: string) => ({ schema: 'app', table: model.split('::').at(-1) ?? '' }),
}
const list = (count: number, make: (at: number) => string, between = ', ') =>
  Array.from({ length: count }, (_, at) => make(at)).join(between)
const regions = list(300, (at) => `WHEN 'country ${at}' THEN 'region ${at % 9}'`, ' ')
const codes = list(
  40,
  (at) => `WHEN code IN (${list(30, (of) => `'c${at * 30 + of}'`)}) THEN 'group ${at}'`,
  ' ',
)
const groups = (count: number) => list(count, (at) => `g${at}`)

/** Statements as long as reports and their generators write them. */
const statements: Readonly<Record<string, string>> = {
  'a CASE of 300 names that is grouped by': `SELECT CASE country ${regions} ELSE 'other' END AS region, sum(amount) AS n FROM app::s GROUP BY CASE country ${regions} ELSE 'other' END`,
  'a CASE of 40 lists of codes': `SELECT CASE ${codes} ELSE 'other' END AS kind, count(*) AS n FROM app::s GROUP BY CASE ${codes} ELSE 'other' END ORDER BY 2 DESC`,
  '200 counts with FILTER': `SELECT day, ${list(200, (at) => `count(*) FILTER (WHERE status = 's${at}') AS s${at}`)} FROM app::s GROUP BY day ORDER BY day`,
  'a pivot of 200 columns': `SELECT region, country, ${list(200, (at) => `sum(CASE WHEN month = ${at} THEN amount ELSE 0 END) AS m${at}`)} FROM app::s GROUP BY region, country ORDER BY 1, 2`,
  '100 ratios': `SELECT region, ${list(100, (at) => `round(100.0 * sum(a${at}) / nullif(sum(b${at}), 0), 2) AS p${at}`)} FROM app::s GROUP BY region`,
  '100 groups with 30 windows over their sums': `SELECT ${groups(100)}, ${list(30, (at) => `sum(sum(a${at})) OVER (PARTITION BY g${at}) AS w${at}`)} FROM app::s GROUP BY ${groups(100)}`,
  '100 groups that are named by their numbers': `SELECT ${list(100, (at) => `coalesce(nullif(trim(g${at}::text), ''), 'none') AS g${at}`)}, count(*) AS n FROM app::s GROUP BY ${list(100, (at) => `${at + 1}`)} ORDER BY ${list(100, (at) => `${at + 1}`)}`,
  '150 running averages': `SELECT id, ${list(150, (at) => `round(avg(f${at}) OVER (PARTITION BY region ORDER BY day ROWS BETWEEN 6 PRECEDING AND CURRENT ROW), 2) AS s${at}`)} FROM app::s`,
  '10,000 numbers of IN': `SELECT * FROM app::s WHERE id IN (${list(10_000, (at) => `${at}`)})`,
  '3,000 names of IN': `SELECT * FROM app::s WHERE lower(name) IN (${list(3_000, (at) => `'name ${at}'`)})`,
  '500 dates of IN': `SELECT * FROM app::s WHERE day IN (${list(500, (at) => `'2024-01-${1 + (at % 28)}'::date`)})`,
  '400 rows of IN': `SELECT * FROM app::s WHERE (a, b) IN (${list(400, (at) => `(${at}, 'x${at}')`)})`,
  '400 alternatives': `SELECT * FROM app::s WHERE ${list(400, (at) => `(a = ${at} AND b = 'n${at}')`, ' OR ')}`,
  'UNION ALL of 60': `${list(60, (at) => `SELECT 's${at}' AS source, name, amount::numeric AS amount, at FROM app::s WHERE kind = 'k${at}'`, ' UNION ALL ')} ORDER BY amount DESC`,
  'UNION ALL of 50 with 20 columns': list(
    50,
    (at) => `SELECT ${groups(20)} FROM app::s WHERE kind = 'k${at}'`,
    ' UNION ALL ',
  ),
  '20 common tables that are joined': `WITH base AS (SELECT region, day::date AS day, amount::numeric AS amount FROM app::s)${list(20, (at) => `, c${at} AS (SELECT region, count(*) AS n, sum(amount) AS s FROM base WHERE day >= date '2024-01-01' GROUP BY region)`, '')} SELECT b.region, ${list(20, (at) => `c${at}.n AS n${at}, coalesce(c${at}.s, 0) AS s${at}`)} FROM (SELECT DISTINCT region FROM base) AS b ${list(20, (at) => `LEFT JOIN c${at} ON c${at}.region = b.region`, ' ')} ORDER BY 1`,
  '10 FULL JOINs USING three columns': `SELECT region, day, kind, ${list(10, (at) => `t${at}.a AS a${at}`)} FROM app::s AS t0 ${list(9, (at) => `FULL JOIN app::s AS t${at + 1} USING (region, day, kind)`, ' ')} ORDER BY region, day, kind`,
  'objects in objects': `SELECT ${list(12, (at) => `jsonb_build_object('id', id, 'parts', jsonb_build_object(${list(15, (of) => `'k${of}', coalesce(f${of}, g${of}::text)`)}), 'list', jsonb_build_array(${list(8, (of) => `h${of}`)})) AS o${at}`)} FROM app::s`,
  'lists of 15 sub-queries': `SELECT o.id, ${list(15, (at) => `(SELECT jsonb_agg(jsonb_build_object(${list(8, (of) => `'k${of}', t.f${of}`)}) ORDER BY t.n) FROM app::p AS t WHERE t.owner = o.id AND t.kind = 'k${at}') AS l${at}`)} FROM app::s AS o`,
  'a text of 150 fields': `SELECT ${list(150, (at) => `coalesce(f${at}::text, '')`, " || ',' || ")} AS line FROM app::s`,
  'a sub-query beside 100 groups': `SELECT ${list(100, (at) => `o.g${at}`)}, (SELECT max(t.n) FROM app::p AS t WHERE t.g = o.g0) AS m FROM app::s AS o GROUP BY ${list(100, (at) => `o.g${at}`)}`,
}

test.each(Object.entries(statements))('a large statement is possible: %s', async (_, text) => {
  const query = await parseSql(text, { now })
  expect(compileQuery({ ...query, limit: 10 }, options).text).toBeTruthy()
})
