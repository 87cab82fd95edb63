import { createOpenData, readChain } from '@tollbase/testing/chains'
import { withService } from '@tollbase/testing/per-engine'
import type { Json } from '@tollbase/testing/service'
import { verifyDocument } from '@tollbase/verify/verify'
import { describe, expect, test } from 'vitest'

describe('getRecordProof', () =>
  withService((service) => {
    test('a record is proven offline to anyone who trusts the key, and any changed byte breaks the proof', async () => {
      const app = await createOpenData(service())
      await app.store('notes', [{ id: 'a', n: 1 }, { id: 'b' }, { id: 'c' }])
      await app.store('notes', [{ id: 'd' }])
      const proof = (await app.record('notes', 'b', '/proof')).body
      const { key } = await readChain(service(), app, '/checkpoint')
      const verdict = verifyDocument(JSON.stringify(proof), { trustedKey: key })
      expect(verdict.checks.filter(({ ok }) => !ok)).toEqual([])
      expect(verdict.ok).toBe(true)
      for (const changed of alterations(proof)) {
        const text = JSON.stringify(changed.document)
        expect(verifyDocument(text, { trustedKey: key }).ok, changed.what).toBe(false)
      }
      const other = await createOpenData(service())
      const otherKey = (await readChain(service(), other, '/checkpoint')).key
      expect(verifyDocument(JSON.stringify(proof), { trustedKey: otherKey }).ok).toBe(false)
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
