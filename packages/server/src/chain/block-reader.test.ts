import { afterAll, beforeAll, expect, test } from 'vitest'
import { requirePresent } from '../base/assert.ts'
import { ByteLimit } from '../base/byte-limit.ts'
import { realWorld } from '../base/world.ts'
import type { Database } from '../database/database.ts'
import type { SqlStatement } from '../database/sql.ts'
import { createTestDatabase, type TestDatabase } from '../database/testing.ts'
import { BlockReader } from './block-reader.ts'
import { BlockStore } from './block-store.ts'
import { ProofCache } from './proof-cache.ts'
import { createTestChain, makeEntries } from './testing.ts'

const KiB = 1024
const blocks = 6
/** Bytes of the body of each block. */
const blockBytes = 600 * KiB

let tested: TestDatabase
beforeAll(async () => {
  tested = await createTestDatabase()
})
afterAll(() => tested.drop())

/** A chain of large blocks, its reader within a bound, and the texts of the statements that were sent meanwhile. */
async function openBlocks(bytesMax: number) {
  const { database } = tested
  const place = await createTestChain(database)
  const limit = new ByteLimit({ world: realWorld, bytesMax, waitMs: 60_000 })
  const chain = await place.open({ memory: { proofs: new ProofCache(), blocks: limit } })
  for (let at = 1; at <= blocks; at++)
    await chain.append(makeEntries(`${at}${'x'.repeat(blockBytes)}`))
  const texts: string[] = []
  const query: Database['query'] = (statement: SqlStatement, options) => {
    texts.push(statement.text)
    return database.query(statement, options)
  }
  const store = new BlockStore({ query, execute: database.execute }, place.schema)
  return { chain, limit, texts, reader: new BlockReader(store, { limit, chain: place.schema }) }
}

test('requests hold no more bytes of large blocks than the bound, however many ask at once, and each gets its block', async () => {
  const { chain, limit, reader } = await openBlocks(3 * blockBytes)
  let [held, heldMost] = [0, 0]
  const read = async (height: number) => {
    const { block, leave } = requirePresent(await reader.hold(height), 'the block')
    held += 1
    heldMost = Math.max(heldMost, held)
    expect(block.entry(0)?.body.slice(0, 2)).toBe(`${height}x`)
    await new Promise((resolve) => setTimeout(resolve, 5))
    held -= 1
    leave()
  }
  await Promise.all(Array.from({ length: 30 }, (_, at) => read((at % blocks) + 1)))
  expect(heldMost).toBe(1)
  expect(limit.stats()).toEqual({ bytes: 0, waiting: 0 })
  await chain.close()
})

test('those who need the same block at the same time share one reading, whose pieces are one statement', async () => {
  const { chain, texts, reader } = await openBlocks(1_000 * blockBytes)
  const held = await Promise.all(Array.from({ length: 10 }, () => reader.hold(2)))
  for (const one of held) expect(one?.block.height).toBe(2)
  // One each to see that it is large, and one reading: its first piece, and two others.
  expect(texts).toHaveLength(10 + 3)
  expect(new Set(texts).size).toBe(3)
  for (const one of held) one?.leave()
  await chain.close()
})

test('a request that is gone, or fails, holds nothing', async () => {
  const { chain, limit, reader } = await openBlocks(2 * blockBytes)
  const first = requirePresent(await chain.holdBlock(1), 'the block')
  const gone = new AbortController()
  const second = chain.holdBlock(2, gone.signal)
  const proof = chain.prove({ height: 3, sequence: 0 }, gone.signal)
  const outcome = Promise.allSettled([second, proof])
  while (limit.stats().waiting < 2) await new Promise((resolve) => setTimeout(resolve, 5))
  gone.abort()
  for (const { status } of await outcome) expect(status).toBe('rejected')
  expect(limit.stats().waiting).toBe(0)
  first.leave()
  first.leave()
  expect(limit.stats()).toEqual({ bytes: 0, waiting: 0 })
  expect(await reader.hold(blocks + 1)).toBeUndefined()
  await chain.close()
})

test('an entry that was read from its block keeps no block in memory', async () => {
  const { chain } = await openBlocks(2 * blockBytes)
  const { height } = await chain.append(
    makeEntries(...Array.from({ length: 5 }, () => 'y'.repeat(40 * KiB))),
  )
  const { bytes } = await chain.readEntry({ height, sequence: 2 })
  expect(bytes.buffer.byteLength).toBeLessThan(60 * KiB)
  await chain.close()
})
