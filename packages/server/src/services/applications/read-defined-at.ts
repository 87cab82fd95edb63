import type { Tenant } from './tenants.ts'

/**
 * Reads when the definitions of an application last changed, in milliseconds since 1970; undefined where there are none.
 */
export async function readDefinedAt({
  chain,
  data,
}: Pick<Tenant, 'chain' | 'data'>): Promise<number | undefined> {
  const { version } = data.catalog
  if (version === 0) return undefined
  const { height } = await chain.locate(version - 1)
  return (await chain.readOutline(height))?.time
}
