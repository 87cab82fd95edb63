import { createHash, generateKeyPairSync, sign } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { formatBlockHeader, noBlockHash } from './block.ts'
import { base64, utf8 } from './bytes.ts'
import { formatCheckpoint, formatVerifierKey, keyId, noteText } from './checkpoint.ts'
import { encodeEntry } from './entry.ts'
import { formatHashes } from './inclusion.ts'
import type { RecordProof } from './proof.ts'
import { type ReceiptFacts, receiptMessage, requestHash, type UnsignedReceipt } from './receipt.ts'
import { referenceInclusion, referenceRoot } from './reference-tree.ts'
import { leafHash } from './tree.ts'
import { verifyDocument } from './verify.ts'

const { privateKey, publicKey } = generateKeyPairSync('ed25519')
const rawKey = Buffer.from(String(publicKey.export({ format: 'jwk' }).x), 'base64url')
const vkey = formatVerifierKey('data.example', rawKey)
const otherKey = formatVerifierKey('data.example', leafHash(utf8('other')))

const request = {
  method: 'POST',
  path: '/api/apps/weather/find',
  query: 'a=1',
  body: utf8('{"limit":2}'),
}
const reply = utf8('{"records":[]}')

const facts: ReceiptFacts = {
  payment_id: 'p1',
  request_hash: requestHash(request),
  quote_hash: null,
  payer: '0x01',
  payee: 'weather',
  amount: '700',
  deposited: '1000',
  change: '300',
  asset: '0x02',
  network: 'eip155:31337',
  transaction: '0x03',
  app: 'weather',
  operation: 'find',
  as_of: { block_height: 4, sequence: 1 },
  row_count: 0,
  result_hash: createHash('sha256').update(reply).digest('hex'),
  delivered_at: '2026-01-02T03:04:05.006Z',
}

describe('verifying documents', () => {
  test('a proof holds with and without its block, and says what does not hold when it is changed', () => {
    const proof = recordProof()
    expect(failed(proof)).toEqual([])
    const { block: _, ...short } = proof
    expect(failed(short)).toEqual([])
    expect(failed({ ...proof, key: otherKey })).toContain('key')
    expect(failed({ ...proof, app: 'other' })).toEqual(['application', 'block'])
    expect(failed({ ...proof, sequence: 1 })).toEqual(['block'])
    expect(failed({ ...proof, height: 2 })).toEqual(['block'])
    expect(failed({ ...proof, leaf_index: 4 })).toEqual(['inclusion', 'block'])
    expect(failed({ ...proof, entry: base64(encodeEntry({ type: 'record' }, '{"a":2}')) })).toEqual(
      ['inclusion'],
    )
    expect(failed({ ...proof, checkpoint: proof.checkpoint.replace('\n6\n', '\n7\n') })).toEqual([
      'checkpoint',
      'application',
      'inclusion',
    ])
    expect(failed({ ...proof, height: '1' })).toEqual(['format'])
  })

  test('a receipt holds for its request and its reply and for no other', () => {
    const good = signedReceipt(facts)
    expect(failed(good, { request, reply })).toEqual([])
    expect(failed(good, { request: { ...request, query: 'a=2' } })).toEqual(['request'])
    expect(failed(good, { request: { ...request, body: utf8('{}') } })).toEqual(['request'])
    expect(failed(good, { reply: utf8('{}') })).toEqual(['reply'])
  })

  test('every fact of a receipt is held by its signature and by the ledger entry', () => {
    const receipt = signedReceipt(facts)
    for (const name of Object.keys(facts)) {
      const changed = name === 'row_count' ? 9 : name === 'as_of' ? null : '9'
      expect(failed({ ...receipt, [name]: changed }), name).toEqual(
        expect.arrayContaining(['signature', 'ledger']),
      )
    }
    const { amount: _, ...less } = facts
    expect(failed(signedReceipt(facts, less))).toEqual(['ledger'])
    expect(failed({ ...receipt, extra: true })).toEqual(['signature'])
    expect(failed(signedReceipt(facts, facts, 'data.example/weather'))).toEqual(['origin'])
    expect(failed(signedReceipt({ ...facts, change: '301' }))).toEqual(['amounts'])
  })

  test('what is no document of ours is refused with a clear error', () => {
    expect(() => verifyDocument('x')).toThrow('not JSON')
    expect(() => verifyDocument('[]')).toThrow('not a JSON object')
    expect(() => verifyDocument('{"type":"x"}')).toThrow('documents of type "x" are not known here')
  })
})

function failed(document: object, options = {}): string[] {
  const verdict = verifyDocument(JSON.stringify(document), { trustedKey: vkey, ...options })
  return verdict.checks.filter((each) => !each.ok).map((each) => each.name)
}

function recordProof(): RecordProof {
  const entry = encodeEntry({ type: 'record', collection: 'c', key: 'k' }, '{"a":1}')
  const tree = treeWith(entry, 'data.example/weather')
  const header = formatBlockHeader({
    origin: 'data.example/weather',
    height: 1,
    previousHash: noBlockHash,
    time: 0,
    treeSize: 6,
    root: tree.root,
    bodyHash: noBlockHash,
    groupsHash: noBlockHash,
    entryCount: 6,
    epoch: 1,
  })
  return {
    type: 'tollbase/record-proof@v1',
    app: 'weather',
    height: 1,
    sequence: 3,
    leaf_index: 3,
    entry: base64(entry),
    inclusion: tree.inclusion,
    checkpoint: tree.checkpoint,
    block: { header, signature: base64(sign(null, utf8(header), privateKey)) },
    key: vkey,
  }
}

function signedReceipt(
  receiptFacts: ReceiptFacts,
  booked: object = receiptFacts,
  origin = 'data.example/system',
) {
  const entry = encodeEntry({ type: 'delivery' }, JSON.stringify(booked))
  const { inclusion, checkpoint } = treeWith(entry, origin)
  const receipt: UnsignedReceipt = {
    type: 'tollbase/receipt@v1',
    receipt_id: 'r1',
    ...receiptFacts,
    ledger: { height: 2, sequence: 0, leaf_index: 3, entry: base64(entry), inclusion, checkpoint },
    key: vkey,
  }
  return { ...receipt, signature: base64(sign(null, receiptMessage(receipt), privateKey)) }
}

/** A tree of six leaves with the entry at index 3. */
function treeWith(entry: Uint8Array, origin: string) {
  const leaves = [0, 1, 2, 3, 4, 5].map((index) =>
    leafHash(index === 3 ? entry : Uint8Array.of(index)),
  )
  const root = referenceRoot(leaves)
  const text = formatCheckpoint({ origin, size: 6, root })
  const signature = {
    name: 'data.example',
    keyId: keyId('data.example', rawKey),
    signature: sign(null, utf8(text), privateKey),
  }
  return {
    root,
    inclusion: { index: 3, size: 6, hashes: formatHashes(referenceInclusion(3, leaves)) },
    checkpoint: noteText(text, [signature]),
  }
}
