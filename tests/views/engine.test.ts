import { afterAll, beforeAll, expect, it } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { type TestDatabase, withTestDatabase } from '../../packages/server/src/database/testing.ts'
import { parseSql } from '../../packages/server/src/query/sql/parse-sql.ts'
import { planView } from '../../packages/server/src/views/view-program.ts'
import { type Chance, chanceOf } from './engine-chance.ts'
import { begin, bring, checkFill, type EngineView, settle } from './engine-check.ts'
import {
  type Definition,
  type Draw,
  definition,
  topDefinition,
  topRecords,
  wholeRecords,
} from './engine-definitions.ts'
import { block, collections } from './engine-history.ts'
import { type EnginePlace, enginePlace } from './engine-place.ts'

/** More by hand: TOLLBASE_VIEW_HISTORIES=1000 TOLLBASE_VIEW_SEED=5000 npx vitest run tests/views/engine.test.ts */
const histories = Number(process.env.TOLLBASE_VIEW_HISTORIES ?? 15)
const firstSeed = Number(process.env.TOLLBASE_VIEW_SEED ?? 20_261_121)
const viewsOfHistory = 10
const stepsOfHistory = 16

/** Seeds of histories that found a bug. */
const kept: readonly number[] = []

let test: TestDatabase

beforeAll(async () => {
  test = await withTestDatabase()
})
afterAll(async () => test?.drop())

const seeds = [...kept, ...Array.from({ length: histories }, (_, at) => firstSeed + at)]

it.each(seeds)(
  'views kept by changes equal their definitions at every position: history %i',
  async (seed) => {
    const schema = `h${seed}`
    const chance = chanceOf(seed)
    const unique = chance.happens(30) ? [{ collection: chance.one(collections), field: 'm' }] : []
    const place = await enginePlace(test, schema, { names: collections, unique })
    await place.transaction((tx) => place.write(tx, block(chance)))
    const views = await drawViews({ chance, schema, next: 0 }, place, seed)
    await place.transaction(async (tx) => {
      for (const view of views) await begin(tx, place, view)
    })
    for (let step = 0; step < stepsOfHistory; step += 1) await live(place, views, chance)
    await place.transaction(async (tx) => {
      for (const view of views) await checkFill(tx, place, view)
      await tx.execute(sql`DROP SCHEMA ${sql.id(schema)} CASCADE`)
    })
  },
)

async function drawViews(draw: Draw, place: EnginePlace, seed: number): Promise<EngineView[]> {
  const { chance } = draw
  const makers = [definition, definition, definition, topDefinition, topRecords, wholeRecords]
  const views: EngineView[] = []
  for (let number = 0; number < viewsOfHistory; number += 1) {
    const drawn = chance.one(makers)(draw)
    const program = planView(await parseSql(drawn.ours, { now: 0 }))
    expect(program.obstacle, drawn.ours).toBeUndefined()
    const at = chance.below(place.size() + 1)
    const about = `seed ${seed}, view ${number}: ${drawn.ours}`
    views.push({ program, number, at, about, plain: plainRows(drawn) })
  }
  return views
}

function plainRows({ columns, plain }: Definition): string {
  return `SELECT ${columns.length === 0 ? 'plain.data' : 'to_jsonb(plain)'} AS row FROM (${plain}) AS plain`
}

/** One to three blocks, after which most views are brought to the end, or on a part of the way, and some are filled. */
async function live(
  place: EnginePlace,
  views: readonly EngineView[],
  chance: Chance,
): Promise<void> {
  await place.transaction(async (tx) => {
    const blocks = 1 + chance.below(3)
    for (let made = 0; made < blocks; made += 1) await place.write(tx, block(chance))
    if (chance.happens(75)) await settle(tx)
    for (const view of views) {
      if (chance.happens(15)) continue
      const isWhole = chance.happens(70)
      const to = isWhole ? place.size() : view.at + chance.below(place.size() - view.at + 1)
      await bring(tx, place, { view, to, isFill: chance.happens(5) })
    }
  })
}
