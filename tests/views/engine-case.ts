import type { Queryable } from '../../packages/server/src/database/database.ts'
import { sql } from '../../packages/server/src/database/sql.ts'
import type { TestDatabase } from '../../packages/server/src/database/testing.ts'
import { parseSql } from '../../packages/server/src/query/sql/parse-sql.ts'
import { planView } from '../../packages/server/src/views/view-program.ts'
import { type Draw, drawQuery } from './draw-query.ts'
import { chanceOf } from './engine-chance.ts'
import { begin, bring, checkFill, type EngineView, settle } from './engine-check.ts'
import { type EnginePlace, enginePlace } from './engine-place.ts'
import { type Bounds, followed } from './kept-histories.ts'
import { Wrong } from './mismatch.ts'
import { type Definition, definitionOf } from './print-query.ts'
import type { Query } from './query-tree.ts'
import { blocksOf, collections, type StoredRecord, simplerRecord, writesOf } from './records.ts'
import { eachSimpler, fewer } from './shrink.ts'
import { simplerDefinition } from './simplify-query.ts'

/** A history of views that are kept in this process, without a service around them. */
export type EngineCase<Of = Definition> = {
  /** Fields of which each value is had by one record, the newest. */
  readonly unique: readonly { readonly collection: string; readonly field: string }[]
  readonly steps: readonly EngineStep<Of>[]
}

/** `share` is how far a view goes: percent of the entries between where it is and the end. */
type EngineStep<Of> =
  /** A block. */
  | { readonly do: 'write'; readonly records: readonly StoredRecord[] }
  | { readonly do: 'create'; readonly view: number; readonly share: number; readonly query: Of }
  | { readonly do: 'advance' | 'fill'; readonly view: number; readonly share: number }
  /** Whether statements are planned as the service has them planned, from now on. */
  | { readonly do: 'plan'; readonly asService: boolean }

const engineHistory = { views: 10, rounds: 16 }

/** Follows the history of a seed; one that fails is made simpler and kept, and rejects. */
export async function followEngine(
  test: TestDatabase,
  seed: number,
  bounds: Bounds,
): Promise<void> {
  const history = {
    runner: 'engine' as const,
    seed,
    drawn: drawEngineCase(seed),
    simpler: simplerEngineCase,
    told: toldEngineCase,
    run: (one: EngineCase) => runEngineCase(test, one),
  }
  await followed(history, bounds)
}

/** One to three blocks a round, after which most views are brought to the end, or on a part of the way. */
export function drawEngineCase(seed: number): EngineCase<Query> {
  const chance = chanceOf(seed)
  const draw: Draw = { chance, named: new Map(), next: 0 }
  const block = blocksOf(chance)
  const views = Array.from({ length: engineHistory.views }, (_, view) => view)
  const steps: EngineStep<Query>[] = [{ do: 'write', records: block() }]
  for (const view of views)
    steps.push({ do: 'create', view, share: chance.below(101), query: drawQuery(draw) })
  for (let round = 0; round < engineHistory.rounds; round += 1) {
    const blocks = 1 + chance.below(3)
    for (let made = 0; made < blocks; made += 1) steps.push({ do: 'write', records: block() })
    steps.push({ do: 'plan', asService: chance.happens(75) })
    for (const view of views) {
      if (chance.happens(15)) continue
      const share = chance.happens(70) ? 100 : chance.below(101)
      steps.push({ do: chance.happens(5) ? 'fill' : 'advance', view, share })
    }
  }
  const unique = chance.happens(30) ? [{ collection: chance.one(collections), field: 'm' }] : []
  return { unique, steps }
}

/** With the SQL of its queries; throws where one of them has none. */
export function toldEngineCase({ unique, steps }: EngineCase<Query>): EngineCase {
  const told = steps.map((step): EngineStep<Definition> => {
    return step.do === 'create' ? { ...step, query: definitionOf(step.query) } : step
  })
  return { unique, steps: told }
}

let places = 0

/** Throws Wrong where a view is not what its definition says at the position where it is. */
export async function runEngineCase(
  test: TestDatabase,
  { unique, steps }: EngineCase,
): Promise<void> {
  places += 1
  const schema = `history_${places}`
  const place = await enginePlace(test, schema, { names: collections, unique })
  const run: Run = { place, views: new Map() }
  try {
    await place.transaction(async (tx) => {
      for (const step of steps) await follow(tx, run, step)
      for (const view of run.views.values()) await checkFill(tx, place, view)
    })
  } finally {
    await test.database.execute(sql`DROP SCHEMA ${sql.id(schema)} CASCADE`)
  }
}

type Run = { readonly place: EnginePlace; readonly views: Map<number, EngineView> }

/** Steps of views that are not there, in a case that was made simpler, do nothing. */
async function follow(
  tx: Queryable,
  { place, views }: Run,
  step: EngineStep<Definition>,
): Promise<void> {
  switch (step.do) {
    case 'write':
      await place.write(tx, writesOf(step.records))
      return
    case 'plan':
      await settle(tx, step.asService)
      return
    case 'create': {
      const { ours } = step.query
      const program = planView(await parseSql(ours, { now: 0 }))
      if (program.obstacle !== undefined)
        throw new Wrong('obstacle', `${program.obstacle}: ${ours}`)
      const plain = step.query.plain.replaceAll('live.', `${place.schema}.`)
      const at = partOf(place.size(), step.share)
      const about = `view ${step.view}: ${ours}`
      const view: EngineView = { program, number: step.view, at, about, plain }
      views.set(step.view, view)
      await begin(tx, place, view)
      return
    }
    case 'advance':
    case 'fill': {
      const view = views.get(step.view)
      if (view === undefined) return
      const to = view.at + partOf(place.size() - view.at, step.share)
      await bring(tx, place, { view, to, isFill: step.do === 'fill' })
    }
  }
}

function partOf(count: number, share: number): number {
  return Math.round((count * share) / 100)
}

export function* simplerEngineCase(one: EngineCase<Query>): Generator<EngineCase<Query>> {
  const { unique, steps } = one
  for (const number of viewsOf(steps))
    yield { ...one, steps: steps.filter((step) => !('view' in step) || step.view === number) }
  for (const some of fewer(steps)) yield { ...one, steps: some }
  for (const some of fewer(unique)) yield { ...one, unique: some }
  for (const some of eachSimpler(steps, simplerStep)) yield { ...one, steps: some }
}

/** The views of a case that has several. */
function viewsOf(steps: readonly EngineStep<Query>[]): readonly number[] {
  const numbers = steps.flatMap((step) => (step.do === 'create' ? [step.view] : []))
  return numbers.length > 1 ? numbers : []
}

function* simplerStep(step: EngineStep<Query>): Generator<EngineStep<Query>> {
  if (step.do === 'plan') return
  if (step.do === 'write') {
    for (const records of fewer(step.records, 1)) yield { ...step, records }
    for (const records of eachSimpler(step.records, simplerRecord)) yield { ...step, records }
    return
  }
  if (step.share < 100) yield { ...step, share: 100 }
  if (step.do === 'fill') yield { ...step, do: 'advance' }
  if (step.do === 'create')
    for (const query of simplerDefinition(step.query)) yield { ...step, query }
}
