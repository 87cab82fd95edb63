import type { DefinitionKind } from './definitions.ts'
import type { Tenant } from './tenancy.ts'

export type Definition = {
  readonly kind: DefinitionKind
  readonly id: string
  readonly body: object | undefined
}

/** Writes definitions (or their removal, without a body) as one group of entries and waits until they are in force. */
export async function define(tenant: Tenant, definitions: readonly Definition[]): Promise<void> {
  const { height } = await tenant.chain.append(
    definitions.map(({ kind, id, body }) => ({
      header: { type: 'definition', kind, id, ...(body === undefined && { deleted: true }) },
      body: body === undefined ? '' : JSON.stringify(body),
    })),
  )
  await tenant.chain.whenApplied(height)
}
