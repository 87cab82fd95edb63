import type { Entry } from '@tollbase/verify/entry'
import { refuseTooManyDefinitions } from '../../model/definition-bytes.ts'
import { type Definition, makeDefinitionEntry } from '../../model/definition-entry.ts'
import { refuseDefinitionsOnPrivate } from '../../model/encrypted-collections.ts'
import type { Tenant } from './tenants.ts'

type Defining = {
  /** The payment that the definitions are made for, which the first entry names. */
  readonly paymentId?: string | undefined
  /** True for what was paid for, or what ends work that was begun: it is not refused for want of room. */
  readonly isOwed?: boolean
}

/**
 * Writes definitions (or their removal, without a body) as one group of entries, waits until they are in force, and
 * says where the group stands. 409 where all definitions would take more room than an application has for them.
 */
export async function define(
  tenant: Tenant,
  definitions: readonly Definition[],
  { paymentId, isOwed = paymentId !== undefined }: Defining = {},
): Promise<{ readonly height: number; readonly sequence: number }> {
  if (!isOwed) await refuseWithoutRoom(tenant, definitions)
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

/** Refuses (409) definitions for which there is no room beside all others, and what running migrations end with. */
export function refuseWithoutRoom(
  { data, migrating }: Tenant,
  definitions: readonly Definition[],
): Promise<void> {
  const reserved = [...migrating.values()].reduce((sum, { endBytes }) => sum + endBytes, 0)
  return refuseTooManyDefinitions(data.catalog, definitions, reserved)
}
