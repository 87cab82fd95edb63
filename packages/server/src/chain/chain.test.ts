import { setTimeout } from 'node:timers/promises'
import { limits } from '@tollbase/contract/limits'
import { verifyCheckpoint } from '@tollbase/verify/checkpoint'
import { decodeEntry } from '@tollbase/verify/entry'
import { verifyRecordProof } from '@tollbase/verify/proof'
import { verifyConsistency } from '@tollbase/verify/tree'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { requirePresent } from '../base/assert.ts'
import { realWorld } from '../base/world.ts'
import { sql } from '../database/sql.ts'
import { createTestDatabase, listTestEngines, type TestDatabase } from '../database/testing.ts'
import { auditChain } from './audit-chain.ts'
import type { Chain } from './chain.ts'
import type { Appended } from './committer.ts'
import { createTestChain, makeEntries } from './testing.ts'

describe.each(listTestEngines())('a chain (%s)', (engine) => {
  let test_: TestDatabase
  beforeAll(async () => {
    test_ = await createTestDatabase(engine)
  })
  afterAll(() => test_.drop())

  const groups = fc.array(fc.integer({ min: 1, max: 300 }), { minLength: 1, maxLength: 12 })

  test('groups stay whole and in order, are applied in order, and every entry is provable', async () => {
    await fc.assert(
      fc.asyncProperty(groups, fc.nat(), async (sizes, place) => {
        const { options, open, applied } = await createTestChain(test_.database)
        const chain = await open()
        const bodies = sizes.map((size, group) =>
          Array.from({ length: size }, (_, index) => `{"g":${group},"i":${index}}`),
        )
        const before = { size: chain.head().size, note: chain.checkpoint() }
        const appended = await Promise.all(
          bodies.map((group) => chain.append(makeEntries(...group))),
        )
        expectConsecutive(appended, sizes)
        await chain.whenApplied(chain.head().height)
        expect(await applied()).toEqual(bodies.flat())
        expect(chain.lag()).toBe(0)

        const leaf = place % chain.head().size
        const { height, sequence } = await chain.locate(leaf)
        const proof = {
          type: 'tollbase/record-proof@v1',
          app: options.schema,
          ...(await chain.prove({ height, sequence })),
        } as const
        const { checks } = verifyRecordProof(proof, { trustedKey: options.signer.vkey })
        expect(checks.filter((each) => !each.ok)).toEqual([])
        const entry = await chain.readEntry({ height, sequence })
        expect(entry.leafIndex).toBe(leaf)
        expect(decodeEntry(entry.bytes).body).toBe(bodies.flat()[leaf])
        await expectConsistent(chain, before)
        await chain.close()
        expect(
          await auditChain(test_.database, options.schema, {
            origin: options.origin,
            vkey: options.signer.vkey,
          }),
        ).toMatchObject({ ok: true, entries: bodies.flat().length, blocks: chain.head().height })
      }),
      { numRuns: 6 },
    )
  })

  test('rows beside a block are there with its entries; where they are refused, the entries of others are committed without them, and the chain goes on', async () => {
    const { schema, open, options } = await createTestChain(test_.database)
    const { database } = test_
    const table = sql.id(schema, 'beside')
    await database.execute(sql`CREATE TABLE ${table} (id text PRIMARY KEY, height int8 NOT NULL)`)
    const insert = (id: string) => ({
      print: (height: number) => [
        sql`beside AS (INSERT INTO ${table} (id, height) VALUES (${id}, ${height}))`,
      ],
    })
    const chain = await open()
    const refused = { name: 'BesideRefusedError' }
    const outcomes = await Promise.allSettled([
      chain.append(makeEntries('{"n":1}')),
      chain.append(makeEntries('{"n":2}', '{"n":3}'), { beside: insert('a') }),
      chain.append(makeEntries('{"n":4}')),
      chain.append(makeEntries('{"n":5}'), { beside: insert('a') }),
      chain.append(makeEntries('{"n":6}')),
      chain.append(makeEntries('{"n":7}'), { beside: insert('b') }),
      chain.append(makeEntries('{"n":8}'), { beside: insert('not\0text') }),
      chain.append(makeEntries('{"n":9}')),
    ])
    const good = { status: 'fulfilled' }
    const bad = { status: 'rejected', reason: refused }
    expect(outcomes).toMatchObject([good, good, good, bad, good, good, bad, good])
    const rows = await database.query<{ id: string; height: bigint }>(
      sql`SELECT id, height FROM ${table} ORDER BY id`,
    )
    const heights = [1, 5].map((at) => {
      const outcome = outcomes[at]
      return outcome?.status === 'fulfilled' ? BigInt(outcome.value.height) : 0n
    })
    expect(rows).toEqual([
      { id: 'a', height: heights[0] },
      { id: 'b', height: heights[1] },
    ])
    const bodies: string[] = []
    for await (const block of chain.blocksFrom(1))
      for (let at = 0; at < block.header.entryCount; at++)
        bodies.push(decodeEntry(requirePresent(block.entryBytes(at), 'an entry')).body)
    expect(bodies).toEqual([1, 2, 3, 4, 6, 7, 9].map((n) => `{"n":${n}}`))
    await chain.close()
    const { origin, signer } = options
    expect(await auditChain(database, schema, { origin, vkey: signer.vkey })).toMatchObject({
      ok: true,
      entries: 7,
    })
  })

  test('a block of megabytes, which is sent a part at a time, is there whole with the rows beside it, or not at all', async () => {
    const { schema, open, options } = await createTestChain(test_.database)
    const { database } = test_
    const table = sql.id(schema, 'beside')
    await database.execute(sql`CREATE TABLE ${table} (id text PRIMARY KEY)`)
    const beside = { print: () => [sql`beside AS (INSERT INTO ${table} (id) VALUES ('a'))`] }
    const chain = await open()
    const makeLong = (start: string) =>
      Array.from({ length: 5 }, (_, at) => JSON.stringify(`${start}${at}`.repeat(300_001)))
    const [first, second, third] = ['é', 'b', 'c'].map(makeLong)
    await chain.append(makeEntries(...(first ?? [])))
    await chain.append(makeEntries(...(second ?? [])), { beside })
    await expect(chain.append(makeEntries(...(third ?? [])), { beside })).rejects.toMatchObject({
      name: 'BesideRefusedError',
    })
    await chain.append(makeEntries('1'))
    const bodies: string[] = []
    for await (const block of chain.blocksFrom(1))
      for (let at = 0; at < block.header.entryCount; at++)
        bodies.push(decodeEntry(requirePresent(block.entryBytes(at), 'an entry')).body)
    expect(bodies).toEqual([...(first ?? []), ...(second ?? []), '1'])
    await chain.close()
    const { origin, signer } = options
    expect(await auditChain(database, schema, { origin, vkey: signer.vkey })).toMatchObject({
      ok: true,
      entries: 11,
    })
  })

  test('a block with rows beside it whose statement is cancelled is tried again: an attempt before it may still be on its way', async () => {
    const { schema, open } = await createTestChain(test_.database)
    const { database } = test_
    const [block, table] = [sql.id(schema, 'block'), sql.id(schema, 'beside')]
    await database.execute(sql`CREATE TABLE ${table} (id text PRIMARY KEY)`)
    const chain = await open({ leaseTtlMs: 60_000 })
    const print = () => [sql`beside AS (INSERT INTO ${table} (id) VALUES ('a'))`]
    const begun = await database.transaction(async (tx) => {
      await tx.execute(sql`LOCK TABLE ${block} IN SHARE MODE`)
      const outcome = chain.append(makeEntries('{"n":1}'), { beside: { print } }).then(
        ({ height }) => height,
        (error: Error) => error.name,
      )
      await expect
        .poll(() =>
          database.query(sql`SELECT pg_cancel_backend(pid) AS done FROM pg_stat_activity
            WHERE wait_event_type = 'Lock' AND datname = current_database()`),
        )
        .toHaveLength(1)
      await setTimeout(200)
      // Not awaited before the lock is gone.
      return { outcome }
    })
    expect(await begun.outcome).toBe(1)
    expect(await database.query(sql`SELECT id FROM ${table}`)).toEqual([{ id: 'a' }])
    await chain.close()
  })

  test('a chain that is opened again goes on as if it had never been closed', async () => {
    const { open, applied } = await createTestChain(test_.database)
    let expected: string[] = []
    for (let round = 0; round < 4; round++) {
      const chain = await open()
      const bodies = Array.from({ length: 170 }, (_, index) => `${round}/${index}`)
      const before = { size: chain.head().size, note: chain.checkpoint() }
      await chain.append(makeEntries(...bodies))
      expected = [...expected, ...bodies]
      await expectConsistent(chain, before)
      await chain.close()
      expect(await applied()).toEqual(expected)
    }
  })

  test('block times rise strictly even where the clock stands still or goes back', async () => {
    const { open } = await createTestChain(test_.database)
    let now = 1_000_000
    const chain = await open({ world: { ...realWorld, now: () => now } })
    const times: number[] = []
    for (const next of [1_000_000, 1_000_000, 999_000, 1_000_500]) {
      now = next
      times.push((await chain.append(makeEntries('x'))).time)
    }
    expect(times).toEqual([1_000_000, 1_000_001, 1_000_002, 1_000_500])
    await chain.close()
  })

  test('concurrent appends share blocks', async () => {
    const { open } = await createTestChain(test_.database)
    const chain = await open()
    const appended = await Promise.all(
      Array.from({ length: 64 }, (_, index) => chain.append(makeEntries(String(index)))),
    )
    expect(new Set(appended.map((each) => each.height)).size).toBeLessThanOrEqual(3)
    const block = requirePresent(await chain.readBlock(1), 'block 1')
    expect(block.groupStarts).toEqual(block.entries.map((_, index) => index))
    const seen: number[] = []
    for await (const each of chain.blocksFrom(1)) seen.push(each.height)
    expect(seen).toEqual(Array.from({ length: chain.head().height }, (_, index) => index + 1))
    await chain.close()
  })

  test('large groups have blocks of their own, so that the first does not wait for the last', async () => {
    const { open } = await createTestChain(test_.database)
    const chain = await open()
    const large = Array.from({ length: 800 }, (_, index) => String(index))
    const appended = await Promise.all(
      [large, large, ['a'], ['b'], large].map((bodies) => chain.append(makeEntries(...bodies))),
    )
    const heights = appended.map(({ height }) => height)
    expect(heights).toEqual(heights.toSorted((one, other) => one - other))
    // The small ones share a block with each other, or with what is committed while they come.
    const [first, second, , , last] = heights
    expect(new Set([first, second, last]).size).toBe(3)
    await chain.close()
  })

  test('a group that cannot be appended is refused and leaves no trace', async () => {
    const { open } = await createTestChain(test_.database)
    const chain = await open()
    const refuse = () => {
      throw new Error('not enough')
    }
    await expect(chain.append(makeEntries('a'), { check: refuse })).rejects.toThrow('not enough')
    const many = Array.from({ length: limits.blockEntriesMax + 1 }, () => 'x')
    await expect(chain.append(makeEntries(...many))).rejects.toMatchObject({
      code: 'PAYLOAD_TOO_LARGE',
    })
    await expect(chain.append(makeEntries('x'.repeat(limits.blockBytesMax)))).rejects.toMatchObject(
      { code: 'PAYLOAD_TOO_LARGE' },
    )
    await expect(chain.append(makeEntries('\ud800'))).rejects.toThrow('well-formed')
    expect(chain.head()).toMatchObject({ height: 0, size: 0 })
    expect(await chain.append(makeEntries(...many.slice(1)))).toMatchObject({
      height: 1,
      count: limits.blockEntriesMax,
    })

    await expect(
      chain.prove({ height: 1, sequence: limits.blockEntriesMax }),
    ).rejects.toMatchObject({
      code: 'NO_CHAIN_ENTRY',
    })
    await expect(chain.locate(limits.blockEntriesMax)).rejects.toMatchObject({
      code: 'NO_CHAIN_ENTRY',
    })
    await expect(chain.inclusion(0, limits.blockEntriesMax + 1)).rejects.toMatchObject({
      code: 'VALIDATION_FAILED',
    })
    expect(await chain.readBlock(2)).toBeUndefined()
    await chain.close()
    await expect(chain.append(makeEntries('a'))).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    await expect(chain.whenApplied(2)).rejects.toThrow('closed')
  })

  test('a thousand entries cost little', async () => {
    const { open } = await createTestChain(test_.database)
    const chain = await open()
    const body = JSON.stringify({ text: 'x'.repeat(430) })
    const entries = Array.from({ length: 1000 }, (_, index) => ({
      header: { type: 'record', collection: 'c1', key: `k${index}` },
      body,
    }))
    const rounds = 20
    for (let round = 0; round < 5; round++) await chain.append(entries)
    await chain.whenApplied(chain.head().height)
    const cpu = process.cpuUsage()
    const started = performance.now()
    for (let round = 0; round < rounds; round++) await chain.append(entries)
    const wallMs = (performance.now() - started) / rounds
    await chain.whenApplied(chain.head().height)
    const { user, system } = process.cpuUsage(cpu)
    const cpuMs = (user + system) / 1000 / rounds
    process.stdout.write(
      `${engine}: 1000 entries of 450 bytes: ${wallMs.toFixed(1)} ms to commit, ${cpuMs.toFixed(1)} ms of CPU with applying\n`,
    )

    const single = performance.now()
    let done = 0
    await Promise.all(
      Array.from({ length: 64 }, async () => {
        for (let index = 0; index < 30; index++, done++) await chain.append(entries.slice(0, 1))
      }),
    )
    process.stdout.write(
      `${engine}: 64 appenders of one entry: ${Math.round(done / ((performance.now() - single) / 1000))}/s\n`,
    )
    await chain.close()
    expect(cpuMs).toBeLessThan(200)
  })
})

function expectConsecutive(appended: readonly Appended[], sizes: readonly number[]): void {
  let leaf = 0
  appended.forEach((each, index) => {
    const previous = appended[index - 1]
    expect(each.leafIndex).toBe(leaf)
    expect(each.count).toBe(sizes[index])
    const sameBlock = previous !== undefined && previous.height === each.height
    expect(each.sequence).toBe(sameBlock ? previous.sequence + previous.count : 0)
    if (!sameBlock) expect(each.height).toBe((previous?.height ?? 0) + 1)
    leaf += each.count
  })
}

async function expectConsistent(
  chain: Chain,
  before: { size: number; note: string },
): Promise<void> {
  const { from, to, hashes } = await chain.consistency(before.size)
  const older = verifyCheckpoint(before.note, chain.vkey)
  const newer = verifyCheckpoint(chain.checkpoint(), chain.vkey)
  if (!older.ok || !newer.ok) throw new Error('a checkpoint is not valid')
  const proof = hashes.map((hash) => Buffer.from(hash, 'base64'))
  expect(
    verifyConsistency({
      from,
      to,
      fromRoot: older.checkpoint.root,
      toRoot: newer.checkpoint.root,
      proof,
    }),
  ).toBe(true)
}
