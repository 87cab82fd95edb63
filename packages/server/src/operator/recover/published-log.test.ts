import { generateKeyPairSync } from 'node:crypto'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import {
  encodeBlockBody,
  encodeGroupStarts,
  formatBlockHeader,
  hashBlock,
  noBlockHash,
} from '@tollbase/verify/block'
import { parseVerifierKey } from '@tollbase/verify/checkpoint'
import type { PublishedBlock } from '@tollbase/verify/publication'
import { describe, expect, test } from 'vitest'
import { hashLeaf, MerkleTree, sha256 } from '../../chain/merkle.ts'
import { makeSigner } from '../../chain/signing.ts'
import { PublishedLog, TwoHistories } from './published-log.ts'

const origin = 'service.example/shop'
const signer = makeSigner(generateKeyPairSync('ed25519').privateKey, origin)
const key = parseVerifierKey(signer.vkey)

/** Makes the signed blocks of a log with these texts as entries, one block for each list. */
function makeBlocks(texts: readonly (readonly string[])[]): PublishedBlock[] {
  const tree = new MerkleTree()
  let previousHash = noBlockHash
  return texts.map((block, at) => {
    const entries = block.map((text) => Buffer.from(text))
    tree.append(Buffer.concat(entries.map(hashLeaf)))
    const groupStarts = [0]
    const header = formatBlockHeader({
      ...{ origin, height: at + 1, previousHash, time: 1_000 + at, treeSize: tree.size },
      root: tree.root(),
      bodyHash: sha256(encodeBlockBody(entries)),
      groupsHash: sha256(encodeGroupStarts(groupStarts)),
      ...{ entryCount: entries.length, epoch: 1 },
    })
    previousHash = hashBlock(header)
    const signature = signer.sign(Buffer.from(header))
    return { header, signature, groupStarts, entries, hidden: [] }
  })
}

const blocks = makeBlocks([['a'], ['b', 'c'], ['d']])
const [first, second, third] = blocks
if (first === undefined || second === undefined || third === undefined) throw new Error('three')

describe('a log that is built up of published blocks', () => {
  test('takes each block once and in its order, with entries or their hashes', () => {
    const log = new PublishedLog(key)
    expect(log.add(second)).toBeUndefined()
    expect(log.isAhead(second)).toBe(true)
    expect(log.add(first)).toMatchObject({ height: 1, firstLeaf: 0 })
    const hidden = {
      ...second,
      entries: [second.entries[0], undefined],
      hidden: [hashLeaf(Buffer.from('c'))],
    }
    expect(log.add(hidden)).toMatchObject({ height: 2, firstLeaf: 1 })
    expect(log.add(hidden)).toBeUndefined()
    expect(log.add(third)).toMatchObject({ height: 3, firstLeaf: 3 })
    expect(log).toMatchObject({ height: 3, size: 4, hidden: 1 })
  })

  test('takes the entries of a block that somebody else sent before, with hashes in their place', () => {
    const log = new PublishedLog(key)
    const hashes = ['b', 'c'].map((text) => hashLeaf(Buffer.from(text)))
    const [b, c] = second.entries
    log.add(first)
    log.add({ ...second, entries: [undefined, undefined], hidden: hashes })
    log.add(third)
    const junk = { ...second, entries: [b, Buffer.from('x')] }
    expect(() => log.add(junk)).toThrow(expect.objectContaining({ name: 'FormatError' }))
    const half = { ...second, entries: [b, undefined], hidden: [hashes[1] ?? Buffer.of()] }
    expect(log.add(half)).toMatchObject({ height: 2, firstLeaf: 1, entries: [b, undefined] })
    expect(log.hidden).toBe(1)
    expect(log.add(second)).toMatchObject({ height: 2, firstLeaf: 1, entries: [b, c] })
    expect(log.add(second)).toBeUndefined()
    expect(log).toMatchObject({ height: 3, size: 4, hidden: 0 })
  })

  test('keeps only the hashes of blocks of which entries are missing: these may never come', async () => {
    setFlagsFromString('--expose-gc')
    const collect: () => void = runInNewContext('gc')
    const count = 64
    const log = new PublishedLog(key)
    const fill = () => {
      const large = 'x'.repeat(1024 * 1024)
      const hidden = [hashLeaf(Buffer.from('hidden'))]
      const texts = Array.from({ length: count }, (_, at) => [`${large}${at}`, 'hidden'])
      for (const { entries, ...block } of makeBlocks(texts))
        log.add({ ...block, entries: [entries[0], undefined], hidden })
    }
    collect()
    const before = process.memoryUsage().arrayBuffers
    fill()
    const held = () => {
      collect()
      return process.memoryUsage().arrayBuffers - before
    }
    await expect.poll(held).toBeLessThan((count / 4) * 1024 * 1024)
    expect(log).toMatchObject({ height: count, hidden: count })
  })

  test.each<[string, PublishedBlock]>([
    ['another entry', { ...first, entries: [Buffer.from('x')] }],
    ['an entry more', { ...first, entries: [...first.entries, Buffer.from('x')] }],
    ['an entry less', { ...first, entries: [] }],
    ['no hash of a hidden entry', { ...first, entries: [undefined], hidden: [] }],
    ['the hash of another', { ...first, entries: [undefined], hidden: [new Uint8Array(32)] }],
    ['other groups', { ...first, groupStarts: [0, 0] }],
    ['the signature of another block', { ...first, signature: second.signature }],
    ['another origin', { ...first, header: first.header.replace('shop', 'shoq') }],
    ['a header that is none', { ...first, header: 'x' }],
  ])('refuses a block with %s, and takes the right one afterwards', (_, wrong) => {
    const log = new PublishedLog(key)
    expect(() => log.add(wrong)).toThrow(expect.objectContaining({ name: 'FormatError' }))
    expect(log).toMatchObject({ height: 0, size: 0 })
    expect(log.add(first)).toMatchObject({ height: 1 })
  })

  test('names a service that signed two histories, wherever they part', () => {
    const [, other, after] = makeBlocks([['a'], ['b', 'x'], ['d']])
    if (other === undefined || after === undefined) throw new Error('three')
    const log = new PublishedLog(key)
    log.add(first)
    log.add(second)
    expect(() => log.add(other)).toThrow(TwoHistories)
    expect(() => log.add(after)).toThrow(TwoHistories)
    expect(log.add(third)).toMatchObject({ height: 3 })
  })
})
