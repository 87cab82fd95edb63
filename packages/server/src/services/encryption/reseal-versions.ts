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
import type { ResealingProgress } from '../applications/progress.ts'
import type { Tenant } from '../applications/tenants.ts'
import { buildSchemaIndexes } from '../collections/new-collection.ts'
import { runExclusively } from '../locks/exclusive-section.ts'
import { type PreparedFiles, prepareFiles, renameVersions, setBlobId } from './reseal-blobs.ts'
import type { ResealingPorts } from './resealing-ports.ts'

/** Versions that change their encryption at once, and their bytes. */
export const resealedVersionsMax = 500
export const resealedBytesMax = 1024 * 1024

/**
 * Copies a page of versions, sealed or opened, into the second table, and says how many. Where no more than a page is
 * left, it is copied while nobody else writes to the collection, and in the same block the collection has its other
 * form. Versions expire under the mutex of definitions too, so none expires between its read and its copy. Files of
 * blobs get their other form before, while nothing is held.
 */
export async function copyPage(
  ports: ResealingPorts,
  tenant: Tenant,
  work: {
    readonly id: string
    readonly prepared: PreparedFiles
    readonly progress: ResealingProgress
  },
): Promise<number> {
  const { id, prepared } = work
  const isPrepared = await prepareBlobs(ports, tenant, work)
  return tenant.definitions.run(async () => {
    const resealing = tenant.data.catalog.resealings.get(id)
    if (resealing?.state !== 'copying') return 0
    const { versions, all } = await readPage(ports, tenant, resealing)
    if (!all || !isPrepared) return append(ports, tenant, { resealing, versions, prepared })
    return runExclusively(tenant, { world: ports.world, collections: [id] }, async () => {
      const last = await readPage(ports, tenant, resealing)
      const page = { resealing, versions: last.versions, prepared, isLast: last.all }
      return append(ports, tenant, page)
    })
  })
}

/** Makes files of blobs for the next page, and says whether all are there that it needs. */
async function prepareBlobs(
  ports: ResealingPorts,
  tenant: Tenant,
  work: Parameters<typeof copyPage>[2],
): Promise<boolean> {
  const { id, prepared, progress } = work
  const resealing = tenant.data.catalog.resealings.get(id)
  const collection = tenant.data.catalog.byId.get(id)
  if (resealing?.state !== 'copying' || collection?.collection_type !== 'blob') return true
  const { versions } = await readPage(ports, tenant, resealing)
  const note = (bytes: number) => {
    progress.fileBytes += bytes
  }
  return prepareFiles(ports, tenant, { resealing, collection, versions, prepared, note })
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

type CopiedPage = {
  readonly resealing: ResealingDefinition
  readonly versions: readonly ResealedVersion[]
  readonly prepared: PreparedFiles
  /** There are no other versions, and nobody writes any. */
  readonly isLast?: boolean
}

async function append(ports: ResealingPorts, tenant: Tenant, page: CopiedPage): Promise<number> {
  const { world } = ports
  const { resealing, versions, prepared, isLast = false } = page
  const { collection: id, action } = resealing
  const changed = await changeVersions(ports, tenant, page)
  const entries = changed.map((version) => makeResealEntry(id, version, action === 'add'))
  const end =
    isLast && changed.length === versions.length ? await buildEnd(ports, tenant, resealing) : []
  if (entries.length + end.length === 0) return 0
  world.failpoint?.('resealing.prepared')
  const { height } = await tenant.chain.append([...entries, ...end.map(makeDefinitionEntry)])
  world.failpoint?.('resealing.copied')
  await tenant.chain.whenApplied(height)
  for (const { key } of versions.slice(0, changed.length)) prepared.delete(key)
  return entries.length
}

/** Makes the other form of versions; of those of blobs, as far as their files have theirs. */
async function changeVersions(
  ports: ResealingPorts,
  tenant: Tenant,
  { resealing, versions, prepared }: CopiedPage,
): Promise<ResealedVersion[]> {
  const { sealer } = tenant
  const collection = requirePresent(
    tenant.data.catalog.byId.get(resealing.collection),
    'the collection',
  )
  const isSealing = resealing.action === 'add'
  const sealed = addTokenFields({ ...collection, encrypted: true }, 0)
  if (collection.collection_type !== 'blob') {
    const changed = await (isSealing
      ? sealer.seal(sealed, versions)
      : sealer.open(collection, versions))
    return versions.map((version, at) => ({ ...version, ...pickForm(changed[at]) }))
  }
  const renamed = await renameVersions(ports, tenant, { resealing, collection, versions, prepared })
  const formerIds = renamed.map(({ formerId }) => formerId)
  const formers = isSealing ? await sealer.listFormerNames(collection, formerIds) : formerIds
  const opened = isSealing
    ? renamed
    : await sealer.open(collection, versions.slice(0, renamed.length))
  const rows = renamed.map((version, at) => {
    const { body } = requirePresent(opened[at], 'the opened row')
    return { ...version, body: setBlobId(body, version.key) }
  })
  const changed = isSealing ? await sealer.seal(sealed, rows) : rows
  return rows.map((version, at) => ({
    ...version,
    ...pickForm(changed[at]),
    former: requirePresent(formers[at], 'the former name'),
  }))
}

function pickForm(changed: Pick<ResealedVersion, 'key' | 'body'> | undefined) {
  const { key, body } = requirePresent(changed, 'the other form')
  return { key, body }
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
  const { encrypted: _, queryable, ...before } = definition
  const isSealed = action === 'add'
  const after = addTokenFields(
    {
      ...before,
      ...(isSealed && { encrypted: true, ...(queryable && { queryable }) }),
      number,
      updated_at: now,
    },
    0,
  )
  const from = await readResealingLeaf(database, schema, id)
  // The files that blobs had before are to be removed, too.
  const isErasing = isSealed || definition.collection_type === 'blob'
  const ended: ResealingDefinition = isErasing
    ? { ...resealing, state: 'erasing', from }
    : { ...resealing, state: 'completed', from, ended_at: now }
  return [
    { kind: 'collection', id, body: after },
    ...buildSchemaIndexes(world, after, data.catalog.nextNumber),
    { kind: 'resealing', id, body: ended },
  ]
}
