import { requirePresent } from '../../base/assert.ts'
import { Fault } from '../../base/fault.ts'
import { findBlobHash } from '../../model/blob.ts'
import type { ResealingDefinition } from '../../model/definitions.ts'
import type { Tenant } from '../applications/tenants.ts'
import { removeUnnamedFiles } from '../blobs/remove-files.ts'
import type { ResealingPorts } from './resealing-ports.ts'

/** Files that are removed while no other one is published. */
const filesAtOnce = 50

/**
 * Removes the files that blobs had before their collection changed its encryption, as far as nobody else names them:
 * those of the entries with these leaves. Entries without their bytes are passed over: their files went before them.
 */
export async function eraseEarlierFiles(
  ports: ResealingPorts,
  tenant: Tenant,
  {
    resealing,
    leaves,
  }: { readonly resealing: ResealingDefinition; readonly leaves: readonly number[] },
): Promise<void> {
  const hashes = [...(await listHashes(tenant, leaves))]
  for (let at = 0; at < hashes.length; at += filesAtOnce)
    await removeFiles(ports, tenant, { resealing, hashes: hashes.slice(at, at + filesAtOnce) })
}

async function removeFiles(
  ports: ResealingPorts,
  tenant: Tenant,
  {
    resealing,
    hashes,
  }: { readonly resealing: ResealingDefinition; readonly hashes: readonly string[] },
): Promise<void> {
  const removed = await removeUnnamedFiles(ports, tenant, {
    hashes,
    refuseNeeded: () => refuseOpening(tenant, resealing),
  })
  if (removed === undefined)
    throw new Fault('UNAVAILABLE', {
      message:
        'a backup or a move is under way, which may need the files from before, or others remove theirs',
    })
  const progress = tenant.resealing.get(resealing.collection)
  if (progress !== undefined) progress.fileBytes = Math.max(0, progress.fileBytes - removed)
  ports.world.failpoint?.('resealing.unfiled')
}

/** Files that another collection's blobs are about to have may have the same names, and nobody names them yet. */
function refuseOpening(
  { data: { catalog } }: Tenant,
  { collection: id }: ResealingDefinition,
): void {
  for (const { collection, action, state } of catalog.resealings.values()) {
    if (collection === id || action !== 'remove' || state !== 'copying') continue
    if (catalog.byId.get(collection)?.collection_type === 'blob')
      throw new Fault('UNAVAILABLE', {
        message:
          'blobs of another collection are being decrypted, which may need the files from before',
      })
  }
}

/** The hashes in the ids of blobs that entries name, as far as the log has the entries. */
async function listHashes({ chain }: Tenant, leaves: readonly number[]): Promise<Set<string>> {
  const hashes = new Set<string>()
  for (let at = 0; at < leaves.length; ) {
    const { height } = await chain.locate(requirePresent(leaves[at], 'a leaf'))
    const block = requirePresent(await chain.readBlock(height), 'the block of a leaf')
    const first = at
    for (; at < leaves.length; at++) {
      const sequence = requirePresent(leaves[at], 'a leaf') - block.firstLeaf
      if (sequence >= block.header.entryCount) break
      const key = block.entry(sequence)?.header.key
      const sha256 = typeof key === 'string' ? findBlobHash(key) : undefined
      if (sha256 !== undefined) hashes.add(sha256)
    }
    if (at === first) throw new Error(`the block ${height} lacks the leaf ${leaves[at]}`)
  }
  return hashes
}
