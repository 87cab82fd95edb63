import { getReadPrice } from '../../model/find-price.ts'
import type { Collection } from '../../model/readable.ts'
import { type Caller, canDescribe } from '../../services/access/access.ts'
import type { Tenant } from '../../services/applications/tenants.ts'

/** Describes an API collection; its upstream only to those who may know the application's definitions. */
export function describeApi(caller: Caller, tenant: Tenant, collection: Collection) {
  const { name, api, created_at, updated_at } = collection
  const { perAccess, perRow, perKb } = getReadPrice(tenant.data.catalog, collection)
  const mayKnow = canDescribe(caller, tenant.application)
  return {
    name,
    collection_id: collection.id,
    description: api?.description ?? null,
    endpoint: `/api/apps/${tenant.application.app_id}/api-collections/${name}/data`,
    parameters: [...(api?.parameters ?? [])],
    price: { per_access: String(perAccess), per_row: String(perRow), per_kb: String(perKb) },
    cache_seconds: api?.cache_seconds ?? 0,
    ...(mayKnow &&
      api !== undefined && {
        upstream: { url: api.url, method: api.method, headers: Object.keys(api.headers) },
      }),
    created_at,
    updated_at,
  }
}
