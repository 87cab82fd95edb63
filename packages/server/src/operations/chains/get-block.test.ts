import { createOpenData, readChain } from '@tollbase/testing/chains'
import { withService } from '@tollbase/testing/per-engine'
import { parseBlockHeader, verifyBlockSignature } from '@tollbase/verify/block'
import { decodeBase64 } from '@tollbase/verify/bytes'
import { parseVerifierKey } from '@tollbase/verify/checkpoint'
import { describe, expect, test } from 'vitest'

describe('getBlock', () =>
  withService((service) => {
    test('a block is signed, follows the one before, and shows hashes only', async () => {
      const app = await createOpenData(service())
      await app.store('notes', [{ id: 'a', secret: 'xyzzy' }])
      const stored = await app.store('notes', [{ id: 'b', secret: 'xyzzy' }])
      const height = stored.body.results[0].block_height
      const block = await readChain(service(), app, `/blocks/${height}`)
      const previous = await readChain(service(), app, `/blocks/${height - 1}`)
      const { key } = await readChain(service(), app, '/checkpoint')
      const { publicKey } = parseVerifierKey(key)
      expect(verifyBlockSignature(block.header, decodeBase64(block.signature), publicKey)).toBe(
        true,
      )
      const header = parseBlockHeader(block.header)
      expect(header).toMatchObject({
        height,
        treeSize: block.tree_size,
        entryCount: block.entry_count,
      })
      expect(block.previous_hash).toBe(previous.hash)
      expect(block.leaf_hashes).toEqual([stored.body.results[0].blob_id])
      expect(JSON.stringify(block)).not.toContain('xyzzy')
      for (const missing of [0, height + 100]) {
        const reply = await service().request(
          'GET',
          `/api/apps/${app.appId}/chain/blocks/${missing}`,
        )
        expect(reply).toMatchObject({ status: 404, body: { code: 'BLOCK_NOT_FOUND' } })
      }
    })
  }))
