import { awaitWithin } from '../../base/await-within.ts'
import type { Queryable } from '../../database/database.ts'
import {
  type Expiry,
  type ListedVersion,
  listExpiredLeaves,
  listExpiries,
  listOldest,
  makeEraseEntry,
  makeExpireEntry,
} from '../../projections/expiry.ts'
import { listForms, listResealedBy } from '../../projections/reseal.ts'
import type { Tenant } from '../applications/tenants.ts'
import { markErased, readErased } from './erasure-store.ts'
import { deriveRecordName } from './expired-records.ts'
import type { ExpiryPorts } from './expiry-ports.ts'
import { makeViewsForget } from './make-views-forget.ts'

/** Versions that expire in one entry. */
export const expiryVersionsMax = 1_000
/** Such entries before their rows and bytes are deleted. */
const expiryPagesMax = 20

/** Time that live views get to follow; those that take longer are made anew. */
const catchUpMs = 10_000

/**
 * Lets versions of a collection before a leaf expire, a bounded number at a time: writes come in between. Whoever
 * names them holds the definitions, and `isMeant` is asked under them. Returns whether there may be more.
 */
export async function expireVersions(
  ports: ExpiryPorts,
  tenant: Tenant,
  wanted: { readonly collection: string; readonly before: number; readonly isMeant: () => boolean },
): Promise<boolean> {
  const { database } = ports
  let from = 0
  for (let page = 0; page < expiryPagesMax; page++) {
    const isLast = await tenant.definitions.run(async () => {
      const collection = tenant.data.catalog.byId.get(wanted.collection)
      if (collection === undefined || !wanted.isMeant()) return true
      const { before } = wanted
      const max = expiryVersionsMax
      const span = { table: collection.table, from, before, max }
      const versions = await listOldest(database, tenant.schema, span)
      const last = versions.at(-1)
      if (last === undefined) return true
      from = last.leaf + 1
      await expireListed(ports, tenant, { collection: collection.id, versions })
      return versions.length < max
    })
    if (isLast) return false
  }
  return true
}

/**
 * Lets these versions expire by one entry, and says where it stands; the caller holds the definitions. None of them may
 * have replaced a version that stays: without it, a replay would have that one live again.
 */
export async function expireListed(
  { database, world, recordNameKey }: ExpiryPorts,
  tenant: Tenant,
  wanted: { readonly collection: string; readonly versions: readonly ListedVersion[] },
): Promise<{ readonly height: number; readonly sequence: number }> {
  const { collection, versions } = wanted
  const app = tenant.application.app_id
  const leaves = versions.map(({ leaf }) => leaf)
  const forms = tenant.data.hasResealed ? await findForms(database, tenant, leaves) : []
  const { height, sequence } = await tenant.chain.append([
    makeExpireEntry(collection, {
      leaves,
      ...(forms.length > 0 && { forms }),
      names: versions.map(({ key }) => deriveRecordName(recordNameKey, { app, collection, key })),
    }),
  ])
  world.failpoint?.('expiry.listed')
  await tenant.chain.whenApplied(height)
  return { height, sequence }
}

/**
 * Finds the entries that hold versions in other forms. Such an entry says which earlier ones may be gone; once it is
 * gone too, nothing else would say so, and they are named here again.
 */
async function findForms(
  database: Queryable,
  { chain, schema }: Tenant,
  leaves: readonly number[],
): Promise<number[]> {
  const forms = new Set(await listForms(database, schema, leaves))
  const heights = new Map<number, number[]>()
  for (const leaf of forms) {
    const { height, sequence } = await chain.locate(leaf)
    heights.set(height, [...(heights.get(height) ?? []), sequence])
  }
  for (const [height, sequences] of heights) {
    const block = await chain.readBlock(height)
    for (const sequence of sequences) {
      const bytes = block?.entryBytes(sequence)
      for (const leaf of bytes === undefined ? [] : listResealedBy(bytes)) forms.add(leaf)
    }
  }
  for (const leaf of leaves) forms.delete(leaf)
  return [...forms].sort((a, b) => a - b)
}

/**
 * Carries out what entries `expire` say: rows go, the log's bytes go, and views forget them. It can be interrupted
 * anywhere and begun again: what is done already is passed over.
 */
export async function eraseExpired(ports: ExpiryPorts, tenant: Tenant): Promise<void> {
  await eraseDeleted(ports, tenant, await deleteExpired(ports, tenant))
}

/** Deletes the rows of what has expired: history and changes show it until then. Returns what is still to be erased. */
export async function deleteExpired(
  { database, world }: ExpiryPorts,
  tenant: Tenant,
): Promise<readonly Expiry[]> {
  const { chain, schema } = tenant
  if (!tenant.data.hasExpired) return []
  const expiries = await listExpiries(database, schema, await readErased(database, schema))
  if (expiries.length === 0) return []
  await awaitWithin(chain.whenCaughtUp(), { world, ms: catchUpMs, otherwise: undefined })
  const { height } = await chain.append(expiries.map(makeEraseEntry))
  await chain.whenApplied(height)
  world.failpoint?.('expiry.deleted')
  return expiries
}

/** Erases the bytes of expired versions whose rows are deleted, and has views forget them. */
export async function eraseDeleted(
  ports: ExpiryPorts,
  tenant: Tenant,
  expiries: readonly Expiry[],
): Promise<void> {
  const { database, world } = ports
  const { chain, schema } = tenant
  if (expiries.length === 0) return
  // The bytes do not wait for the views: an application with one of them that cannot be opened holds up only these.
  for (const expiry of expiries)
    await chain.erase(await listExpiredLeaves(database, schema, expiry))
  await makeViewsForget(ports, tenant, expiries)
  for (const expiry of expiries) {
    await markErased(database, schema, expiry.leaf)
    world.failpoint?.('expiry.done')
  }
}
