import { type Definition, makeDefinitionEntry } from '../../model/definition-entry.ts'
import { refuseDefinitionsOnPrivate } from '../../model/private-data.ts'
import type { Tenant } from './tenants.ts'

/**
 * Writes definitions (or their removal, without a body) as one group of entries, waits until they are in force, and
 * says where the group stands.
 */
export async function define(
  tenant: Tenant,
  definitions: readonly Definition[],
): Promise<{ readonly height: number; readonly sequence: number }> {
  refuseDefinitionsOnPrivate(tenant.data.catalog, definitions)
  const { height, sequence } = await tenant.chain.append(definitions.map(makeDefinitionEntry))
  await tenant.chain.whenApplied(height)
  return { height, sequence }
}
