import type { ApplicationRecord } from '../../model/application.ts'
import { describeEncryption } from '../../model/describe-encryption.ts'
import { getPublishChoice } from '../../model/publication.ts'
import { getUsage } from '../../model/quota.ts'
import { canDescribe } from '../../services/access/access.ts'
import type { Call } from '../../services/call.ts'

/**
 * Describes an application as far as the caller may see it: the public fields, and more to callers that may Read
 * it.
 */
export async function describeApplication(
  call: Call<'tenants' | 'publishing'>,
  record: ApplicationRecord,
) {
  const shown = {
    app_id: record.app_id,
    name: record.name,
    description: record.description,
    created_at: record.created_at,
    status: record.status,
  }
  if (!canDescribe(call.caller, record) || record.status === 'archived') return shown
  const { tenants, publishing } = call.service
  const { data, chain } = await tenants.load(record.app_id)
  const { auto_payout_enabled: isAutomatic } = tenants.system.payoutSettings.get(record.app_id)
  return {
    ...shown,
    owner_address: record.owner_address,
    collections: data.catalog.collections.size,
    views: data.catalog.viewsByName.size,
    queries: data.catalog.queries.size,
    encryption: describeEncryption(data.catalog),
    payout: { auto_payout_enabled: isAutomatic },
    quota: { ...tenants.getQuota(record), used: getUsage(chain.contents()) },
    publish: {
      choice: getPublishChoice(record),
      chains: publishing.flatMap((one) => {
        const height = one.getHeight(record.app_id)
        return height === 0 ? [] : [{ network: one.network, height, of: chain.head().height }]
      }),
    },
  }
}
