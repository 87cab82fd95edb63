import type { ApplicationRecord } from '../../model/application.ts'
import { usedOf } from '../../model/quota.ts'
import { mayDescribe } from '../../services/access/access.ts'
import type { Call } from '../../services/call.ts'

/** What the caller may see of an application: the public fields, and more to who may Read it. */
export async function applicationView(call: Call, record: ApplicationRecord) {
  const shown = {
    app_id: record.app_id,
    name: record.name,
    description: record.description,
    created_at: record.created_at,
    status: record.status,
  }
  if (!mayDescribe(call.caller, record) || record.status === 'archived') return shown
  const { tenancy } = call.service
  const { data, chain } = await tenancy.tenant(record.app_id)
  return {
    ...shown,
    owner_address: record.owner_address,
    collections: data.catalog.collections.size,
    views: data.catalog.viewsByName.size,
    queries: data.catalog.queries.size,
    encryption: { private_app: false, encrypted_collections: [] },
    payout: { auto_payout_enabled: false },
    quota: { ...tenancy.quotaOf(record), used: usedOf(chain.contents()) },
  }
}
