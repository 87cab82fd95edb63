import type { Queryable } from '../../packages/server/src/database/database.ts'
import { sql } from '../../packages/server/src/database/sql.ts'
import type { TestDatabase } from '../../packages/server/src/database/testing.ts'
import { parseSql } from '../../packages/server/src/query/sql/parse-sql.ts'
import { planView } from '../../packages/server/src/views/view-program.ts'
import { type Draw, drawQuery } from './draw-query.ts'
import { makeChance } from './engine-chance.ts'
import { begin, bring, checkFill, type EngineView, settle } from './engine-check.ts'
import { type EnginePlace, makeEnginePlace } from './engine-place.ts'
import { type Bounds, followHistory } from './kept-histories.ts'
import { Mismatch } from './mismatch.ts'
import { type Definition, printDefinition } from './print-query.ts'
import type { Query } from './query-tree.ts'
import {
  collections,
  makeBlockSource,
  type StoredRecord,
  simplifyRecord,
  toWrites,
} from './records.ts'
import { iterateFewer, simplifyEach } from './shrink.ts'
import { simplifyDefinition } from './simplify-query.ts'

/** A history of views that are kept up to date in this process, without a service around them. */
export type EngineCase<Of = Definition> = {
  /** The unique fields: each value belongs to one record, the newest. */
  readonly unique: readonly { readonly collection: string; readonly field: string }[]
  readonly steps: readonly EngineStep<Of>[]
}

/** `share` is how far a view goes: percent of the entries between where it is and the end. */
type EngineStep<Of> =
  /** A block. */
  | { readonly do: 'write'; readonly records: readonly StoredRecord[] }
  | { readonly do: 'create'; readonly view: number; readonly share: number; readonly query: Of }
  | { readonly do: 'advance' | 'fill'; readonly view: number; readonly share: number }
  /** Statements are planned as the service has them planned, from now on. */
  | { readonly do: 'plan'; readonly asService: boolean }

const engineHistory = { views: 10, rounds: 16 }

/** Follows the history of a seed; a failing history is simplified and kept, and then this rejects. */
export async function followEngine(
  test: TestDatabase,
  seed: number,
  bounds: Bounds,
): Promise<void> {
  const history = {
    runner: 'engine' as const,
    seed,
    drawn: drawEngineCase(seed),
    simpler: simplifyEngineCase,
    print: printEngineCase,
    run: (one: EngineCase) => runEngineCase(test, one),
  }
  await followHistory(history, bounds)
}

/** Draws one to three blocks a round, after which most views are brought to the end, or part of the way. */
export function drawEngineCase(seed: number): EngineCase<Query> {
  const chance = makeChance(seed)
  const draw: Draw = { chance, named: new Map(), next: 0 }
  const block = makeBlockSource(chance)
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

/** Prints the SQL of the queries; throws where one of them has none. */
export function printEngineCase({ unique, steps }: EngineCase<Query>): EngineCase {
  const printed = steps.map((step): EngineStep<Definition> => {
    return step.do === 'create' ? { ...step, query: printDefinition(step.query) } : step
  })
  return { unique, steps: printed }
}

let places = 0

/** Throws Mismatch where a view differs from its definition at the position of the view. */
export async function runEngineCase(
  test: TestDatabase,
  { unique, steps }: EngineCase,
): Promise<void> {
  places += 1
  const schema = `history_${places}`
  const place = await makeEnginePlace(test, schema, { names: collections, unique })
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
      await place.write(tx, toWrites(step.records))
      return
    case 'plan':
      await settle(tx, step.asService)
      return
    case 'create': {
      const { ours } = step.query
      const program = planView(await parseSql(ours, { now: 0 }))
      if (program.notIncrementalReason !== undefined)
        throw new Mismatch('obstacle', `${program.notIncrementalReason}: ${ours}`)
      const plain = step.query.plain.replaceAll('live.', `${place.schema}.`)
      const at = computeShare(place.size(), step.share)
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
      const to = view.at + computeShare(place.size() - view.at, step.share)
      await bring(tx, place, { view, to, isFill: step.do === 'fill' })
    }
  }
}

function computeShare(count: number, share: number): number {
  return Math.round((count * share) / 100)
}

export function* simplifyEngineCase(one: EngineCase<Query>): Generator<EngineCase<Query>> {
  const { unique, steps } = one
  for (const number of listViews(steps))
    yield { ...one, steps: steps.filter((step) => !('view' in step) || step.view === number) }
  for (const some of iterateFewer(steps)) yield { ...one, steps: some }
  for (const some of iterateFewer(unique)) yield { ...one, unique: some }
  for (const some of simplifyEach(steps, simplerStep)) yield { ...one, steps: some }
}

/** The views of a case that has several. */
function listViews(steps: readonly EngineStep<Query>[]): readonly number[] {
  const numbers = steps.flatMap((step) => (step.do === 'create' ? [step.view] : []))
  return numbers.length > 1 ? numbers : []
}

function* simplerStep(step: EngineStep<Query>): Generator<EngineStep<Query>> {
  if (step.do === 'plan') return
  if (step.do === 'write') {
    for (const records of iterateFewer(step.records, 1)) yield { ...step, records }
    for (const records of simplifyEach(step.records, simplifyRecord)) yield { ...step, records }
    return
  }
  if (step.share < 100) yield { ...step, share: 100 }
  if (step.do === 'fill') yield { ...step, do: 'advance' }
  if (step.do === 'create')
    for (const query of simplifyDefinition(step.query)) yield { ...step, query }
}
