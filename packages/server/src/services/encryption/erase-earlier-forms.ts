import { requirePresent } from '../../base/assert.ts'
import type { ResealingDefinition } from '../../model/definitions.ts'
import { listEarlierForms, listVersionLeaves, readResealingLeaf } from '../../projections/reseal.ts'
import { define } from '../applications/define.ts'
import type { Tenant } from '../applications/tenants.ts'
import { makeViewsForget } from '../retention/make-views-forget.ts'
import { scrubFiles } from '../retention/scrub-files.ts'
import { eraseEarlierFiles } from './erase-earlier-files.ts'
import { resealedVersionsMax } from './reseal-versions.ts'
import type { ResealingPorts } from './resealing-ports.ts'

/**
 * Removes what a collection's change leaves behind: files that its blobs had, and where it is sealed now, its plaintext
 * in the log, in uploads that are open, and in views of other applications that were granted it once. Every step can be
 * done twice: what a crash breaks off is begun again.
 */
export async function eraseEarlierForms(
  ports: ResealingPorts,
  tenant: Tenant,
  resealing: ResealingDefinition,
): Promise<void> {
  const { database, world } = ports
  const { collection: id, number, action } = resealing
  const { schema } = tenant
  const changedAt = await readResealingLeaf(database, schema, id)
  const begunAt = requirePresent(resealing.from, 'the leaf at which it began')
  const isOfBlobs = tenant.data.catalog.byId.get(id)?.collection_type === 'blob'
  const erase = async (leaves: readonly number[]) => {
    // The entries tell which files there were, so these go first.
    if (isOfBlobs) await eraseEarlierFiles(ports, tenant, { resealing, leaves })
    if (action === 'add') await tenant.chain.erase(leaves)
  }
  if (isOfBlobs) await ports.blobs.open.removeChanged(tenant)
  const versions = { table: `c_${number}`, before: changedAt }
  await eachPage((span) => listVersionLeaves(database, schema, { ...versions, ...span }), erase)
  const forms = { id, before: begunAt }
  await eachPage((span) => listEarlierForms(database, schema, { ...forms, ...span }), erase)
  if (action === 'add') {
    await makeViewsForget(ports, tenant, [{ leaf: changedAt, collection: id }])
    await scrubFiles(ports, schema)
  }
  world.failpoint?.('resealing.erased')
  await tenant.definitions.run(async () => {
    const now = tenant.data.catalog.resealings.get(id)
    if (now?.id !== resealing.id || now.state !== 'erasing') return
    const ended_at = new Date(world.now()).toISOString()
    const body = { ...now, state: 'completed', ended_at } as const
    await define(tenant, [{ kind: 'resealing', id, body }], { isOwed: true })
  })
}

async function eachPage(
  list: (span: { readonly after: number; readonly max: number }) => Promise<number[]>,
  work: (leaves: readonly number[]) => Promise<void>,
): Promise<void> {
  for (let after = -1; ; ) {
    const leaves = await list({ after, max: resealedVersionsMax })
    if (leaves.length === 0) return
    await work(leaves)
    after = leaves.at(-1) ?? after
  }
}
