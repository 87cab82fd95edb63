import { decodeEntry } from '@tollbase/verify/entry'
import { type RecordProof, verifyRecordProof } from '@tollbase/verify/proof'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sql } from '../database/sql.ts'
import { createTestDatabase, listTestEngines, type TestDatabase } from '../database/testing.ts'
import type { Chain } from './chain.ts'
import { buildScrubTables } from './scrub-marks.ts'
import { buildLeaseTables } from './tables.ts'
import { createTestChain, makeEntries, type TestChain } from './testing.ts'

describe.each(listTestEngines())('proofs by parts (%s)', (engine) => {
  let test_: TestDatabase
  beforeAll(async () => {
    test_ = await createTestDatabase(engine)
    for (const statement of [...buildLeaseTables(), ...buildScrubTables()])
      await test_.database.execute(statement)
  })
  afterAll(() => test_.drop())

  const bodies = Array.from({ length: 1_500 }, (_, at) => `{"at":${at},"text":"${'x'.repeat(20)}"}`)

  /** A chain of large blocks, opened anew so that it has nothing in memory. */
  async function reopen(): Promise<{ readonly place: TestChain; readonly chain: Chain }> {
    const place = await createTestChain(test_.database)
    const writer = await place.open()
    for (let from = 0; from < bodies.length; from += 500)
      await writer.append(makeEntries(...bodies.slice(from, from + 500)))
    await writer.close()
    return { place, chain: await place.open() }
  }

  async function prove({ place, chain }: Awaited<ReturnType<typeof reopen>>, leaf: number) {
    const { height, sequence } = await chain.locate(leaf)
    const proof: RecordProof = {
      type: 'tollbase/record-proof@v1',
      app: place.schema,
      ...(await chain.prove({ height, sequence })),
    }
    const { checks } = verifyRecordProof(proof, { trustedKey: place.options.signer.vkey })
    expect(
      checks.filter(({ ok }) => !ok),
      `leaf ${leaf}`,
    ).toEqual([])
    return proof
  }

  test('every leaf is proven with its own bytes, in any order, from a block and tiles read whole and by parts', async () => {
    const opened = await reopen()
    for (let round = 0; round < 2; round++)
      for (let at = 0; at < bodies.length; at += 31) {
        const leaf = (at * 977) % bodies.length
        const { entry = '' } = await prove(opened, leaf)
        expect(decodeEntry(Buffer.from(entry, 'base64')).body).toBe(bodies[leaf])
      }
    await opened.chain.close()
  })

  test('entries that are erased after their block was read keep their hash, and the others are found in their new places', async () => {
    const opened = await reopen()
    const before = await prove(opened, 3)
    await prove(opened, 700)
    await opened.chain.erase([2, 3, 701])
    const { entry, leaf_hash } = await prove(opened, 3)
    expect(entry).toBeUndefined()
    expect(leaf_hash).toMatch(/^[0-9a-f]{64}$/)
    expect(before.entry).toBeDefined()
    for (const leaf of [1, 4, 499, 700, 702]) {
      const proof = await prove(opened, leaf)
      expect(decodeEntry(Buffer.from(proof.entry ?? '', 'base64')).body).toBe(bodies[leaf])
    }
    const { leaf_hash: again } = await prove(opened, 701)
    expect(again).toMatch(/^[0-9a-f]{64}$/)
    await opened.chain.close()
  })

  test('bytes that were changed in the database after their block was read are never given out', async () => {
    const opened = await reopen()
    const { height, sequence } = await opened.chain.locate(900)
    await prove(opened, 901)
    await test_.database.execute(sql`
      UPDATE ${sql.id(opened.place.schema, 'block')}
      SET body = overlay(body PLACING '\\x58'::bytea FROM position('"at":900,'::bytea IN body) + 16)
      WHERE height = ${height}`)
    await expect(opened.chain.prove({ height, sequence })).rejects.toThrow(/damaged: entry/)
    await prove(opened, 902)
    await opened.chain.close()
  })
})
