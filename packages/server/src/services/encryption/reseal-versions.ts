import { requirePresent } from '../../base/assert.ts'
import type { Definition } from '../../model/definition-entry.ts'
import { makeDefinitionEntry } from '../../model/definition-entry.ts'
import type { ResealingDefinition } from '../../model/definitions.ts'
import { addTokenFields } from '../../model/token-fields.ts'
import { expiredTable } from '../../projections/expiry.ts'
import {
  makeResealEntry,
  type ResealedVersion,
  readResealingLeaf,
  readUncopied,
} from '../../projections/reseal.ts'
import type { Tenant } from '../applications/tenants.ts'
import { buildSchemaIndexes } from '../collections/new-collection.ts'
import { runExclusively } from '../locks/exclusive-section.ts'
import type { ResealingPorts } from './resealing-ports.ts'

/** Versions that change their encryption at once, and their bytes. */
export const resealedVersionsMax = 500
export const resealedBytesMax = 1024 * 1024

/**
 * Copies a page of versions, sealed or opened, into the second table, and says how many. Where no more than a page is
 * left, it is copied while nobody else writes to the collection, and in the same block the collection has its other
 * form. Versions expire under the mutex of definitions too, so none expires between its read and its copy.
 */
export function copyPage(ports: ResealingPorts, tenant: Tenant, id: string): Promise<number> {
  return tenant.definitions.run(async () => {
    const resealing = tenant.data.catalog.resealings.get(id)
    if (resealing?.state !== 'copying') return 0
    const page = await readPage(ports, tenant, resealing)
    if (!page.all) return append(ports, tenant, { resealing, versions: page.versions })
    return runExclusively(tenant, { world: ports.world, collections: [id] }, async () => {
      const { versions, all } = await readPage(ports, tenant, resealing)
      const end = all ? await buildEnd(ports, tenant, resealing) : []
      return append(ports, tenant, { resealing, versions, end })
    })
  })
}

function readPage(
  { database }: ResealingPorts,
  { schema, data }: Tenant,
  { collection: id, number }: ResealingDefinition,
) {
  const { table } = requirePresent(data.catalog.byId.get(id), 'the collection')
  return readUncopied(database, schema, {
    from: table,
    to: `c_${number}`,
    rows: resealedVersionsMax,
    bytes: resealedBytesMax,
    expired: data.hasExpired ? expiredTable : undefined,
  })
}

async function append(
  { world }: ResealingPorts,
  tenant: Tenant,
  page: {
    readonly resealing: ResealingDefinition
    readonly versions: readonly ResealedVersion[]
    readonly end?: readonly Definition[]
  },
): Promise<number> {
  const { resealing, versions, end = [] } = page
  const { collection: id, action } = resealing
  const collection = requirePresent(tenant.data.catalog.byId.get(id), 'the collection')
  const changed = await (action === 'add'
    ? tenant.sealer.seal(addTokenFields({ ...collection, encrypted: true }, 0), versions)
    : tenant.sealer.open(collection, versions))
  const entries = versions.map((version, at) => {
    const { key, body } = requirePresent(changed[at], 'the other form')
    return makeResealEntry(id, { ...version, key, body }, action === 'add')
  })
  world.failpoint?.('resealing.prepared')
  const { height } = await tenant.chain.append([...entries, ...end.map(makeDefinitionEntry)])
  world.failpoint?.('resealing.copied')
  await tenant.chain.whenApplied(height)
  return versions.length
}

/** Builds the definitions by which the collection has its other form. */
async function buildEnd(
  { world, database }: ResealingPorts,
  { schema, data }: Tenant,
  resealing: ResealingDefinition,
): Promise<Definition[]> {
  const { collection: id, action, number } = resealing
  const now = new Date(world.now()).toISOString()
  const definition = requirePresent(data.catalog.collections.get(id), 'the collection')
  const { encrypted: _, ...before } = definition
  const isSealed = action === 'add'
  const after = addTokenFields(
    { ...before, ...(isSealed && { encrypted: true }), number, updated_at: now },
    0,
  )
  const from = await readResealingLeaf(database, schema, id)
  const ended: ResealingDefinition = isSealed
    ? { ...resealing, state: 'erasing', from }
    : { ...resealing, state: 'completed', from, ended_at: now }
  return [
    { kind: 'collection', id, body: after },
    ...buildSchemaIndexes(world, after, data.catalog.nextNumber),
    { kind: 'resealing', id, body: ended },
  ]
}
