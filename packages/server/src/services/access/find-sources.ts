import { Fault } from '../../base/fault.ts'
import type { World } from '../../base/world.ts'
import { findMissingTable } from '../../database/errors.ts'
import { findCollection, findReadable } from '../../model/catalog.ts'
import { findHiddenUse } from '../../model/policy.ts'
import { isOpen, resolveReadLevel } from '../../model/read-level.ts'
import type { Collection, Readable } from '../../model/readable.ts'
import type { UsedFields } from '../../query/join.ts'
import type { Tenant } from '../applications/tenants.ts'
import { type Caller, canDescribe, canRead, refuseWithoutRead } from './access.ts'

/** Returns the collection, or throws 404. */
export function requireCollection(tenant: Tenant, nameOrId: string): Collection {
  const collection = findCollection(tenant.data.catalog, nameOrId)
  if (collection === undefined) throw makeNoCollectionFault(tenant, nameOrId)
  return collection
}

/** Returns the collection of this name, or throws 404. A write's price and type are found by its name alone. */
export function requireNamedCollection(tenant: Tenant, name: string): Collection {
  const collection = tenant.data.catalog.byName.get(name)
  if (collection === undefined) throw makeNoCollectionFault(tenant, name)
  return collection
}

/** Returns the collection or view, or throws 404. */
export function requireCollectionOrView(tenant: Tenant, nameOrId: string): Readable {
  const found = findReadable(tenant.data.catalog, nameOrId)
  if (found === undefined) throw makeNoCollectionFault(tenant, nameOrId)
  return found
}

const dataSetTable = /^app_\d+\.d_\d+$/

/**
 * Maps the error of a missing table to a fault: a collection may be deleted between its lookup and the read of its
 * table.
 */
export function toDeletedFault(error: unknown): Fault | undefined {
  const table = findMissingTable(error)
  if (table !== undefined && dataSetTable.test(table))
    return new Fault('UNAVAILABLE', {
      message: 'A data set that the query looks into was changed meanwhile; ask again',
      retryAfterSeconds: 1,
      cause: error,
    })
  if (table !== undefined && /^app_\d+\.v_\d+$/.test(table))
    return new Fault('UNAVAILABLE', {
      message: 'The view was replaced or deleted meanwhile; ask again',
      retryAfterSeconds: 1,
      cause: error,
    })
  if (table === undefined || !/^app_\d+\.(c_\d+|p_\d+(_at)?)$/.test(table)) return undefined
  return new Fault('UNAVAILABLE', {
    message: 'The collection was deleted meanwhile, or its encryption has just changed; ask again',
    retryAfterSeconds: 1,
    cause: error,
  })
}

/**
 * Does the work of a read, and once more where a table that it reads was dropped or replaced meanwhile: the catalog
 * knows by then what is there, so the answer is a 404 or that of the new table.
 */
export async function readAnew<T>(world: Pick<World, 'sleep'>, work: () => Promise<T>): Promise<T> {
  for (const pauseMs of readPausesMs) {
    try {
      return await work()
    } catch (error) {
      if (toDeletedFault(error instanceof Fault ? error.cause : error) === undefined) throw error
      await world.sleep(pauseMs)
    }
  }
  return work()
}

/** Other processes learn of the change in about that time. */
const readPausesMs = [20, 200]

/**
 * Returns the collection if the caller may know its description: anybody may for open ones, callers that may
 * describe the application for all.
 */
export function requireDescribableCollection(
  caller: Caller,
  tenant: Tenant,
  nameOrId: string,
): Collection {
  const found = findCollection(tenant.data.catalog, nameOrId)
  return requireOpenOrOwn(caller, tenant, { found, nameOrId, own: canDescribe })
}

/** The same for a collection or view. */
export function requireDescribableSource(
  caller: Caller,
  tenant: Tenant,
  nameOrId: string,
): Readable {
  const found = findReadable(tenant.data.catalog, nameOrId)
  return requireOpenOrOwn(caller, tenant, { found, nameOrId, own: canDescribe })
}

/** A collection or view whose records the caller may read, and whether they are free for the caller. */
export type ReadableSource<T extends Readable = Readable> = {
  readonly collection: T
  readonly free: boolean
}

/** Returns the collection if the caller may read its records, free or by paying. */
export function requireReadableCollection(
  caller: Caller,
  tenant: Tenant,
  nameOrId: string,
): ReadableSource<Collection> {
  return requireReadable(caller, tenant, {
    found: findCollection(tenant.data.catalog, nameOrId),
    nameOrId,
  })
}

/** The same of a collection or view. */
export function requireReadableSource(
  caller: Caller,
  tenant: Tenant,
  nameOrId: string,
): ReadableSource {
  return requireReadable(caller, tenant, {
    found: findReadable(tenant.data.catalog, nameOrId),
    nameOrId,
  })
}

type SourceLookup<T> = { readonly found: T | undefined; readonly nameOrId: string }

function requireReadable<T extends Readable>(
  caller: Caller,
  tenant: Tenant,
  { found, nameOrId }: SourceLookup<T>,
): ReadableSource<T> {
  const collection = requireOpenOrOwn(caller, tenant, { found, nameOrId, own: canRead })
  refuseApi(tenant, collection)
  return { collection, free: canRead(caller, tenant.application) }
}

/** Refuses to read records of a collection that has none, but an API behind it. */
export function refuseApi({ application }: Pick<Tenant, 'application'>, readable: Readable): void {
  if (readable.kind === 'view' || readable.collection_type !== 'api') return
  const { name } = readable
  throw new Fault('API_COLLECTION', {
    message: `${name} is an API collection, which holds no records; read it with GET /api/apps/${application.app_id}/api-collections/${name}/data`,
    details: { collection: name },
  })
}

/** Returns the API collection if the caller may ask it, free or by paying. */
export function requireReadableApi(
  caller: Caller,
  tenant: Tenant,
  nameOrId: string,
): ReadableSource<Collection> {
  const found = findApi(tenant, nameOrId)
  const collection = requireOpenOrOwn(caller, tenant, { found, nameOrId, own: canRead })
  return { collection, free: canRead(caller, tenant.application) }
}

/** Returns the API collection if the caller may know its description. */
export function requireDescribableApi(
  caller: Caller,
  tenant: Tenant,
  nameOrId: string,
): Collection {
  const found = findApi(tenant, nameOrId)
  return requireOpenOrOwn(caller, tenant, { found, nameOrId, own: canDescribe })
}

/** Returns the API collection, or throws 404. */
export function requireApi(tenant: Tenant, nameOrId: string): Collection {
  const found = findApi(tenant, nameOrId)
  if (found === undefined) throw makeNoCollectionFault(tenant, nameOrId)
  return found
}

function findApi({ data }: Tenant, nameOrId: string): Collection | undefined {
  const found = findCollection(data.catalog, nameOrId)
  return found?.collection_type === 'api' ? found : undefined
}

/** Returns the source if it is open to strangers or the caller's own; throws 403, 401 or 404 otherwise. */
function requireOpenOrOwn<T extends Readable>(
  caller: Caller,
  tenant: Tenant,
  { found, nameOrId, own }: SourceLookup<T> & { readonly own: typeof canRead },
): T {
  const read = found && resolveReadLevel(tenant.data.catalog, found)
  if (found !== undefined && read === 'public') return found
  refuseWithoutRead(caller, tenant.application)
  if (found !== undefined && own(caller, tenant.application)) return found
  if (read === 'key') throw makeKeyNeededFault(tenant)
  throw makeNoCollectionFault(tenant, found?.name ?? nameOrId)
}

/** Returns whether the caller reads everything of the application free of charge. */
export function canReadFree(caller: Caller, { application }: Pick<Tenant, 'application'>): boolean {
  return canRead(caller, application)
}

/** Refuses the operator, who may otherwise do all that Admin may, records that are not public. */
export function refuseOperator(caller: Caller, tenant: Tenant, collection: Readable): void {
  if (caller.kind === 'operator' && !isOpen(tenant.data.catalog, collection)) {
    throw new Fault('FORBIDDEN', { message: 'The operator does not read private data' })
  }
}

/** Others may use a field only for what its owner offers: a filter on a hidden field would tell its value. */
export function refuseUnoffered(collection: Readable, used: UsedFields, history: boolean): void {
  if (history)
    throw new Fault('FORBIDDEN', {
      message: 'History is for keys of the application that may Read',
    })
  const hidden = findHiddenUse(collection.policy, used)
  if (hidden === undefined) return
  const { field, use, offered } = hidden
  if (field === undefined)
    throw new Fault('FIELD_NOT_OFFERED', {
      message: `Name the fields to select; offered are ${offered.join(', ')}`,
      details: { offered },
    })
  throw new Fault('FIELD_NOT_OFFERED', {
    message: `${field} is not offered to ${use} by; offered are ${offered.join(', ') || 'none'}`,
    details: { field, use, offered },
  })
}

function makeKeyNeededFault(tenant: Tenant): Fault {
  return new Fault('UNAUTHORIZED', {
    message: `A key of ${tenant.application.app_id} is needed (X-App-Key)`,
  })
}

/** A collection that the caller may not know of answers like one that does not exist. */
export function makeNoCollectionFault(tenant: Tenant, name: string): Fault {
  return new Fault('COLLECTION_NOT_FOUND', {
    message: `There is no collection ${name} in ${tenant.application.app_id}`,
    details: { app: tenant.application.app_id, collection: name },
  })
}
