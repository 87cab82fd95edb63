import { requirePresent } from '../../base/assert.ts'
import { Fault } from '../../base/fault.ts'
import type { World } from '../../base/world.ts'
import type { Database } from '../../database/database.ts'
import { noStats } from '../../model/collection-stats.ts'
import type { Definition } from '../../model/definition-entry.ts'
import { describeEncryption } from '../../model/describe-encryption.ts'
import { isEncrypted, refuseDefinitionsOnPrivate } from '../../model/private-data.ts'
import type { Collection } from '../../model/readable.ts'
import { readStats } from '../../projections/collection-store.ts'
import { envelopeAlgorithm } from '../../sealing/envelope.ts'
import { define } from '../applications/define.ts'
import type { Tenant } from '../applications/tenants.ts'
import { runExclusively } from '../locks/exclusive-section.ts'
import { readEpochs } from './data-key-store.ts'

/** The wanted encryption: of the whole application, or of collections of these ids. */
export type EncryptionWish = {
  readonly privateApp: boolean | undefined
  readonly action: 'add' | 'remove' | undefined
  readonly collections: readonly string[]
}

type Parts = { readonly database: Database; readonly world: World }

export async function describeSettings(database: Database, tenant: Tenant) {
  const { catalog } = tenant.data
  const epochs = await readEpochs(database, tenant.application.app_id)
  const newest = [...catalog.byId.values()].filter(isEncrypted).map(({ id }) => epochs.get(id) ?? 0)
  return {
    ...describeEncryption(catalog),
    algorithm: envelopeAlgorithm,
    key_epoch: Math.max(0, ...newest),
    updated_at: catalog.encryption.updated_at,
  }
}

/** Refuses a wish that cannot be met now, without meeting it: the same that meeting it would refuse, as far as is known. */
export function refuseWish(tenant: Tenant, wish: EncryptionWish): void {
  refuseDefinitionsOnPrivate(tenant.data.catalog, planChange(tenant, wish, '').definitions)
}

/**
 * Puts the wished settings in force. Collections whose encryption changes have no record so far. Their keys stay when
 * it ends: a store that is under way may have sealed by them, and gets its place when it has begun again.
 */
export function changeEncryption(parts: Parts, tenant: Tenant, wish: EncryptionWish) {
  return tenant.definitions.run(async () => {
    const now = new Date(parts.world.now()).toISOString()
    const { definitions, sealed, opened } = planChange(tenant, wish, now)
    const changed = [...sealed, ...opened]
    const ids = changed.map(({ id }) => id)
    await runExclusively(tenant, { world: parts.world, collections: ids }, async () => {
      await refuseFilled(parts.database, tenant, changed)
      refuseDefinitionsOnPrivate(tenant.data.catalog, definitions)
      await tenant.sealer.createKeys(sealed.map(({ id }) => id))
      await define(tenant, definitions)
    })
    return describeSettings(parts.database, tenant)
  })
}

type Change = {
  readonly definitions: readonly Definition[]
  /** Collections that become encrypted. */
  readonly sealed: readonly Collection[]
  /** Collections that are encrypted no more. */
  readonly opened: readonly Collection[]
}

function planChange({ data }: Tenant, wish: EncryptionWish, now: string): Change {
  const { catalog } = data
  const named = wish.collections.flatMap((id) => catalog.byId.get(id) ?? [])
  const added = wish.action === 'add' ? named : []
  const all = wish.privateApp === true ? [...catalog.byId.values()] : added
  const sealed = all.filter((collection) => !isEncrypted(collection))
  const opened = wish.action === 'remove' ? named.filter(isEncrypted) : []
  const private_app = wish.privateApp ?? catalog.encryption.private_app
  if (private_app && opened.length > 0)
    throw new Fault('CONFLICT', {
      message: 'Every collection of a private application is encrypted; send private_app: false',
    })
  const change = ({ id }: Collection, encrypted: boolean): Definition => {
    const { encrypted: _, ...before } = requirePresent(
      catalog.collections.get(id),
      'the collection',
    )
    const body = { ...before, ...(encrypted && { encrypted }), updated_at: now }
    return { kind: 'collection', id, body }
  }
  return {
    definitions: [
      ...sealed.map((one) => change(one, true)),
      ...opened.map((one) => change(one, false)),
      { kind: 'encryption', id: 'encryption', body: { private_app, updated_at: now } },
    ],
    sealed,
    opened,
  }
}

/** Refuses collections with records: those are in the log as they are, and no setting alone seals or opens them. */
async function refuseFilled(
  database: Database,
  tenant: Tenant,
  collections: readonly Collection[],
): Promise<void> {
  for (const { id, name } of collections)
    if (tenant.migrating.has(id))
      throw new Fault('CONFLICT', { message: `${name} is being migrated to another schema` })
  const stats = await readStats(database, tenant.schema)
  const filled = collections.filter(({ id }) => (stats.get(id) ?? noStats).versions > 0)
  if (filled.length === 0) return
  const names = filled.map(({ name }) => name)
  throw new Fault('CONFLICT', {
    message: `Encryption changes only where no record was ever stored, and ${names.join(', ')} ${names.length === 1 ? 'has' : 'have'} some; copy them to another collection`,
    details: { collections: names },
  })
}
