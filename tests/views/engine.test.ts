import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Queryable } from '../../packages/server/src/database/database.ts'
import { sql } from '../../packages/server/src/database/sql.ts'
import { type TestDatabase, withTestDatabase } from '../../packages/server/src/database/testing.ts'
import { parseSql } from '../../packages/server/src/query/sql/parse-sql.ts'
import type { CompiledStatement } from '../../packages/server/src/query/sql-text.ts'
import { planView, type ViewProgram } from '../../packages/server/src/views/view-program.ts'
import { chanceOf } from './engine-chance.ts'
import {
  type Definition,
  type Draw,
  definition,
  topDefinition,
  topRecords,
  wholeRecords,
} from './engine-definitions.ts'
import { block, collections } from './engine-history.ts'
import { type EnginePlace, enginePlace, run } from './engine-place.ts'

/** How many histories, each with so many views that go along with it for so many steps. */
const histories = Number(process.env.TOLLBASE_VIEW_HISTORIES ?? 20)
const viewsOfHistory = 16
const stepsOfHistory = 8

/** Seeds of histories that found a bug. */
const kept: readonly number[] = []

type View = {
  readonly definition: Definition
  readonly program: ViewProgram
  readonly number: number
  /** Where it is. */
  at: number
}

let test: TestDatabase

beforeAll(async () => {
  test = await withTestDatabase()
})
afterAll(async () => test?.drop())

describe('a view kept by changes', () => {
  const first = Number(process.env.TOLLBASE_VIEW_SEED ?? 20_261_121)
  const seeds = [...kept, ...Array.from({ length: histories }, (_, at) => first + at)]
  it.each(seeds)('equals its definition at every position: history %i', async (seed) => {
    await live(seed)
  })
})

async function live(seed: number): Promise<void> {
  const schema = `h${seed}`
  const place = await enginePlace(test, schema, collections)
  const chance = chanceOf(seed)
  const draw: Draw = { chance, schema, next: 0 }
  const views: View[] = []
  await place.transaction((tx) => place.write(tx, block(chance)))
  for (let number = 0; number < viewsOfHistory; number += 1) {
    const drawn = chance.one([
      definition,
      definition,
      definition,
      topDefinition,
      topRecords,
      wholeRecords,
    ])(draw)
    const program = planView(await parseSql(drawn.ours, { now: 0 }))
    expect(program.obstacle, drawn.ours).toBeUndefined()
    const at = chance.below(place.size() + 1)
    views.push({ definition: drawn, program, number, at })
  }
  await place.transaction(async (tx) => {
    for (const view of views) {
      const own = place.view(view.number)
      await told(view, seed, () =>
        run(tx, [...view.program.tables(own), ...view.program.fill(own, () => view.at)]),
      )
      await check(tx, { view, place, seed })
    }
  })
  for (let step = 0; step < stepsOfHistory; step += 1) {
    await place.transaction(async (tx) => {
      const blocks = 1 + chance.below(3)
      for (let made = 0; made < blocks; made += 1) await place.write(tx, block(chance))
      for (const view of views) {
        if (chance.happens(15)) continue
        const to = chance.happens(70)
          ? place.size()
          : view.at + chance.below(place.size() - view.at + 1)
        const own = place.view(view.number)
        const from = view.at
        const isFill = view.program.obstacle !== undefined || chance.happens(5)
        const statements = isFill
          ? view.program.fill(own, () => to)
          : view.program.advance(
              own,
              () => from,
              () => to,
            )
        await told(view, seed, () => run(tx, statements))
        view.at = to
        await check(tx, { view, place, seed })
      }
    })
  }
  await place.transaction(async (tx) => {
    for (const view of views) await checkFill(tx, { view, place, seed })
    await tx.execute(sql`DROP SCHEMA ${sql.id(schema)} CASCADE`)
  })
}

async function told(view: View, seed: number, work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    throw new Error(`seed ${seed}: ${view.definition.ours}`, { cause: error })
  }
}

type Checking = { readonly view: View; readonly place: EnginePlace; readonly seed: number }

/** To the byte what a recomputation gives; and where the position is now, what plain SQL gives. */
async function check(tx: Queryable, { view, place, seed }: Checking): Promise<void> {
  const { definition: drawn, program, number, at } = view
  const own = place.view(number)
  const table = `${own.schema}.v_${number}`
  const recomputed = program.recompute(own, () => at)
  const plain = `SELECT ${drawn.columns.length === 0 ? 'plain.data' : 'to_jsonb(plain)'} AS row FROM (${drawn.plain}) AS plain`
  const difference = (one: string, other: string) =>
    `(SELECT coalesce(jsonb_agg(row), '[]') FROM (${one} EXCEPT ALL ${other}) AS difference(row))`
  const view1 = `SELECT data FROM ${table} WHERE NOT deleted`
  const isNow = at === place.size()
  const text = `SELECT coalesce((SELECT array_agg(body ORDER BY body COLLATE "C") FROM ${table} WHERE NOT deleted), '{}') AS have,
 coalesce((SELECT array_agg(body ORDER BY body COLLATE "C") FROM (${recomputed.text}) AS r), '{}') AS want
 ${isNow ? `, ${difference(plain, view1)} AS missing, ${difference(view1, plain)} AS surplus` : ''}`
  const [row] = await query(tx, { text, values: recomputed.values })
  const about = `seed ${seed}, view ${number} at ${at}: ${drawn.ours}`
  expect(row?.have, about).toEqual(row?.want)
  if (isNow) expect(`${row?.missing} ${row?.surplus}`, about).toBe('[] []')
}

/** A fill finds nothing to do: the tables are as it would make them, with no row made anew. */
async function checkFill(tx: Queryable, checking: Checking): Promise<void> {
  const { view, place } = checking
  const own = place.view(view.number)
  const tables = view.program.tableNames(view.number).filter((name) => !/^s_.*d$/.test(name))
  const all = tables.map(
    (name) => `SELECT '${name}' AS name, t::text AS line FROM ${own.schema}.${name} AS t`,
  )
  const content = { text: `${all.join(' UNION ALL ')} ORDER BY name, line`, values: [] }
  const before = await query(tx, content)
  await run(
    tx,
    view.program.fill(own, () => view.at),
  )
  const about = `seed ${checking.seed}, filled: ${view.definition.ours}`
  expect(await query(tx, content), about).toEqual(before)
}

async function query(tx: Queryable, { text, values }: CompiledStatement) {
  return tx.query<Record<string, unknown>>(sql.compiled(text, values))
}
