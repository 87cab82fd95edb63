import { sql } from '../../packages/server/src/database/sql.ts'
import { withTestDatabase } from '../../packages/server/src/database/testing.ts'
import { createIndexStatement } from '../../packages/server/src/query/index-key.ts'
import { parseSql } from '../../packages/server/src/query/sql/parse-sql.ts'
import { planView } from '../../packages/server/src/views/view-program.ts'
import { enginePlace, run } from './engine-place.ts'

const records = Number(process.argv[2] ?? 100000)
const groups = Number(process.argv[3] ?? 1000)
const explain = process.argv[4]
const test = await withTestDatabase()
const db = test.database
const place = await enginePlace(test, 'p', ['a', 'b'], records)
const ex = (t: string) => db.execute(sql.compiled(t, []))
const fill = async (table: string, n: number) => {
  await ex(`INSERT INTO p.${table} (leaf, height, sequence, key, deleted, data, body)
   SELECT n, 1, 0, 'k' || n, false, body::jsonb, body FROM (SELECT n, format('{"id":"k%s","g":"g%s","n":%s,"t":"%s"}', n, n % ${groups}, n % 977, repeat('x', 200)) AS body FROM generate_series(0, ${n - 1}) AS n) AS m`)
}
const size = records
await fill('c_1', records)
await fill('c_2', groups)
await ex(`INSERT INTO p.collection_stats VALUES ('a', ${records}, 0, 0), ('b', ${groups}, 0, 0)`)
const rec = (i: number, g: number) => ({
  collection: 'a',
  key: `k${i}`,
  body: `{"id":"k${i}","g":"g${g}","n":${i % 977},"t":"${'x'.repeat(200)}"}`,
})
const views: Record<string, string> = {
  group: 'SELECT g, count(*) AS c, sum(n) AS s, avg(n) AS m FROM app::a GROUP BY g',
  groupx: 'SELECT g, count(*) AS c, min(n) AS l, max(n) AS h FROM app::a GROUP BY g',
  filter: 'SELECT * FROM app::a WHERE n > 900',
  join: 'SELECT a.id, a.n, b.n AS m FROM app::a a JOIN app::b b ON a.g = b.g',
  left: 'SELECT a.id, a.n, b.n AS m FROM app::a a LEFT JOIN app::b b ON a.g = b.g',
  joingroup:
    'SELECT b.id, count(*) AS c, sum(a.n) AS s FROM app::b b LEFT JOIN app::a a ON a.g = b.g GROUP BY b.id',
  top: 'SELECT * FROM app::a ORDER BY n DESC LIMIT 10',
  topgroup: 'SELECT g, sum(n) AS s FROM app::a GROUP BY g ORDER BY s DESC LIMIT 10',
}
const offset = { v: records }
let number = 0
const time = async (w: () => Promise<unknown>) => {
  const t = performance.now()
  await w()
  return performance.now() - t
}
const med = (l: number[]) => {
  const s = l.toSorted((a, b) => a - b)
  return s[0]!.toFixed(2) + '|' + s[l.length >> 1]!.toFixed(2)
}
// the place counts entries from 0: fake
await db.execute(sql`SELECT 1`)
await place.transaction(async (tx) => {
  await tx.execute(sql`SELECT 1`)
})
;(place as any).skip?.(records)
for (const p of ['g', 'n'] as const)
  for (const t of ['c_1', 'c_2']) {
    const { text } = createIndexStatement({
      schema: 'p',
      table: t,
      name: `i_${t}_${p}`,
      paths: [[p]],
      kind: 'btree',
    })
    await ex(text)
  }
await ex('VACUUM ANALYZE p.c_1')
await ex('VACUUM ANALYZE p.c_2')
const only = process.argv[5]?.split(',')
for (const [name, text] of Object.entries(views)) {
  if (only && !only.includes(name)) continue
  number += 1
  const program = planView(await parseSql(text, { now: 0 }))
  const own = place.view(number)
  await place.transaction((tx) => run(tx, program.tables(own)))
  const fillMs = await time(() =>
    place.transaction((tx) =>
      run(
        tx,
        program.fill(own, () => place.size()),
      ),
    ),
  )
  for (const t of program.tableNames(number)) await ex(`ANALYZE p.${t}`)
  const base: number[] = [],
    adv: number[] = []
  let steps: number[][] = []
  const kind = ['insert', 'update', 'b']
  for (const k of kind) {
    base.length = 0
    adv.length = 0
    steps = []
    for (let r = 0; r < 24; r++) {
      await place.transaction(async (tx) => {
        pid = Number((await tx.query<any>(sql`SELECT pg_backend_pid() AS p`))[0].p)
        const from = place.size()
        const writes = Array.from({ length: 100 }, (_, i) =>
          k === 'insert'
            ? rec(from + i, (from + i * 7) % groups)
            : k === 'update'
              ? rec(((r * 100 + i) * 37) % records, i % groups)
              : { ...rec((r * 100 + i) % groups, (r * 100 + i) % groups), collection: 'b' },
        )
        base.push(await time(() => place.write(tx, writes)))
        if (process.env.GENERIC) await tx.execute(sql`SELECT set_config('plan_cache_mode', 'force_generic_plan', true), set_config('enable_seqscan','off',true), set_config('enable_hashjoin','off',true), set_config('enable_mergejoin','off',true)`)
        const st = program.advance(
          own,
          () => from,
          () => place.size(),
        )
        if (explain && r === 12)
          for (const s of st) {
            const rows = await tx.query(
              sql.compiled(`EXPLAIN (ANALYZE, BUFFERS OFF) ${s.text}`, s.values),
            )
            console.log(rows.map((x: any) => x['QUERY PLAN'].slice(0, 200)).join('\n'))
          }
        else {
          const one: number[] = []
          adv.push(
            await time(async () => {
              for (const s of st) one.push(await time(() => run(tx, [s])))
            }),
          )
          steps.push(one)
        }
      })
    }
    console.log(
      name,
      k,
      'fill',
      fillMs.toFixed(0),
      'base',
      med(base),
      'advance',
      med(adv),
      'steps',
      steps
        .at(-1)!
        .map((x) => x.toFixed(2))
        .join(' '),
    )
  }
}
await test.drop()
process.exit(0)
