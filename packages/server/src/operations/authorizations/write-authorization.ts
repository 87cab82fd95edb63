import type { AuthorizationRecord } from '../../model/authorization.ts'
import type { Tenants } from '../../services/applications/tenants.ts'

/** Writes the newest state of an authorization, and waits until it is in force; returns its place in the chain. */
export async function writeAuthorization(
  { system: { chain } }: Tenants,
  one: AuthorizationRecord,
): Promise<{ height: number; sequence: number }> {
  const header = { type: 'authorization', app: one.app_id }
  const { height, sequence } = await chain.append([{ header, body: JSON.stringify(one) }])
  await chain.whenApplied(height)
  return { height, sequence }
}
