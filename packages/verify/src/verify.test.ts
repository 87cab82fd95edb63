import { createHash, generateKeyPairSync, sign } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { formatBlockHeader, noBlockHash } from './block.ts'
import { encodeBase64, encodeUtf8 } from './bytes.ts'
import { computeKeyId, formatCheckpoint, formatNote, formatVerifierKey } from './checkpoint.ts'
import { encodeEntry } from './entry.ts'
import { formatHashes } from './inclusion.ts'
import type { RecordProof } from './proof.ts'
import {
  encodeReceiptMessage,
  hashRequest,
  type ReceiptFacts,
  type UnsignedReceipt,
} from './receipt.ts'
import { computeReferenceInclusion, computeReferenceRoot } from './reference-tree.ts'
import type { SaleDetails } from './sale-details.ts'
import { hashLeaf } from './tree.ts'
import { verifyDocument, verifyNote } from './verify.ts'

const { privateKey, publicKey } = generateKeyPairSync('ed25519')
const rawKey = Buffer.from(String(publicKey.export({ format: 'jwk' }).x), 'base64url')
// One key signs all logs of a service; each has a name of its own for it.
const appKey = formatVerifierKey('data.example/weather', rawKey)
const systemKey = formatVerifierKey('data.example/system', rawKey)
const otherKey = formatVerifierKey('data.example/weather', hashLeaf(encodeUtf8('other')))

const request = {
  method: 'POST',
  path: '/api/apps/weather/find',
  query: 'a=1',
  body: encodeUtf8('{"limit":2}'),
}
const reply = encodeUtf8('{"records":[]}')

const facts: ReceiptFacts = {
  payment_id: 'p1',
  request_hash: hashRequest(request),
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

const sale = { kind: 'sale', ...facts }

describe('verification of documents', () => {
  test('no document is valid without a trusted key, and nothing is said to be true', () => {
    for (const document of [recordProof(), signedReceipt(facts)]) {
      const verdict = verifyDocument(JSON.stringify(document), { request, reply })
      expect(verdict).toMatchObject({ ok: false, trusted: false })
      expect(verdict.checks.map(({ name, ok }) => [name, ok])).toEqual([['key', false]])
    }
    const forged = verifyDocument(JSON.stringify({ ...signedReceipt(facts), amount: '701' }))
    expect(forged.checks.map(({ name }) => name)).toEqual(['key', 'signature', 'ledger', 'amounts'])
    expect(forged.checks.every(({ ok }) => !ok)).toBe(true)
  })

  test('a proof without its block does not vouch for a height, whatever it names', () => {
    const { block: _, ...short } = recordProof()
    for (const height of [1, 77_777_777]) {
      const document = { ...short, height, sequence: 5 }
      expect(failed(document)).toEqual([])
      expect(unchecked(document)).toEqual(['height'])
      expect(JSON.stringify(verifyObject(document).checks)).not.toContain('77777777')
    }
    const inclusion = verifyObject(short).checks.find(({ name }) => name === 'inclusion')
    expect(inclusion?.detail).toBe('the entry is leaf 3 of the signed tree of 6')
  })

  test('a proof that holds the hash of its entry only vouches for the hash, and says so', () => {
    const { entry = '', ...rest } = recordProof()
    const leaf_hash = Buffer.from(hashLeaf(Buffer.from(entry, 'base64'))).toString('hex')
    expect(failed({ ...rest, leaf_hash })).toEqual([])
    expect(unchecked({ ...rest, leaf_hash })).toEqual(['content'])
    expect(unchecked({ ...rest, entry, leaf_hash })).toEqual([])
    const other = leaf_hash.replace(/^./, (digit) => (digit === '0' ? '1' : '0'))
    expect(failed({ ...rest, leaf_hash: other })).toEqual(['inclusion'])
    expect(failed({ ...rest, entry, leaf_hash: other })).toEqual(['inclusion'])
    expect(failed({ ...rest, leaf_hash: leaf_hash.toUpperCase() })).toEqual(['inclusion'])
    expect(failed(rest)).toEqual(['format'])
  })

  test('a document or entry that two readers may read as two things is refused', () => {
    const text = JSON.stringify(signedReceipt(facts))
    const twice = (more: string) => () => verify(text.replace('{', `{${more},`))
    expect(twice('"amount":"1"')).toThrow('has the member "amount" twice')
    expect(twice('"am\\u006funt":"1"')).toThrow('has the member "amount" twice')
    expect(twice('"more":{"a":[{"b":1}],"a":2}')).toThrow('has the member "a" twice')
    expect(twice('"more":"{\\"a\\":1,\\"a\\":2}"')().ok, 'a text is a text').toBe(false)
    const form = () => verify(text.replace('"row_count":0', '"row_count":0.0'))
    expect(form).toThrow('a number in another form')
    const proof = recordProof()
    const makeEntry = (header: string) => encodeBase64(encodeUtf8(`${header}\n{}`))
    const entry = makeEntry('{"type":"record","key":"a","key":"b"}')
    expect(failed({ ...proof, entry })).toContain('entry')
    const booked = JSON.stringify(sale).replace('{', '{"amount":"1",')
    expect(failed(signedReceipt(facts, booked))).toEqual(['ledger'])
  })

  test('a proof holds with and without its block, and says what does not hold when it is changed', () => {
    const proof = recordProof()
    expect(failed(proof)).toEqual([])
    const { block: _, ...short } = proof
    expect(failed(short)).toEqual([])
    expect(unchecked(proof)).toEqual([])
    expect(failed({ ...proof, key: otherKey })).toContain('key')
    expect(failed({ ...proof, app: 'other' })).toEqual(['application'])
    expect(failed({ ...proof, sequence: 1 })).toEqual(['block'])
    expect(failed({ ...proof, height: 2 })).toEqual(['block'])
    expect(failed({ ...proof, leaf_index: 4 })).toEqual(['inclusion', 'block'])
    expect(
      failed({ ...proof, entry: encodeBase64(encodeEntry({ type: 'record' }, '{"a":2}')) }),
    ).toEqual(['inclusion'])
    expect(failed({ ...proof, checkpoint: proof.checkpoint.replace('\n6\n', '\n7\n') })).toEqual([
      'checkpoint',
      'application',
      'inclusion',
    ])
    expect(failed({ ...proof, height: '1' })).toEqual(['format'])
  })

  test('what another log of the service has is not valid under the key of this one, whatever name stands beside the signature', () => {
    const proof = recordProof()
    const entry = encodeEntry({ type: 'record' }, '{"owner":"mallory"}')
    const { inclusion, checkpoint } = treeWith(
      entry,
      'data.example/mallory',
      'data.example/weather',
    )
    const forged = { ...proof, entry: encodeBase64(entry), inclusion, checkpoint }
    for (const app of ['mallory', 'weather']) {
      const { block: _, ...short } = { ...forged, app }
      expect(failed(short)).toContain('checkpoint')
      expect(failed({ ...forged, app })).toContain('checkpoint')
    }
    const { header } = proof.block ?? { header: '' }
    const moved = header.replace('data.example/weather', 'data.example/mallory')
    const signature = encodeBase64(sign(null, encodeUtf8(moved), privateKey))
    expect(failed({ ...proof, block: { header: moved, signature } })).toEqual(['block'])
    const note = verifyNote(checkpoint, { trustedKey: appKey })
    expect(note.ok).toBe(false)
    expect(note.checks[0]?.detail).toBe(
      'the checkpoint is of data.example/mallory, not of data.example/weather',
    )
  })

  test('a receipt holds for its request and its reply and for no other', () => {
    const good = signedReceipt(facts)
    expect(failed(good, { request, reply })).toEqual([])
    expect(failed(good, { request: { ...request, query: 'a=2' } })).toEqual(['request'])
    expect(failed(good, { request: { ...request, body: encodeUtf8('{}') } })).toEqual(['request'])
    expect(failed(good, { reply: encodeUtf8('{}') })).toEqual(['reply'])
  })

  test('every fact of a receipt is held by its signature and by the ledger entry', () => {
    const receipt = signedReceipt(facts)
    for (const name of Object.keys(facts)) {
      const changed = name === 'row_count' ? 9 : name === 'as_of' ? null : '9'
      expect(failed({ ...receipt, [name]: changed }), name).toEqual(
        expect.arrayContaining(['signature', 'ledger']),
      )
    }
    const { amount: _, ...less } = sale
    expect(failed(signedReceipt(facts, less))).toEqual(['ledger'])
    expect(failed({ ...receipt, extra: true })).toEqual(['signature'])
    const { kind: _kind, ...unkind } = sale
    for (const other of [unkind, { ...sale, kind: 'deposit' }])
      expect(failed(signedReceipt(facts, other))).toEqual(['ledger'])
    expect(failed(signedReceipt(facts, sale, { type: 'record' }))).toEqual(['ledger'])
    expect(failed(signedReceipt(facts, sale, { origin: 'data.example/weather' }))).toEqual([
      'checkpoint',
      'origin',
      'inclusion',
    ])
    expect(failed(signedReceipt({ ...facts, change: '301' }))).toEqual(['amounts'])
  })

  test('every detail of a sale stands in its receipt as in the ledger entry', () => {
    const item = { kind: 'collection', name: 'rain', account: 'app:weather' } as const
    const details: Required<SaleDetails> = {
      sold: [{ ...item, gross: '700', fee: '140' }],
      measured: [{ ...item, by: 'rows', rows: 7, bytes: 90, charged: '700' }],
      budget: 'auth_1',
      budget_day: '2026-01-02',
      uses: [
        {
          ...{ ...item, period: '2026-01', request: '1', row: '7', kb: '90' },
          ...{ free_request: '0', free_row: '0', free_kb: '0' },
        },
      ],
      pass: { ...item, hours: 24 },
      channel: { id: '0x04', base: '0', max_claimable: '700', signature: '0x05' },
      buyer: 'channel:0x04',
    }
    const booked = { ...sale, ...details }
    expect(failed(signedReceipt({ ...facts, ...details }, booked))).toEqual([])
    for (const [name, detail] of Object.entries(details)) {
      const { [name]: _, ...less }: Record<string, unknown> = booked
      const another = { ...booked, [name]: [detail] }
      for (const other of [less, another])
        expect(failed(signedReceipt({ ...facts, ...details }, other)), name).toEqual(['ledger'])
      expect(failed(signedReceipt(facts, { ...sale, [name]: detail })), name).toEqual(['ledger'])
    }
  })

  test('a text that is no document of ours is refused with a clear error', () => {
    expect(() => verifyDocument('x')).toThrow('not JSON')
    expect(() => verifyDocument('[]')).toThrow('not a JSON object')
    expect(() => verifyDocument('{"type":"x"}')).toThrow('documents of type "x" are not known here')
  })
})

function verify(text: string, options = {}) {
  const trustedKey = text.includes('tollbase/receipt@v1') ? systemKey : appKey
  return verifyDocument(text, { trustedKey, ...options })
}

function verifyObject(document: object, options = {}) {
  return verify(JSON.stringify(document), options)
}

function failed(document: object, options = {}): string[] {
  return verifyObject(document, options)
    .checks.filter((each) => !each.ok)
    .map((each) => each.name)
}

function unchecked(document: object): string[] {
  return verifyObject(document).unchecked.map(({ name }) => name)
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
    entry: encodeBase64(entry),
    inclusion: tree.inclusion,
    checkpoint: tree.checkpoint,
    block: { header, signature: encodeBase64(sign(null, encodeUtf8(header), privateKey)) },
    key: appKey,
  }
}

function signedReceipt(
  receiptFacts: ReceiptFacts & SaleDetails,
  booked: object | string = { kind: 'sale', ...receiptFacts },
  { type = 'ledger', origin = 'data.example/system' } = {},
) {
  const entry = encodeEntry({ type }, typeof booked === 'string' ? booked : JSON.stringify(booked))
  const { inclusion, checkpoint } = treeWith(entry, origin)
  const receipt: UnsignedReceipt = {
    type: 'tollbase/receipt@v1',
    receipt_id: 'r1',
    ...receiptFacts,
    ledger: {
      height: 2,
      sequence: 0,
      leaf_index: 3,
      entry: encodeBase64(entry),
      inclusion,
      checkpoint,
    },
    key: systemKey,
  }
  return {
    ...receipt,
    signature: encodeBase64(sign(null, encodeReceiptMessage(receipt), privateKey)),
  }
}

/** A tree of six leaves with the entry at index 3; `name` stands in the signature line. */
function treeWith(entry: Uint8Array, origin: string, name = origin) {
  const leaves = [0, 1, 2, 3, 4, 5].map((index) =>
    hashLeaf(index === 3 ? entry : Uint8Array.of(index)),
  )
  const root = computeReferenceRoot(leaves)
  const text = formatCheckpoint({ origin, size: 6, root })
  const signature = {
    name,
    keyId: computeKeyId(name, rawKey),
    signature: sign(null, encodeUtf8(text), privateKey),
  }
  return {
    root,
    inclusion: { index: 3, size: 6, hashes: formatHashes(computeReferenceInclusion(3, leaves)) },
    checkpoint: formatNote(text, [signature]),
  }
}
