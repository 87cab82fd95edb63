import { limits } from '@tollbase/contract/limits'
import { requirePresent } from '../../base/assert.ts'
import { awaitWithin } from '../../base/await-within.ts'
import { Fault } from '../../base/fault.ts'
import type { Database } from '../../database/database.ts'
import { noStats } from '../../model/collection-stats.ts'
import type { Definition } from '../../model/definition-entry.ts'
import type { ResealingDefinition } from '../../model/definitions.ts'
import { describeEncryption } from '../../model/describe-encryption.ts'
import {
  isEncrypted,
  isQueryable,
  refuseDefinitionsOnPrivate,
  refuseResealing,
} from '../../model/encrypted-collections.ts'
import type { Collection } from '../../model/readable.ts'
import { addTokenFields } from '../../model/token-fields.ts'
import { readStats } from '../../projections/collection-store.ts'
import { countUnopened } from '../../projections/plaintext-table.ts'
import { envelopeAlgorithm } from '../../sealing/envelope.ts'
import { define } from '../applications/define.ts'
import type { Tenant } from '../applications/tenants.ts'
import type { Uses } from '../call.ts'
import { buildSchemaIndexes } from '../collections/new-collection.ts'
import { runExclusively } from '../locks/exclusive-section.ts'
import { readEpochs } from './data-key-store.ts'
import { listResealingTasks } from './resealing-tasks.ts'

/** The wanted encryption: of the whole application, or of collections of these ids. */
export type EncryptionWish = {
  readonly privateApp: boolean | undefined
  readonly action: 'add' | 'remove' | undefined
  /** True where these collections are to have plaintext tables; undefined where that stays as it is. */
  readonly queryable?: boolean | undefined
  readonly collections: readonly string[]
  /** The payment that it is made for; the group of entries that ends it names this. */
  readonly paymentId?: string | undefined
}

/** Counts of what collections hold, by their ids. */
type StatsById = Awaited<ReturnType<typeof readStats>>

type Parts = Uses<'world' | 'database' | 'resealings' | 'ticketKey'>

export async function describeSettings(database: Database, tenant: Tenant) {
  const { catalog } = tenant.data
  const epochs = await readEpochs(database, tenant.application.app_id)
  const newest = [...catalog.byId.values()].filter(isEncrypted).map(({ id }) => epochs.get(id) ?? 0)
  const queryable = [...catalog.byId.values()].filter(isQueryable)
  const unopened = await countUnopened(database, tenant.schema, queryable)
  return {
    ...describeEncryption(catalog),
    ...(unopened > 0 && { unopened_versions: unopened }),
    algorithm: envelopeAlgorithm,
    key_epoch: Math.max(0, ...newest),
    updated_at: catalog.encryption.updated_at,
  }
}

/** Refuses a wish that cannot be met now, without meeting it: the same that meeting it would refuse, as far as is known. */
export function refuseWish(tenant: Tenant, wish: EncryptionWish): void {
  const { sealed, opened, turned, settings } = planChange(tenant, wish, '')
  refuseBusy(tenant, [...sealed, ...opened, ...turned])
  refuseDefinitionsOnPrivate(tenant.data.catalog, [
    ...[...sealed, ...turned].map((one) =>
      buildChange(tenant, one, { encrypted: true, queryable: wish.queryable, now: '' }),
    ),
    settings,
  ])
}

/**
 * Puts the wished settings in force. A collection without records is in its other form at once; one with records
 * begins to change, and this waits a while for its end. Keys stay when encryption ends: a store that is under way may
 * have sealed by them, and gets its place when it has begun again. Repeated, it finds what it did and goes on.
 */
export async function changeEncryption(
  parts: Parts,
  tenant: Tenant,
  wish: EncryptionWish,
): Promise<EncryptionState> {
  const { world } = parts
  const changing = await tenant.definitions.run(() => begin(parts, tenant, wish))
  world.failpoint?.('resealing.settled')
  // The request of an upload may wait for what was held until now.
  await parts.resealings.removeUploads(tenant)
  const ends = Promise.all(changing.map((id) => parts.resealings.run(tenant, id)))
  await awaitWithin(ends, { world, ms: limits.resealingWaitMs, otherwise: undefined })
  if (wish.queryable === true) await tenant.plaintext.whenFilled(wish.collections)
  return describeState(parts, tenant, changing)
}

export type EncryptionState = Awaited<ReturnType<typeof describeState>>

/** Describes the settings of now, and the changes of these collections that have not ended. */
async function describeState(
  parts: Uses<'database' | 'ticketKey'>,
  tenant: Tenant,
  changing: readonly string[],
) {
  return {
    settings: await describeSettings(parts.database, tenant),
    tasks: await listResealingTasks(parts, tenant, changing),
    isRecordsToo: changing.length > 0,
    isBlobsToo: changing.some((id) => tenant.data.catalog.byId.get(id)?.collection_type === 'blob'),
  }
}

/** Describes the settings of now, and all changes of collections that have not ended. */
export function describeCurrentState(
  parts: Uses<'database' | 'ticketKey'>,
  tenant: Tenant,
): Promise<EncryptionState> {
  const { resealings } = tenant.data.catalog
  const isUnderWay = (id: string) => resealings.get(id)?.state !== 'completed'
  return describeState(parts, tenant, [...resealings.keys()].filter(isUnderWay))
}

/** Returns the ids of the collections that change beside other work from now on. */
function begin(parts: Parts, tenant: Tenant, wish: EncryptionWish): Promise<string[]> {
  const { world, database } = parts
  const now = new Date(world.now()).toISOString()
  const { sealed, opened, turned, under, settings } = planChange(tenant, wish, now)
  const changed = [...sealed, ...opened]
  const ids = [...changed, ...turned].map(({ id }) => id)
  const { queryable } = wish
  return runExclusively(tenant, { world, collections: ids }, async () => {
    refuseBusy(tenant, [...changed, ...turned])
    const stats = await readStats(database, tenant.schema)
    const isFilled = (one: Collection) => hasVersions(one, stats)
    const empty = changed.filter((one) => !isFilled(one))
    const definitions: Definition[] = [
      ...empty.map((one) =>
        buildChange(tenant, one, { encrypted: sealed.includes(one), queryable, now }),
      ),
      ...turned.map((one) => buildChange(tenant, one, { encrypted: true, queryable, now })),
      settings,
    ]
    const begun = changed.filter(isFilled).map((one) => ({
      id: one.id,
      begin: (): Definition[] => {
        const isAdd = sealed.includes(one)
        // A collection says before it is sealed that it will be queryable.
        const before = queryable === true && isAdd ? [buildQueryable(tenant, one, now)] : []
        return [...before, buildBegin(parts, tenant, { of: one, isAdd })]
      },
    }))
    refuseDefinitionsOnPrivate(tenant.data.catalog, [
      ...begun.flatMap((one) => one.begin()),
      ...definitions,
    ])
    await tenant.sealer.createKeys(sealed.map(({ id }) => id))
    // Each begins by an entry of its own, whose place names its task; the settings come last, when all have begun.
    for (const one of begun) await define(tenant, one.begin(), { isOwed: true })
    const open = empty.filter((one) => opened.includes(one))
    // It adds little to collections that are there, and may have been paid for.
    await define(tenant, [...definitions, ...buildIndexes(parts, tenant, open)], {
      paymentId: wish.paymentId,
      isOwed: true,
    })
    return [...under, ...begun.map(({ id }) => id)]
  })
}

function hasVersions({ id }: Collection, stats: StatsById): boolean {
  return (stats.get(id) ?? noStats).versions > 0
}

type Change = {
  /** Collections that become encrypted. */
  readonly sealed: readonly Collection[]
  /** Collections that are encrypted no more. */
  readonly opened: readonly Collection[]
  /** Encrypted collections that get or lose their plaintext tables. */
  readonly turned: readonly Collection[]
  /** Ids of collections whose change to the wished form is under way. */
  readonly under: readonly string[]
  readonly settings: Definition
}

function planChange({ data }: Tenant, wish: EncryptionWish, now: string): Change {
  const { catalog } = data
  const named = wish.collections.flatMap((id) => catalog.byId.get(id) ?? [])
  const added = wish.action === 'add' ? named : []
  const all = wish.privateApp === true ? [...catalog.byId.values()] : added
  const findUnderWay = ({ id }: Collection) => {
    const one = catalog.resealings.get(id)
    return one === undefined || one.state === 'completed' ? undefined : one.action
  }
  const sealed = all.filter((one) => !isEncrypted(one) || findUnderWay(one) === 'remove')
  const opened =
    wish.action === 'remove'
      ? named.filter((one) => isEncrypted(one) || findUnderWay(one) === 'add')
      : []
  const private_app = wish.privateApp ?? catalog.encryption.private_app
  if (private_app && opened.length > 0)
    throw new Fault('CONFLICT', {
      message: 'Every collection of a private application is encrypted; send private_app: false',
    })
  const under = [
    ...sealed.filter((one) => findUnderWay(one) === 'add'),
    ...opened.filter((one) => findUnderWay(one) === 'remove'),
  ].map(({ id }) => id)
  const isLeft = ({ id }: Collection) => !under.includes(id)
  const isTurned = (one: Collection) =>
    wish.queryable !== undefined && (one.queryable === true) !== wish.queryable
  const late = added.find((one) => under.includes(one.id) && isTurned(one))
  if (late !== undefined)
    throw new Fault('CONFLICT', {
      message: `The encryption of ${late.name} is being changed; change queryable once its task has ended`,
    })
  return {
    turned: added.filter((one) => isEncrypted(one) && !sealed.includes(one) && isTurned(one)),
    sealed: sealed.filter(isLeft),
    opened: opened.filter(isLeft),
    under,
    settings: { kind: 'encryption', id: 'encryption', body: { private_app, updated_at: now } },
  }
}

function buildChange(
  { data }: Tenant,
  { id }: Collection,
  wish: {
    readonly encrypted: boolean
    readonly queryable: boolean | undefined
    readonly now: string
  },
): Definition {
  const { encrypted, now } = wish
  const definition = requirePresent(data.catalog.collections.get(id), 'the collection')
  const { encrypted: _, queryable: known, ...before } = definition
  const queryable = encrypted && (wish.queryable ?? known === true)
  const body = {
    ...before,
    ...(encrypted && { encrypted }),
    ...(queryable && { queryable }),
    updated_at: now,
  }
  return { kind: 'collection', id, body: addTokenFields(body, 0) }
}

function buildQueryable({ data }: Tenant, { id }: Collection, now: string): Definition {
  const definition = requirePresent(data.catalog.collections.get(id), 'the collection')
  return { kind: 'collection', id, body: { ...definition, queryable: true, updated_at: now } }
}

/** Collections that are encrypted no more get the indexes of their schemas. */
function buildIndexes(
  { world }: Parts,
  { data }: Tenant,
  opened: readonly Collection[],
): Definition[] {
  const made: Definition[] = []
  for (const one of opened) {
    const { encrypted: _, ...collection } = one
    made.push(...buildSchemaIndexes(world, collection, data.catalog.nextNumber + made.length))
  }
  return made
}

function buildBegin(
  { world }: Parts,
  { data }: Tenant,
  { of: { id }, isAdd }: { readonly of: Collection; readonly isAdd: boolean },
): Definition {
  const body: ResealingDefinition = {
    id: `enc_${world.randomBytes(12).toString('hex')}`,
    collection: id,
    action: isAdd ? 'add' : 'remove',
    number: data.catalog.nextNumber,
    state: 'copying',
    started_at: new Date(world.now()).toISOString(),
    ended_at: null,
  }
  return { kind: 'resealing', id, body }
}

/** CONFLICT where other work on a collection has to end first. */
function refuseBusy(tenant: Tenant, collections: readonly Collection[]): void {
  for (const { id, name } of collections) {
    if (tenant.migrating.has(id))
      throw new Fault('CONFLICT', { message: `${name} is being migrated to another schema` })
    refuseResealing(tenant.data.catalog, { id, name })
  }
}
