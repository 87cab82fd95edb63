import { limits } from '@tollbase/contract/limits'
import { awaitTurn } from '../base/await-turn.ts'
import { Fault } from '../base/fault.ts'
import type { Definitions } from './catalog.ts'
import type { Definition } from './definition-entry.ts'
import type { DefinitionKind } from './definitions.ts'
import { toKeptQuery } from './stored-query.ts'

/** An empty object takes 64 bytes, and a number, a short text or a member's place some 24 beside its characters. */
const groupBytes = 64
const valueBytes = 24
/** A view is kept with its plan, which takes up to eight times the memory of its definition. */
const viewFactor = 8
/** Bytes that are counted in one turn, and those that stand for the look at a definition that was counted before. */
const bytesAtOnce = 1024 * 1024
const knownBytes = 64

/**
 * Refuses definitions (409) with which all that an application has defined would take more memory than it may: the
 * definitions of each open application are in memory whole. A change that makes them smaller is never refused. `reserved`
 * bytes are kept free for work that was begun.
 */
export async function refuseTooManyDefinitions(
  catalog: Definitions,
  definitions: readonly Definition[],
  reserved: number,
): Promise<void> {
  const needed = sumGrowth(catalog, definitions)
  if (needed <= 0) return
  const used = (await sumDefinitionBytes(catalog)) + reserved
  const { definitionsBytesMax: max } = limits
  if (used + needed <= max) return
  throw new Fault('CONFLICT', {
    message: `All definitions of an application together may take ${max} bytes of memory; those of this one take ${used}, and this needs ${needed} more. Delete queries, old versions of queries, views or collections, or define less: smaller schemas, fewer values of parameters, shorter examples`,
    details: { limit: max, used, needed },
  })
}

/** Sums up the bytes that definitions add to those in whose place they come; below 0 where they take less. */
export function sumGrowth(catalog: Definitions, definitions: readonly Definition[]): number {
  return definitions.reduce((sum, one) => sum + computeGrowth(catalog, one), 0)
}

/**
 * Sums up the bytes of memory that the definitions of an application stand for: those of the characters of their JSON,
 * 64 for each object and list in it, and 24 for each other value. Examples of queries count their characters alone,
 * views eight times, and the content of data sets is not in memory.
 */
export async function sumDefinitionBytes(catalog: Definitions): Promise<number> {
  let sum = 0
  let sinceTurn = 0
  for (const [body, factor] of iterateBodies(catalog)) {
    const before = known.get(body)
    const bytes = before ?? countBytes(body)
    if (before === undefined) known.set(body, bytes)
    sum += bytes * factor
    sinceTurn += before === undefined ? bytes : knownBytes
    if (sinceTurn < bytesAtOnce) continue
    sinceTurn = 0
    await awaitTurn()
  }
  return sum
}

/** The catalog keeps a definition until another one takes its place. */
const known = new WeakMap<object, number>()

function* iterateBodies(catalog: Definitions): Generator<readonly [object, number]> {
  const { collections, indexes, relations, migrations, resealings, dataSets, grants } = catalog
  for (const kept of [collections, indexes, relations, migrations, resealings, dataSets, grants])
    for (const body of kept.values()) yield [body, 1]
  for (const versions of catalog.queries.values()) for (const body of versions) yield [body, 1]
  for (const { view } of catalog.views.values()) yield [view, viewFactor]
  yield [catalog.pricing, 1]
  yield [catalog.encryption, 1]
}

/** Computes the bytes that a definition adds to those of the one in whose place it comes. */
function computeGrowth(catalog: Definitions, one: Definition): number {
  const old = finders[one.kind](catalog, one.id)
  const factor = one.kind === 'view' ? viewFactor : 1
  const after = one.body === undefined ? 0 : countBytes(toKept(one) ?? one.body)
  return (after - (old === undefined ? 0 : countBytes(old))) * factor
}

/** Gives what the catalog keeps of a new definition, where that is not all of it. */
function toKept({ kind, body }: Definition): object | undefined {
  if (kind === 'query') return body && toKeptQuery(body)
  if (kind !== 'data_set' || body === undefined) return undefined
  const { entries: _, ...kept } = body
  return kept
}

const finders: {
  readonly [K in DefinitionKind]: (catalog: Definitions, id: string) => object | undefined
} = {
  collection: ({ collections }, id) => collections.get(id),
  index: ({ indexes }, id) => indexes.get(id),
  relation: ({ relations }, id) => relations.get(id),
  migration: ({ migrations }, id) => migrations.get(id),
  resealing: ({ resealings }, id) => resealings.get(id),
  data_set: ({ dataSets }, id) => dataSets.get(id),
  grant: ({ grants }, id) => grants.get(id),
  view: ({ views }, id) => views.get(id)?.view,
  query: ({ queries }, id) => {
    const [name = '', version] = id.split('@')
    return queries.get(name)?.find((one) => one.version === Number(version))
  },
  pricing: ({ pricing }) => pricing,
  encryption: ({ encryption }) => encryption,
}

function countBytes(value: unknown): number {
  if (typeof value === 'string') return valueBytes + value.length
  if (typeof value !== 'object' || value === null) return valueBytes
  let bytes = groupBytes
  if (Array.isArray(value)) for (const item of value) bytes += countBytes(item)
  else for (const [name, member] of Object.entries(value)) bytes += name.length + countBytes(member)
  return bytes
}
