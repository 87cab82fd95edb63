import type { Entry } from '@tollbase/verify/entry'
import type { DefinitionKind } from '../../model/definitions.ts'
import type { Tenant } from './tenancy.ts'

export type Definition = {
  readonly kind: DefinitionKind
  readonly id: string
  readonly body: object | undefined
}

/**
 * Writes definitions (or their removal, without a body) as one group of entries, waits until they are in force, and
 * says where the group stands.
 */
export async function define(
  tenant: Tenant,
  definitions: readonly Definition[],
): Promise<{ readonly height: number; readonly sequence: number }> {
  const { height, sequence } = await tenant.chain.append(definitions.map(definitionEntry))
  await tenant.chain.whenApplied(height)
  return { height, sequence }
}

export function definitionEntry({ kind, id, body }: Definition): Entry {
  return {
    header: { type: 'definition', kind, id, ...(body === undefined && { deleted: true }) },
    body: body === undefined ? '' : JSON.stringify(body),
  }
}
