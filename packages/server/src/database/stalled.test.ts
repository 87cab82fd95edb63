import { createServer, connect as dial, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { realWorld } from '../base/world.ts'
import type { DatabaseOptions } from './connection.ts'
import { type Database, openDatabase } from './database.ts'
import { isTransient } from './errors.ts'
import { sql } from './sql.ts'
import { createTestDatabase, listTestEngines, type TestDatabase } from './testing.ts'

const patience = { timeout: 20_000, interval: 10 }
const pause = (ms: number) => new Promise((done) => setTimeout(done, ms))

/** A link to the database that can hold back what clients send. */
type Link = {
  readonly port: number
  /** Holds back everything after this text, on the first connection that sends it, until `release`. */
  readonly holdAfter: (text: string) => void
  readonly isHolding: () => boolean
  readonly release: () => void
  /** Refuses new connections; returns the number of tries since. */
  readonly refuse: () => { readonly tries: () => number; readonly end: () => void }
  readonly close: () => Promise<void>
}

async function openLink(socketPath: string): Promise<Link> {
  let wanted: Buffer | undefined
  let held: { readonly server: Socket; rest: Buffer } | undefined
  const sockets = new Set<Socket>()
  let refused: number | undefined
  const listener = createServer((client) => {
    if (refused !== undefined) {
      refused += 1
      client.destroy()
      return
    }
    const server = dial(socketPath)
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const) {
      sockets.add(one)
      one.on('error', () => undefined)
      one.on('close', () => other.destroy())
    }
    server.pipe(client)
    client.on('data', (sent) => {
      if (held?.server === server) {
        held.rest = Buffer.concat([held.rest, sent])
        return
      }
      const at = wanted === undefined ? -1 : sent.indexOf(wanted)
      if (wanted === undefined || at < 0) {
        server.write(sent)
        return
      }
      const end = at + wanted.length
      wanted = undefined
      server.write(sent.subarray(0, end))
      held = { server, rest: sent.subarray(end) }
    })
  })
  await new Promise<void>((done) => listener.listen(0, '127.0.0.1', done))
  const address = listener.address()
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    holdAfter: (text) => {
      wanted = Buffer.from(text)
    },
    isHolding: () => held !== undefined,
    release: () => {
      held?.server.write(held.rest)
      held = undefined
    },
    refuse: () => {
      refused = 0
      const end = () => {
        refused = undefined
      }
      return { tries: () => refused ?? 0, end }
    },
    close: () => {
      for (const socket of sockets) socket.destroy()
      return new Promise((done) => listener.close(() => done()))
    },
  }
}

describe.each(listTestEngines())('stalled connections (%s)', (engine) => {
  let place: TestDatabase
  let link: Link
  beforeAll(async () => {
    place = await createTestDatabase(engine)
    await place.database.execute(sql`CREATE SCHEMA s`)
    await place.database.execute(sql`CREATE TABLE s.t (k integer PRIMARY KEY)`)
    const { host, port } = place.connection
    link = await openLink(`${host}/.s.PGSQL.${port}`)
  })
  afterAll(async () => {
    await link.close()
    await place.drop()
  })

  const open = (options: Omit<DatabaseOptions, 'connection'>): Promise<Database> =>
    openDatabase({
      ...options,
      connection: { ...place.connection, host: '127.0.0.1', port: link.port },
    })
  const keys = async () =>
    (await place.database.query<{ k: number }>(sql`SELECT k FROM s.t ORDER BY k`)).map(({ k }) => k)

  test('statements behind a first one that runs out of time are not done, whether they went with it or waited', async () => {
    const db = await open({ poolSize: 1 })
    const insert = (k: number) => sql`INSERT INTO s.t VALUES (${k})`
    let outcomes: readonly PromiseSettledResult<unknown>[] = []
    const transaction = db.transaction(
      async (tx) => {
        const slow = sql`SELECT pg_sleep(10)::text AS slept`
        outcomes = await Promise.allSettled([tx.query(slow), tx.execute(insert(1))])
        await tx.execute(insert(2)).catch(() => undefined)
      },
      { statementTimeoutMs: 50 },
    )
    await expect(transaction).rejects.toThrow()
    for (const outcome of outcomes)
      expect(outcome).toMatchObject({ status: 'rejected', reason: { code: '57014' } })
    expect(await keys()).toEqual([])
    expect(await db.transaction((tx) => tx.execute(insert(4)))).toBe(1)
    expect(await keys()).toEqual([4])
    await db.close()
  })

  test('a connection that was lost before COMMIT was sent is no unknown outcome', async () => {
    const db = await open({ poolSize: 1 })
    const transaction = db.transaction(async (tx) => {
      const [row] = await tx.query<{ pid: number }>(sql`SELECT pg_backend_pid() AS pid`)
      await place.database.query(sql`SELECT pg_terminate_backend(${row?.pid})`)
      const said = () => tx.query(sql`SELECT 1`).then(() => 'nothing', String)
      await expect.poll(said, patience).toMatch(/is not queryable/)
    })
    const error: unknown = await transaction.catch((thrown: unknown) => thrown)
    expect(isTransient(error), String(error)).toBe(true)
    await db.close()
  })

  /** Opens the shared connection. */
  const warm = async (db: Database) => {
    await expect
      .poll(async () => {
        await db.queryShort(sql`SELECT 1`)
        return db.stats().total
      }, patience)
      .toBe(2)
  }
  const hurried = {
    ...realWorld,
    every: (ms: number, call: () => void) => realWorld.every(Math.min(ms, 300), call),
  }

  test('a database closes where a shared connection does not answer', async () => {
    const db = await open({ poolSize: 1, pipelines: 1, world: hurried })
    await warm(db)
    link.holdAfter('FROM s.t WHERE k = 77')
    const read = Promise.allSettled([db.queryShort(sql`SELECT k FROM s.t WHERE k = 77`)])
    await expect.poll(link.isHolding, patience).toBe(true)
    await db.close()
    expect(await read).toMatchObject([{ status: 'rejected' }])
    link.release()
  })

  test.each([
    ['shared', (db: Database) => db.queryShort(sql`SELECT 1`)],
    ['of the pool', (db: Database) => Promise.all([1, 2].map((n) => db.query(sql`SELECT ${n}`)))],
  ] as const)(
    'a database closes where a connection %s that is being made does not answer',
    async (_which, use) => {
      const db = await open({ poolSize: 2, pipelines: 1, world: hurried })
      link.holdAfter("set_config('TimeZone'")
      const used = Promise.allSettled([use(db)])
      await expect.poll(link.isHolding, patience).toBe(true)
      await db.close()
      await used
      link.release()
    },
  )

  test('reads do not try again and again for shared connections where nobody can connect', async () => {
    let ticks = 0
    const world = { ...realWorld, ticks: () => ticks }
    const db = await open({ poolSize: 1, pipelines: 1, world })
    const refusal = link.refuse()
    const read = (n: number) => db.queryShort<{ n: number }>(sql`SELECT ${n}::int4 AS n`)
    for (let n = 0; n < 50; n++) {
      expect(await read(n)).toEqual([{ n }])
      await pause(2)
    }
    expect(refusal.tries()).toBe(1)
    refusal.end()
    ticks += 2_000
    await warm(db)
    await db.close()
  })
})
