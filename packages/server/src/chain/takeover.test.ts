import { spawnSync } from 'node:child_process'
import { hostname } from 'node:os'
import { setTimeout as wait } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { realWorld } from '../base/world.ts'
import type { Database, Queryable } from '../database/database.ts'
import { CommitUnknownError } from '../database/errors.ts'
import { type SqlStatement, sql } from '../database/sql.ts'
import { createTestDatabase, type TestDatabase } from '../database/testing.ts'
import { auditChain } from './audit-chain.ts'
import type { Chain } from './chain.ts'
import { createTestChain, makeEntries, type TestChain } from './testing.ts'

let shared: TestDatabase
beforeAll(async () => {
  shared = await createTestDatabase()
})
afterAll(() => shared.drop())

describe('producers, one at a time', () => {
  test('a second opener waits for the lease and is then told who holds the chain', async () => {
    const { open, schema } = await createTestChain(shared.database)
    const first = await open()
    await expect(open({ holder: 'second' })).rejects.toMatchObject({
      code: 'UNAVAILABLE',
      message: `The chain ${schema} is held by first.`,
      details: { chain: schema, holder: 'first' },
    })
    await first.append(makeEntries('still here'))
    await first.close()
    const second = await open({ holder: 'second' })
    expect(second.head().height).toBe(1)
    await second.close()
  })

  test('a holder whose process is gone from this host is succeeded at once', async () => {
    const { open } = await createTestChain(shared.database)
    const { pid } = spawnSync('true')
    const dead = `${hostname()}/${pid}/0123456789abcdef`
    const first = await open({ holder: dead, leaseTtlMs: 60_000 })
    const startedAt = Date.now()
    const second = await open({ holder: 'second', leaseTtlMs: 60_000 })
    expect(Date.now() - startedAt).toBeLessThan(30_000)
    await expect(first.append(makeEntries('late'))).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    await expect(second.append(makeEntries('b'))).resolves.toMatchObject({ height: 1 })
    await first.close()
    await second.close()
  })

  test('a holder that fell silent is succeeded, and may not append any more', async () => {
    const { open, options, applied } = await createTestChain(shared.database)
    const silent = { ...realWorld, every: () => () => undefined }
    const first = await open({ world: silent })
    await first.append(makeEntries('a'))
    const second = await open({ holder: 'second' })
    await expect(first.ensureHeld()).rejects.toMatchObject({
      code: 'UNAVAILABLE',
      details: { holder: 'second' },
    })
    await expect(first.append(makeEntries('b'))).rejects.toMatchObject({
      code: 'UNAVAILABLE',
      details: { holder: 'second' },
    })
    expect(first.failure).toBeDefined()
    await second.append(makeEntries('c'))
    await second.whenApplied(second.head().height)
    await first.close()
    await second.close()
    expect(await applied()).toEqual(['a', 'c'])
    expect(await audit(options)).toMatchObject({ ok: true, blocks: 2 })
  })

  test('a producer that still believes in its lease is fenced', async () => {
    const { open, options, schema } = await createTestChain(shared.database)
    const first = await open({ leaseTtlMs: 60_000 })
    await first.append(makeEntries('a'))
    await first.whenApplied(1)
    await expire(schema)
    const second = await open({ holder: 'second' })
    await second.append(makeEntries('b'))
    const lost = await Promise.allSettled([
      first.append(makeEntries('x')),
      first.append(makeEntries('y')),
    ])
    expect(lost.map((each) => each.status)).toEqual(['rejected', 'rejected'])
    await expect(first.append(makeEntries('z'))).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    await second.append(makeEntries('c'))
    await Promise.all([first.close(), second.close()])
    expect(await audit(options)).toMatchObject({ ok: true, blocks: 3, entries: 3 })
  })
})

describe('an earlier holder that is still at work', () => {
  test('an earlier holder applies blocks between the statements of the opening, which opens at one position', async () => {
    const { open, options, schema } = await createTestChain(shared.database)
    let apply: () => void = () => undefined
    const mayApply = new Promise<void>((resolve) => {
      apply = resolve
    })
    const first = await open({
      leaseTtlMs: 60_000,
      applier: {
        apply: async (...step) => {
          await mayApply
          return options.applier.apply(...step)
        },
      },
    })
    await first.append(makeEntries('a', 'b'))
    const intrude = async () => {
      apply()
      await first.whenApplied(1)
    }
    let seen: readonly unknown[] = []
    const prepare = async (snapshot: Queryable) => {
      const mark = sql`SELECT leaf FROM ${sql.id(schema, 'watermark')}`
      const count = sql`SELECT count(*) AS leaf FROM ${sql.id(schema, 'applied')}`
      seen = [...(await snapshot.query(mark)), ...(await snapshot.query(count))]
    }
    await expire(schema)
    const second = await open({
      holder: 'second',
      database: beforeEachRead(shared.database, intrude),
      prepare,
    })
    expect(Number((await readWatermark(schema)).leaf)).toBe(2)
    expect(seen).toHaveLength(2)
    expect(seen[0]).toEqual(seen[1])
    await second.append(makeEntries('c'))
    await Promise.all([first.close(), second.close()])
  })

  test('an earlier holder that paused between the look at its lease and the commit commits nothing', async () => {
    const { open, options, schema } = await createTestChain(shared.database)
    let second: Chain | undefined
    const first = await open({
      leaseTtlMs: 60_000,
      database: beforeFirstInsertion(shared.database, async () => {
        await expire(schema)
        second = await open({ holder: 'second' })
      }),
    })
    await expect(first.append(makeEntries('a'))).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    expect(first.failure).toBeDefined()
    expect(second?.head().height).toBe(0)
    await second?.append(makeEntries('b'))
    await Promise.all([first.close(), second?.close()])
    expect(await audit(options)).toMatchObject({ ok: true, blocks: 1, entries: 1 })
  })

  test('who takes a chain waits for the block that its earlier holder is writing, and knows it', async () => {
    const { open, options, schema } = await createTestChain(shared.database)
    let opening: Promise<Chain> | undefined
    let isOpen = false
    const first = await open({
      leaseTtlMs: 60_000,
      // Two that apply the same block at once would exclude each other.
      applier: { apply: () => Promise.reject(new Error('it applies nothing')) },
      database: {
        ...shared.database,
        execute: (statement) => {
          if (opening !== undefined || !isInsertion(statement))
            return shared.database.execute(statement)
          return shared.database.transaction(async (tx) => {
            // Before, because the insertion keeps its lease as it is.
            await expire(schema)
            const count = await tx.execute(statement)
            opening = open({ holder: 'second' })
            void opening.then(() => {
              isOpen = true
            })
            await wait(300)
            expect(isOpen).toBe(false)
            return count
          })
        },
      },
    })
    await expect(first.append(makeEntries('a'))).resolves.toMatchObject({ height: 1 })
    const second = await opening
    expect(second?.head().height).toBe(1)
    await Promise.all([first.close(), second?.close()])
    expect(await audit(options)).toMatchObject({ ok: true, blocks: 1 })
  })
})

describe('connections lost during the commit', () => {
  test.each(['before', 'after'] as const)(
    'a connection lost %s the block was written leaves the block there once, and acknowledged',
    async (moment) => {
      const { open, options } = await createTestChain(shared.database)
      const faulty = losing(shared.database, moment, 'INSERT INTO')
      const chain = await open({ database: faulty.database })
      await chain.append(makeEntries('first'))
      faulty.arm(2)
      const appended = await Promise.all([
        chain.append(makeEntries('a')),
        chain.append(makeEntries('b')),
      ])
      expect(appended.map((each) => each.leafIndex)).toEqual([1, 2])
      await chain.append(makeEntries('last'))
      await chain.close()
      expect(faulty.lost()).toBe(2)
      expect(await audit(options)).toMatchObject({ ok: true, blocks: 3, entries: 4 })
    },
  )

  test('a connection lost again while the service looks for the block leaves the block there once, and acknowledged', async () => {
    const { open, options } = await createTestChain(shared.database)
    const faulty = losing(shared.database, 'after', 'INSERT INTO')
    let looks = 0
    const blind: Database = {
      ...faulty.database,
      query: (statement, given) => {
        if (/WHERE height = /.test(statement.text)) looks += 1
        return looks === 1
          ? Promise.reject(new Error('Connection terminated unexpectedly'))
          : shared.database.query(statement, given)
      },
    }
    const chain = await open({ database: blind })
    faulty.arm(1)
    expect(await chain.append(makeEntries('a'))).toMatchObject({ height: 1 })
    await chain.close()
    expect(looks).toBe(2)
    expect(await audit(options)).toMatchObject({ ok: true, blocks: 1, entries: 1 })
  })

  test.each([
    ['commits', 'acknowledged'],
    ['does nothing', 'of an unknown outcome, until the chain is opened again'],
  ] as const)(
    'a block that the storage refuses while the attempt before it is on its way, and %s, is %s',
    async (end, outcome) => {
      const { open, options, applied } = await createTestChain(shared.database)
      const late = beingLate(shared.database, end === 'commits')
      const hasty = { ...realWorld, sleep: () => wait(20) }
      const chain = await open({ database: late.database, world: hasty, leaseTtlMs: 60_000 })
      late.arm()
      const appended = chain.append(makeEntries('a'))
      if (outcome === 'acknowledged') {
        await expect(appended).resolves.toMatchObject({ height: 1 })
        await chain.append(makeEntries('b'))
      } else await expect(appended).rejects.toMatchObject({ code: 'UNAVAILABLE' })
      await late.finish()
      await chain.close()
      const again = await open()
      await again.append(makeEntries('c'))
      await again.close()
      expect(await applied()).toEqual(end === 'commits' ? ['a', 'b', 'c'] : ['c'])
      expect(await audit(options)).toMatchObject({ ok: true })
    },
  )

  test('a connection that never comes back ends the chain with UNAVAILABLE, and opening it again goes on', async () => {
    const { open, options, applied } = await createTestChain(shared.database)
    const hasty = { ...realWorld, sleep: () => wait(1) }
    const faulty = losing(shared.database, 'before', 'INSERT INTO')
    const chain = await open({ database: faulty.database, world: hasty })
    faulty.arm(1_000)
    await expect(chain.append(makeEntries('lost'))).rejects.toMatchObject({
      code: 'UNAVAILABLE',
      retryAfterSeconds: 1,
    })
    await expect(chain.append(makeEntries('lost'))).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    expect(chain.head().size).toBe(0)
    await chain.close()
    const again = await open()
    await again.append(makeEntries('kept'))
    await again.close()
    expect(await applied()).toEqual(['kept'])
    expect(await audit(options)).toMatchObject({ ok: true, blocks: 1 })
  })

  test('a block whose applier lost its connection after the commit is not applied twice', async () => {
    const { open, applied } = await createTestChain(shared.database)
    const faulty = losing(shared.database, 'after', 'transaction')
    const chain = await open({ database: faulty.database })
    faulty.arm(1)
    await chain.append(makeEntries('a', 'b'))
    await chain.whenApplied(1)
    await chain.append(makeEntries('c'))
    await chain.whenApplied(2)
    expect(faulty.lost()).toBe(1)
    expect(await applied()).toEqual(['a', 'b', 'c'])
    await chain.close()
  })
})

/** Wraps the database in a connection that breaks the armed number of times, before or after the work was done. */
function losing(
  database: Database,
  moment: 'before' | 'after',
  kind: 'INSERT INTO' | 'transaction',
) {
  let armed = 0
  let lost = 0
  const lose = async <T>(work: () => Promise<T>): Promise<T> => {
    if (armed === 0) return work()
    armed -= 1
    lost += 1
    if (moment === 'after') await work().catch(() => undefined)
    if (kind === 'transaction') throw new CommitUnknownError('lost')
    throw Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET', syscall: 'read' })
  }
  const faulty: Database = {
    ...database,
    execute: (statement) =>
      kind === 'INSERT INTO' && statement.text.startsWith(kind)
        ? lose(() => database.execute(statement))
        : database.execute(statement),
    transaction: (work, options) =>
      kind === 'transaction'
        ? lose(() => database.transaction(work, options))
        : database.transaction(work, options),
  }
  return {
    database: faulty,
    arm: (times: number) => {
      armed = times
    },
    lost: () => lost,
  }
}

/**
 * Wraps the database so that the next block is lost with its connection and still at work, while the storage refuses the
 * attempts that follow; after some of them it commits, and there is room again, or it does nothing.
 */
function beingLate(database: Database, commits: boolean) {
  let state: 'idle' | 'armed' | 'refusing' = 'idle'
  let refusals = 0
  let end: () => void = () => undefined
  let ended: Promise<unknown> = Promise.resolve()
  const begin = async (statement: SqlStatement): Promise<never> => {
    const isOver = new Promise<void>((resolve) => {
      end = resolve
    })
    await new Promise<void>((begun) => {
      const work = database.transaction(async (tx) => {
        await tx.execute(statement)
        begun()
        await isOver
        if (!commits) throw new Error('it did nothing')
      })
      ended = work.catch(() => undefined)
    })
    throw Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET', syscall: 'read' })
  }
  const finish = async () => {
    state = 'idle'
    end()
    await ended
  }
  const late: Database = {
    ...database,
    execute: async (statement) => {
      if (state === 'idle' || !statement.text.startsWith('INSERT INTO'))
        return database.execute(statement)
      if (state === 'armed') {
        state = 'refusing'
        return begin(statement)
      }
      refusals += 1
      if (commits && refusals === 3) await finish()
      const refusal = `BEGIN RAISE EXCEPTION 'no room' USING ERRCODE = '53100'; END`
      return database.execute(sql`DO ${sql.literal(refusal)}`)
    },
  }
  const arm = () => {
    state = 'armed'
  }
  return { database: late, arm, finish }
}

/** Wraps the database so that something happens before each statement that reads, also within transactions. */
function beforeEachRead(database: Database, happens: () => Promise<void>): Database {
  const reading = (inner: Queryable): Queryable['query'] => {
    return async (statement, options) => {
      await happens()
      return inner.query(statement, options)
    }
  }
  return {
    ...database,
    query: reading(database),
    transaction: (work, options) =>
      database.transaction((tx) => work({ ...tx, query: reading(tx) }), options),
  }
}

async function readWatermark(schema: string) {
  const [row] = await shared.database.query<{ leaf: bigint }>(
    sql`SELECT leaf FROM ${sql.id(schema, 'watermark')}`,
  )
  return row ?? { leaf: 0n }
}

function audit(options: TestChain['options']) {
  return auditChain(shared.database, options.schema, {
    origin: options.origin,
    vkey: options.signer.vkey,
  })
}

/** Lets the next holder in at once. */
function expire(schema: string): Promise<number> {
  return shared.database.execute(
    sql`UPDATE operations.chain_lease SET expires_at_ms = 0 WHERE chain = ${schema}`,
  )
}

function isInsertion({ text }: SqlStatement): boolean {
  return text.startsWith('INSERT INTO')
}

/** Does the work before the first block is inserted. */
function beforeFirstInsertion(database: Database, work: () => Promise<void>): Database {
  let isDone = false
  return {
    ...database,
    execute: async (statement) => {
      if (!isDone && isInsertion(statement)) {
        isDone = true
        await work()
      }
      return database.execute(statement)
    },
  }
}
