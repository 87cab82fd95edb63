import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { createData, type Data } from '../support/data.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { type FaultyNode, startFaultyNode } from './faulty-node.ts'
import { type OuterChain, startOuterChain } from './place.ts'
import { awaitPublished, choose, makeEvmSettings, signer } from './published.ts'

vi.setConfig({ testTimeout: 120_000 })

/** An earlier process left something between two steps, and nothing else is published that would bring it to an end. */
describe('a process that ended', () => {
  let chain: OuterChain
  let node: FaultyNode
  let service: TestService
  beforeAll(async () => {
    chain = await startOuterChain()
    node = await startFaultyNode(chain.url)
    await chain.call('anvil_setBalance', signer, '0xde0b6b3a7640000')
    service = await startTestService({ config: { publishers: [makeEvmSettings(node.url)] } })
  })
  // A second try of a test must not find what the first one left.
  afterEach(() => node.behave('honest'))
  afterAll(async () => {
    await service?.close()
    await node?.stop()
    await chain?.stop()
  })

  const listSigned = ({ appId }: Data) =>
    service.database.query<{ raw: Buffer }>(
      sql`SELECT raw FROM operations.transaction_journal WHERE id LIKE ${`publish:%:${appId}:%`}`,
    )
  const listStates = async ({ appId }: Data) => {
    const rows = await service.database.query<{ state: string }>(
      sql`SELECT state FROM operations.publication WHERE app = ${appId}`,
    )
    return rows.map(({ state }) => state)
  }
  const createApp = async () => {
    const app = await createData(service)
    await app.publish('open', [{ id: 'a', planted: 'a secret' }])
    await choose(app, 'plaintext')
    return app
  }
  const awaitNothingSigned = (app: Data, bytesMax = 0) =>
    vi.waitFor(
      async () => {
        service.world.advance(2_000)
        const lengths = (await listSigned(app)).map(({ raw }) => raw.length)
        expect(lengths.filter((length) => length > bytesMax)).toEqual([])
      },
      { timeout: 30_000, interval: 200 },
    )

  test('between the last look at a bundle and the end of its signed bytes: the next one forgets them, though the application publishes no more', async () => {
    const app = await createApp()
    await awaitPublished(service, app)
    const table = sql.id('operations', 'transaction_journal')
    const kept = sql.id('operations', 'kept_by_test')
    await service.database.execute(
      sql`CREATE TABLE ${kept} AS SELECT * FROM ${table} WHERE id LIKE ${`publish:%:${app.appId}:%`}`,
    )
    expect(await listSigned(app)).not.toEqual([])
    await chain.call('anvil_mine', '0x50')
    service.world.advance(31_000)
    await awaitNothingSigned(app)
    expect(await listStates(app)).toEqual(['final'])
    await choose(app, 'nothing')
    await service.whileStopped(async () => {
      await service.database.execute(sql`INSERT INTO ${table} SELECT * FROM ${kept}`)
      await service.database.execute(sql`DROP TABLE ${kept}`)
      expect(await listSigned(app)).not.toEqual([])
    })
    await awaitNothingSigned(app)
    expect(await listStates(app)).toEqual(['final'])
  })

  test('between the signing of a chunk and the note of it: the next one withdraws it where its application wants nothing to be published by then', async () => {
    node.behave('full')
    const app = await createApp()
    await vi.waitFor(async () => expect(await listSigned(app)).toHaveLength(1), { timeout: 20_000 })
    await vi.waitFor(async () => expect(await listStates(app)).toEqual(['sent']), 5_000)
    await choose(app, 'nothing')
    await service.whileStopped(async () => {
      await service.database.execute(
        sql`UPDATE operations.publication SET state = 'waiting', transaction = NULL WHERE app = ${app.appId}`,
      )
      // Before the next process sends anything: what a node refuses is sent again ten seconds later at the earliest.
      node.behave('honest')
    })
    // An empty transaction has its nonce.
    await awaitNothingSigned(app, 200)
    await vi.waitFor(
      async () => {
        service.world.advance(2_000)
        expect(await listStates(app)).toEqual(['waiting'])
      },
      { timeout: 20_000, interval: 200 },
    )
    await choose(app, 'plaintext')
    await awaitPublished(service, app)
  })

  const dayBytes = async () => {
    const [row] = await service.database.query<{ bytes: bigint }>(
      sql`SELECT coalesce(sum(bytes), 0)::int8 AS bytes FROM operations.publication_day`,
    )
    return Number(row?.bytes)
  }

  test('between the signing of a chunk and the answer that it is signed: the bytes count in its day', async () => {
    const before = await dayBytes()
    let isBroken = false
    service.world.atFailpoints((point) => {
      if (point !== 'payment.journaled' || isBroken) return
      isBroken = true
      throw new Error('the database did not answer')
    })
    const app = await createApp()
    await awaitPublished(service, app, 2_000)
    service.world.atFailpoints(undefined)
    expect(isBroken).toBe(true)
    const [sent] = await service.database.query<{ bytes: bigint }>(
      sql`SELECT sum(bytes)::int8 AS bytes FROM operations.publication WHERE app = ${app.appId}`,
    )
    expect((await dayBytes()) - before).toBe(Number(sent?.bytes))
  })

  test('between two looks of this one: what another one has noted since stays', async () => {
    const signed = await createApp()
    await awaitPublished(service, signed)
    node.behave('refuse')
    const app = await createApp()
    await vi.waitFor(
      async () => {
        service.world.advance(2_000)
        expect(await listStates(app)).toEqual(['waiting'])
      },
      { timeout: 60_000, interval: 200 },
    )
    const table = sql.id('operations', 'transaction_journal')
    const copy = sql.id('operations', 'copied_by_test')
    const named = sql`SELECT concat_ws(':', 'publish', network, app, from_height, part, encode(substr(bundle, 1, 8), 'hex'), attempt)
      FROM operations.publication WHERE app = ${app.appId}`
    await service.database.transaction(async (tx) => {
      for (const change of [
        sql`CREATE TABLE ${copy} AS SELECT * FROM ${table} WHERE id LIKE ${`publish:%:${signed.appId}:%`} LIMIT 1`,
        sql`UPDATE ${copy} SET id = (${named}), nonce = 1000000, hash = ${`0x${'5'.repeat(64)}`}`,
        sql`INSERT INTO ${table} SELECT * FROM ${copy}`,
        sql`DROP TABLE ${copy}`,
        sql`UPDATE operations.publication SET state = 'confirmed', transaction = ${`0x${'5'.repeat(64)}`},
          block_number = 1, block_hash = ${`0x${'6'.repeat(64)}`} WHERE app = ${app.appId}`,
      ])
        await tx.execute(change)
    })
    for (let look = 0; look < 5; look++) {
      service.world.advance(31_000)
      await new Promise((resolve) => setTimeout(resolve, 300))
    }
    expect(await listStates(app)).toEqual(['confirmed'])
  })
})
