import { parseBlockHeader, verifyBlockSignature } from '@tollbase/verify/block'
import { decodeBase64, decodeHex } from '@tollbase/verify/bytes'
import { parseCheckpoint, parseVerifierKey, verifyCheckpoint } from '@tollbase/verify/checkpoint'
import { hashLeaf, verifyConsistency, verifyInclusion } from '@tollbase/verify/tree'
import { verifyDocument } from '@tollbase/verify/verify'
import { describe, expect, test } from 'vitest'
import { createData, type Data } from '../support/data.ts'
import { withService } from '../support/per-engine.ts'
import type { Json } from '../support/service.ts'

describe('the chain of an application', () =>
  withService((service) => {
    /** Anyone may read its chain, because it has public data. */
    const newOpen = async (): Promise<Data> => {
      const app = await createData(service())
      await app.create({ name: 'notes', access_policy: 'public' })
      return app
    }
    const open = async (app: Data, path: string): Promise<Json> =>
      (await service().request('GET', `/api/apps/${app.appId}/chain${path}`)).body

    test('a record is proven offline, to who trusts the key; any changed byte of the proof breaks it', async () => {
      const app = await newOpen()
      await app.store('notes', [{ id: 'a', n: 1 }, { id: 'b' }, { id: 'c' }])
      await app.store('notes', [{ id: 'd' }])
      const proof = (await app.record('notes', 'b', '/proof')).body
      const { key } = await open(app, '/checkpoint')
      const verdict = verifyDocument(JSON.stringify(proof), { trustedKey: key })
      expect(verdict.checks.filter(({ ok }) => !ok)).toEqual([])
      expect(verdict.ok).toBe(true)
      for (const changed of alterations(proof)) {
        const text = JSON.stringify(changed.document)
        expect(verifyDocument(text, { trustedKey: key }).ok, changed.what).toBe(false)
      }
      const other = await newOpen()
      const otherKey = (await open(other, '/checkpoint')).key
      expect(verifyDocument(JSON.stringify(proof), { trustedKey: otherKey }).ok).toBe(false)
    })

    test('the checkpoint is signed by the chain`s key over its root and size, and grows with the log', async () => {
      const app = await newOpen()
      await app.store('notes', [{ id: 'a' }])
      const before = await open(app, '/checkpoint')
      expect(verifyCheckpoint(before.checkpoint, before.key)).toMatchObject({
        ok: true,
        checkpoint: { origin: before.origin, size: before.size },
      })
      expect(before.origin.endsWith(`/${app.appId}`)).toBe(true)
      await app.store('notes', [{ id: 'b' }, { id: 'c' }])
      expect((await open(app, '/checkpoint')).size).toBe(before.size + 2)
    })

    test('a block is signed, follows the one before, and shows hashes only', async () => {
      const app = await newOpen()
      await app.store('notes', [{ id: 'a', secret: 'xyzzy' }])
      const stored = await app.store('notes', [{ id: 'b', secret: 'xyzzy' }])
      const height = stored.body.results[0].block_height
      const block = await open(app, `/blocks/${height}`)
      const previous = await open(app, `/blocks/${height - 1}`)
      const { key } = await open(app, '/checkpoint')
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

    test('an entry is proven by height and sequence, to anyone, without its content', async () => {
      const app = await newOpen()
      const { body } = await app.store(
        'notes',
        Array.from({ length: 5 }, (_, id) => ({ id, secret: 'xyzzy' })),
      )
      const { block_height: height, sequence } = body.results[3]
      const proof = await open(app, `/proof?height=${height}&sequence=${sequence}`)
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

    test('any two checkpoints are connected by a proof, over many tiles too', async () => {
      const app = await newOpen()
      const checkpoints = [await open(app, '/checkpoint')]
      for (const count of [1, 1, 3, 300, 1000, 7]) {
        await app.store(
          'notes',
          Array.from({ length: count }, () => ({ x: 1 })),
        )
        checkpoints.push(await open(app, '/checkpoint'))
      }
      for (const [at, from] of checkpoints.entries()) {
        for (const to of checkpoints.slice(at)) {
          const proof = await open(app, `/consistency?from=${from.size}&to=${to.size}`)
          const sizes = {
            from: from.size,
            to: to.size,
            fromRoot: decodeBase64(from.root),
            toRoot: decodeBase64(to.root),
            proof: proof.hashes.map(decodeBase64),
          }
          expect(verifyConsistency(sizes), `${from.size} to ${to.size}`).toBe(true)
        }
      }
      const last = checkpoints.at(-1)
      const reply = await service().request(
        'GET',
        `/api/apps/${app.appId}/chain/consistency?from=1&to=${last.size + 1}`,
      )
      expect(reply.status).toBe(400)
    })

    test('the head of every application comes into the service`s own chain', async () => {
      const app = await newOpen()
      await app.store('notes', [{ id: 'a' }])
      const { size } = await open(app, '/checkpoint')
      const system = async () =>
        (await service().request('GET', '/api/apps/system/chain/checkpoint')).body
      const before = (await system()).size
      await service().running.service.tenancy.announceHeads()
      const after = await system()
      expect(after.size).toBe(before + 1)
      expect(verifyCheckpoint(after.checkpoint, after.key).ok).toBe(true)
      const known = await service().request('GET', '/.well-known/tollbase')
      expect(known.body.receipt_public_key).toBe(after.key)
      await service().running.service.tenancy.announceHeads()
      expect((await system()).size, 'nothing grew, nothing is written').toBe(after.size)
      expect(size).toBeGreaterThan(0)
    })

    test('`system` is a chain and nothing else', async () => {
      for (const path of ['', '/collections', '/keys', '/stats', '/tasks']) {
        const reply = await service().request('GET', `/api/apps/system${path}`, {
          headers: service().operator,
        })
        expect(reply.status, path).toBe(404)
      }
      const store = await service().request('POST', '/store', {
        body: { root: 'system::application', data: [{}] },
        headers: service().operator,
      })
      expect(store.status).toBe(404)
    })

    test('a chain goes on after a restart, under the same key', async () => {
      const app = await newOpen()
      await app.store('notes', [{ id: 'a' }])
      const before = await open(app, '/checkpoint')
      await service().restart()
      expect(await open(app, '/checkpoint')).toEqual(before)
      await app.store('notes', [{ id: 'b' }])
      const after = await open(app, '/checkpoint')
      expect(after).toMatchObject({ size: before.size + 1, key: before.key, origin: before.origin })
    })
  }))

/** Makes copies of the proof, each with one part changed. */
function alterations(proof: Json): { what: string; document: object }[] {
  const changed = (what: string, part: object) => ({ what, document: { ...proof, ...part } })
  const bytes = (text: string) => {
    const all = Buffer.from(text, 'base64')
    return Array.from({ length: all.length }, (_, at) => {
      const copy = Buffer.from(all)
      copy[at] = (copy[at] ?? 0) ^ 1
      return copy.toString('base64')
    })
  }
  const [first, ...rest] = proof.inclusion.hashes
  return [
    ...bytes(proof.entry).map((entry, at) => changed(`byte ${at} of the entry`, { entry })),
    ...bytes(first).map((hash, at) =>
      changed(`byte ${at} of the path`, {
        inclusion: { ...proof.inclusion, hashes: [hash, ...rest] },
      }),
    ),
    ...bytes(proof.block.signature).map((signature, at) =>
      changed(`byte ${at} of the block's signature`, { block: { ...proof.block, signature } }),
    ),
    changed('the height', { height: proof.height + 1 }),
    changed('the sequence', { sequence: proof.sequence + 1 }),
    changed('the leaf', { leaf_index: proof.leaf_index + 1 }),
    changed('the application', { app: `${proof.app}x` }),
    changed('the checkpoint', { checkpoint: proof.checkpoint.replace(/\n(\d+)\n/, '\n1$1\n') }),
    changed('a shorter path', { inclusion: { ...proof.inclusion, hashes: rest } }),
  ]
}
