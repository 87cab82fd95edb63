import type { TestService } from '../support/service.ts'
import { type Draw, drawCounted, drawQuery } from './draw-query.ts'
import { type Chance, makeChance } from './engine-chance.ts'
import { type Bounds, followHistory } from './kept-histories.ts'
import { type Definition, printDefinition } from './print-query.ts'
import { canFollow, countCollections, listNamed, type Query } from './query-tree.ts'
import { makeBlockSource, type StoredRecord, simplifyRecord } from './records.ts'
import { type Mode, runServiceCase, type ServiceCase, type ServiceStep } from './service-run.ts'
import { iterateFewer, simplifyEach } from './shrink.ts'
import { simplifyDefinition } from './simplify-query.ts'

const serviceHistory = { views: 8, rounds: 14 }
/** The most collections of a view that others may read: a query may have 16. */
const readCollectionsMax = 3

/** Concurrent steps do not happen twice in the same way. */
const attempts = 3

/** Follows the history of a seed; a failing history is simplified and kept, and then this rejects. */
export async function followService(
  service: TestService,
  seed: number,
  bounds: Bounds,
): Promise<void> {
  let isFirst = true
  const run = async (one: ServiceCase) => {
    const isRepeated = !isFirst && one.steps.some((step) => step.do === 'together')
    isFirst = false
    for (let made = 0; made < (isRepeated ? attempts : 1); made += 1)
      await runServiceCase(service, one)
  }
  const history = {
    runner: 'service' as const,
    seed,
    drawn: drawServiceCase(seed),
    simpler: simplerServiceCase,
    print: printServiceCase,
    run,
  }
  await followHistory(history, bounds)
}

type Drawing = {
  readonly chance: Chance
  readonly block: () => readonly StoredRecord[]
  readonly draw: Draw
  /** By name. */
  readonly views: Map<string, { readonly query: Query; readonly mode: Mode }>
  made: number
  isUnique: boolean
}

function drawServiceCase(seed: number): ServiceCase<Query> {
  const chance = makeChance(seed)
  const drawing: Drawing = {
    chance,
    block: makeBlockSource(chance),
    draw: { chance, named: new Map(), next: 0 },
    views: new Map(),
    made: 0,
    isUnique: false,
  }
  const steps: ServiceStep<Query>[] = [{ do: 'write', records: drawing.block() }]
  while (drawing.views.size < serviceHistory.views) steps.push(newView(drawing))
  for (let round = 0; round < serviceHistory.rounds; round += 1) {
    steps.push(...drawRound(drawing))
    for (const view of chance.some(lazyOnes(drawing), 0, 2)) steps.push({ do: 'refresh', view })
  }
  return { steps }
}

function drawRound(drawing: Drawing): readonly ServiceStep<Query>[] {
  const { chance, views, block } = drawing
  const kind = chance.below(100)
  if (kind < 60) return [{ do: 'write', records: block() }]
  if (kind < 78) return [burst(drawing)]
  if (kind < 86) {
    const free = [...views.keys()].filter((name) => listReaders(drawing, name).length === 0)
    return [defined(drawing, chance.one(free))]
  }
  if (kind < 91) {
    const name = chance.one([...views.keys()])
    for (const each of [name, ...listReaders(drawing, name)]) views.delete(each)
    return [{ do: 'drop', view: name }, newView(drawing)]
  }
  if (kind < 95 && !drawing.isUnique) {
    drawing.isUnique = true
    return [{ do: 'unique', collection: 'c', field: 'h' }]
  }
  return kind < 97 ? [] : [{ do: 'restart' }]
}

/** Draws writes, refreshes and a new view at the same time. */
function burst(drawing: Drawing): ServiceStep<Query> {
  const { chance, block } = drawing
  const names = chance.some(lazyOnes(drawing), 0, 2)
  const writes = Array.from({ length: 2 + chance.below(4) }, () => block())
  return {
    do: 'together',
    steps: [
      ...(chance.happens(50) ? [newView(drawing)] : []),
      ...writes.map((records) => ({ do: 'write' as const, records })),
      // Two of one view now and then.
      ...[...names, ...names.slice(0, 1)].map((view) => ({ do: 'refresh' as const, view })),
    ],
  }
}

function lazyOnes({ views }: Drawing): readonly string[] {
  return [...views].filter(([, { mode }]) => mode === 'lazy').map(([name]) => name)
}

function newView(drawing: Drawing): ServiceStep<Query> {
  drawing.made += 1
  return defined(drawing, `v${drawing.made}`)
}

function defined(drawing: Drawing, view: string): ServiceStep<Query> {
  const { chance, views } = drawing
  const readable = [...views].filter(
    ([name, { query }]) => name !== view && countCollections(query) <= readCollectionsMax,
  )
  const draw = {
    ...drawing.draw,
    named: new Map(readable.map(([name, { query }]) => [`app::${name}`, query])),
  }
  const query = chance.happens(12) ? drawCounted(draw) : drawQuery(draw)
  drawing.draw.next = draw.next
  const mode = canFollow(query) ? chance.one(['live', 'lazy'] as const) : 'lazy'
  views.set(view, { query, mode })
  return { do: 'define', view, mode, query }
}

/** Lists the views that read a view, directly or through others. */
function listReaders({ views }: Drawing, name: string): readonly string[] {
  return [...views]
    .filter(([, { query }]) => listNamed(query).some((each) => each.name === `app::${name}`))
    .map(([each]) => each)
}

function printServiceCase({ steps }: ServiceCase<Query>): ServiceCase {
  return { steps: steps.map(printStep) }
}

function printStep(step: ServiceStep<Query>): ServiceStep<Definition> {
  if (step.do === 'define') return { ...step, query: printDefinition(step.query) }
  return step.do === 'together' ? { ...step, steps: step.steps.map(printStep) } : step
}

function* simplerServiceCase({ steps }: ServiceCase<Query>): Generator<ServiceCase<Query>> {
  for (const some of iterateFewer(steps)) yield { steps: some }
  for (const [at, step] of steps.entries())
    if (step.do === 'together')
      yield { steps: [...steps.slice(0, at), ...step.steps, ...steps.slice(at + 1)] }
  for (const some of simplifyEach(steps, simplerStep)) yield { steps: some }
}

function* simplerStep(step: ServiceStep<Query>): Generator<ServiceStep<Query>> {
  switch (step.do) {
    case 'write':
      for (const records of iterateFewer(step.records, 1)) yield { ...step, records }
      for (const records of simplifyEach(step.records, simplifyRecord)) yield { ...step, records }
      return
    case 'define':
      for (const query of simplifyDefinition(step.query)) yield { ...step, query }
      return
    case 'together':
      for (const steps of iterateFewer(step.steps, 1)) yield { ...step, steps }
      for (const steps of simplifyEach(step.steps, simplerStep)) yield { ...step, steps }
      return
    case 'drop':
    case 'refresh':
    case 'unique':
    case 'restart':
      return
  }
}
