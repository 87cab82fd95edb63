import { requirePresent } from '../../base/assert.ts'
import type { ResealingDefinition } from '../../model/definitions.ts'
import { listEarlierForms, listVersionLeaves, readResealingLeaf } from '../../projections/reseal.ts'
import { define } from '../applications/define.ts'
import type { Tenant } from '../applications/tenants.ts'
import { makeViewsForget } from '../retention/make-views-forget.ts'
import { scrubFiles } from '../retention/scrub-files.ts'
import { resealedVersionsMax } from './reseal-versions.ts'
import type { ResealingPorts } from './resealing-ports.ts'

/**
 * Erases the plaintext of a collection that is sealed now from the log, and from views of other applications that were
 * granted it once. Every step can be done twice: what a crash breaks off is begun again.
 */
export async function eraseEarlierForms(
  ports: ResealingPorts,
  tenant: Tenant,
  resealing: ResealingDefinition,
): Promise<void> {
  const { database, world } = ports
  const { collection: id, number } = resealing
  const { schema } = tenant
  const sealedAt = await readResealingLeaf(database, schema, id)
  const begunAt = requirePresent(resealing.from, 'the leaf at which it began')
  const versions = { table: `c_${number}`, before: sealedAt }
  await eraseAll(tenant, (span) => listVersionLeaves(database, schema, { ...versions, ...span }))
  await eraseAll(tenant, (span) =>
    listEarlierForms(database, schema, { id, before: begunAt, ...span }),
  )
  await makeViewsForget(ports, tenant, [{ leaf: sealedAt, collection: id }])
  await scrubFiles(ports, schema)
  world.failpoint?.('resealing.erased')
  await tenant.definitions.run(async () => {
    const now = tenant.data.catalog.resealings.get(id)
    if (now?.id !== resealing.id || now.state !== 'erasing') return
    const ended_at = new Date(world.now()).toISOString()
    await define(tenant, [
      { kind: 'resealing', id, body: { ...now, state: 'completed', ended_at } },
    ])
  })
}

async function eraseAll(
  { chain }: Tenant,
  list: (span: { readonly after: number; readonly max: number }) => Promise<number[]>,
): Promise<void> {
  for (let after = -1; ; ) {
    const leaves = await list({ after, max: resealedVersionsMax })
    if (leaves.length === 0) return
    await chain.erase(leaves)
    after = leaves.at(-1) ?? after
  }
}
