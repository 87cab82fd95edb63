import { createOpenData, readChain } from '@tollbase/testing/chains'
import { withService } from '@tollbase/testing/per-engine'
import { decodeBase64, decodeHex } from '@tollbase/verify/bytes'
import { parseCheckpoint } from '@tollbase/verify/checkpoint'
import { hashLeaf, verifyInclusion } from '@tollbase/verify/tree'
import { describe, expect, test } from 'vitest'

describe('getEntryProof', () =>
  withService((service) => {
    test('an entry is proven by height and sequence, to anyone, without its content', async () => {
      const app = await createOpenData(service())
      const { body } = await app.store(
        'notes',
        Array.from({ length: 5 }, (_, id) => ({ id, secret: 'xyzzy' })),
      )
      const { block_height: height, sequence } = body.results[3]
      const proof = await readChain(service(), app, `/proof?height=${height}&sequence=${sequence}`)
      expect(JSON.stringify(proof)).not.toContain('xyzzy')
      const { root, size } = parseCheckpoint(proof.checkpoint)
      const included = {
        index: proof.leaf_index,
        size,
        leaf: decodeHex(proof.leaf_hash, 32),
        proof: proof.inclusion.hashes.map(decodeBase64),
        root,
      }
      expect(verifyInclusion(included)).toBe(true)
      expect(verifyInclusion({ ...included, leaf: hashLeaf(Buffer.from('other')) })).toBe(false)
      for (const [query, status] of [
        [`height=${height}&sequence=99`, 404],
        ['height=999&sequence=0', 404],
        ['height=-1&sequence=0', 400],
        ['height=1', 400],
        ['height=x&sequence=0', 400],
      ]) {
        const reply = await service().request('GET', `/api/apps/${app.appId}/chain/proof?${query}`)
        expect(reply.status, String(query)).toBe(status)
      }
    })
  }))
