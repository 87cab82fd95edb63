import type { Tenant } from './tenancy.ts'

/** When what an application defines last changed, milliseconds since 1970; undefined where it has defined nothing. */
export async function definedAt({
  chain,
  data,
}: Pick<Tenant, 'chain' | 'data'>): Promise<number | undefined> {
  const { version } = data.catalog
  if (version === 0) return undefined
  const { height } = await chain.locate(version - 1)
  return (await chain.readBlock(height))?.time
}
