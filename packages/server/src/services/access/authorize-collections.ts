import { Fault } from '../../base/fault.ts'
import { missingTable } from '../../database/errors.ts'
import { findCollection, findReadable } from '../../model/catalog.ts'
import type { CollectionState } from '../../model/definitions.ts'
import { hiddenUse } from '../../model/policy.ts'
import { isOpen, readOf } from '../../model/read-level.ts'
import type { UsedFields } from '../../query/join.ts'
import type { Tenant } from '../applications/tenancy.ts'
import type { Call } from '../call.ts'
import { mayDescribe, mayRead, refuseWithoutRead } from './access.ts'

/** The collection, or 404. */
export function collectionOf(tenant: Tenant, nameOrId: string): CollectionState {
  const collection = findCollection(tenant.data.catalog, nameOrId)
  if (collection === undefined) throw noSuchCollection(tenant, nameOrId)
  return collection
}

/** The collection or view, or 404. */
export function readableOf(tenant: Tenant, nameOrId: string): CollectionState {
  const found = findReadable(tenant.data.catalog, nameOrId)
  if (found === undefined) throw noSuchCollection(tenant, nameOrId)
  return found
}

const dataSetTable = /^app_\d+\.d_\d+$/

/** Between the lookup of a collection and the read of its table it may have been deleted; then its table is gone. */
export function deletedMeanwhile(error: unknown): Fault | undefined {
  const table = missingTable(error)
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
  if (table === undefined || !/^app_\d+\.c_\d+$/.test(table)) return undefined
  return new Fault('COLLECTION_NOT_FOUND', {
    message: 'The collection was deleted meanwhile',
    cause: error,
  })
}

/** The collection if the caller may know its description: anybody of those that are open, `mayDescribe` of all. */
export function describableCollection(
  call: Call,
  tenant: Tenant,
  nameOrId: string,
): CollectionState {
  const found = findCollection(tenant.data.catalog, nameOrId)
  return openOrOwn(call, tenant, { found, nameOrId, own: mayDescribe })
}

/** The same of a collection or view. */
export function describableReadable(call: Call, tenant: Tenant, nameOrId: string): CollectionState {
  const found = findReadable(tenant.data.catalog, nameOrId)
  return openOrOwn(call, tenant, { found, nameOrId, own: mayDescribe })
}

/** A collection or view whose records the caller may have, and whether he pays nothing for them. */
export type Readable = { readonly collection: CollectionState; readonly free: boolean }

/** The collection if the caller may read its records, free or by paying. */
export function readableCollection(call: Call, tenant: Tenant, nameOrId: string): Readable {
  return readable(call, tenant, {
    found: findCollection(tenant.data.catalog, nameOrId),
    nameOrId,
  })
}

/** The same of a collection or view. */
export function readableSource(call: Call, tenant: Tenant, nameOrId: string): Readable {
  return readable(call, tenant, { found: findReadable(tenant.data.catalog, nameOrId), nameOrId })
}

type Asked = { readonly found: CollectionState | undefined; readonly nameOrId: string }

function readable(call: Call, tenant: Tenant, asked: Asked): Readable {
  const collection = openOrOwn(call, tenant, { ...asked, own: mayRead })
  return { collection, free: mayRead(call.caller, tenant.application) }
}

/** What is open to strangers, or of the caller's own; 403, 401 or 404 of all else. */
function openOrOwn(
  { caller }: Call,
  tenant: Tenant,
  { found, nameOrId, own }: Asked & { readonly own: typeof mayRead },
): CollectionState {
  const read = found && readOf(tenant.data.catalog, found)
  if (found !== undefined && read === 'public') return found
  refuseWithoutRead(caller, tenant.application)
  if (found !== undefined && own(caller, tenant.application)) return found
  if (read === 'key') throw keyNeeded(tenant)
  throw noSuchCollection(tenant, found?.name ?? nameOrId)
}

/** Whether the caller pays nothing for what the application has. */
export function readsFreely(call: Call, { application }: Pick<Tenant, 'application'>): boolean {
  return mayRead(call.caller, application)
}

/** What the operator, who may do all else that Admin may, must not see: records that are not public. */
export function refuseOperator(call: Call, tenant: Tenant, collection: CollectionState): void {
  if (call.caller.kind === 'operator' && !isOpen(tenant.data.catalog, collection)) {
    throw new Fault('FORBIDDEN', { message: 'The operator does not read private data' })
  }
}

/** Others may use a field only for what its owner offers: a filter on a hidden field would tell its value. */
export function refuseUnoffered(
  collection: CollectionState,
  used: UsedFields,
  history: boolean,
): void {
  if (history)
    throw new Fault('FORBIDDEN', {
      message: 'History is for keys of the application that may Read',
    })
  const hidden = hiddenUse(collection.policy, used)
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

function keyNeeded(tenant: Tenant): Fault {
  return new Fault('UNAUTHORIZED', {
    message: `A key of ${tenant.application.app_id} is needed (X-App-Key)`,
  })
}

/** What may not be known answers as what is not there. */
export function noSuchCollection(tenant: Tenant, name: string): Fault {
  return new Fault('COLLECTION_NOT_FOUND', {
    message: `There is no collection ${name} in ${tenant.application.app_id}`,
    details: { app: tenant.application.app_id, collection: name },
  })
}
