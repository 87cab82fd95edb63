import type { Entry } from '@tollbase/verify/entry'
import { type Definition, makeDefinitionEntry } from '../../model/definition-entry.ts'
import { refuseDefinitionsOnPrivate } from '../../model/encrypted-collections.ts'
import type { Tenant } from './tenants.ts'

/**
 * Writes definitions (or their removal, without a body) as one group of entries, waits until they are in force, and
 * says where the group stands. The first entry names the payment that they were made for, where there is one.
 */
export async function define(
  tenant: Tenant,
  definitions: readonly Definition[],
  paymentId?: string,
): Promise<{ readonly height: number; readonly sequence: number }> {
  refuseDefinitionsOnPrivate(tenant.data.catalog, definitions)
  const entries = definitions.map((one, at): Entry => {
    const entry = makeDefinitionEntry(one)
    const isNamed = at === 0 && paymentId !== undefined
    return isNamed ? { ...entry, header: { ...entry.header, payment: paymentId } } : entry
  })
  const { height, sequence } = await tenant.chain.append(entries)
  await tenant.chain.whenApplied(height)
  return { height, sequence }
}
