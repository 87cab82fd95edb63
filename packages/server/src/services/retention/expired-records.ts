import { createHmac } from 'node:crypto'
import type { Collection } from '../../model/readable.ts'
import { type ExpiredVersion, readExpired } from '../../projections/expiry.ts'
import type { Tenant } from '../applications/tenants.ts'
import type { Uses } from '../call.ts'
import { listStoredKeys } from '../encryption/read-opened.ts'

/** Characters of a name: 132 bits. */
const nameChars = 22

/**
 * The name under which a record's expired versions are remembered. A key may be personal, an address of mail for
 * example; without the service's secret its name tells nothing of it, and can be compared with no guess.
 */
export function deriveRecordName(
  secret: Buffer,
  record: { readonly app: string; readonly collection: string; readonly key: string },
): string {
  const text = JSON.stringify(['tollbase record', 1, record.app, record.collection, record.key])
  return createHmac('sha256', secret).update(text).digest('base64url').slice(0, nameChars)
}

/** The expired versions of a record, oldest first. */
export async function findExpired(
  { database, recordNameKey }: Uses<'database' | 'recordNameKey'>,
  tenant: Tenant,
  { collection, key }: { readonly collection: Collection; readonly key: string },
): Promise<ExpiredVersion[]> {
  if (!tenant.data.hasExpired) return []
  const app = tenant.application.app_id
  const [stored = key] = await listStoredKeys(tenant, collection, [key])
  // Versions of before the collection was encrypted have another name than those of after.
  const names = [...new Set([key, stored])].map((one) =>
    deriveRecordName(recordNameKey, { app, collection: collection.id, key: one }),
  )
  return readExpired(database, tenant.schema, names)
}
