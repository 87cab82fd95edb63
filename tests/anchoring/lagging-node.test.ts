import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { deriveAddress } from '../../packages/server/src/x402/signature.ts'
import { createData, type Data } from '../support/data.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { type Behaviour, type FaultyNode, startFaultyNode } from './faulty-node.ts'
import { type OuterChain, startOuterChain, writeTemporary } from './place.ts'

vi.setConfig({ testTimeout: 90_000 })

const network = 'eip155:31337'
const keys = { anchors: `0x${'7a'.repeat(32)}`, publishers: `0x${'7b'.repeat(32)}` }
const getSigner = (key: string) => deriveAddress(Buffer.from(key.slice(2), 'hex'))

/** A URL with several nodes behind it: one may not have yet, or have otherwise, what another one told. */
describe('a node behind the one that counted', () => {
  let chain: OuterChain
  let node: FaultyNode
  let service: TestService
  let app: Data
  beforeAll(async () => {
    chain = await startOuterChain()
    node = await startFaultyNode(chain.url)
    for (const key of Object.values(keys))
      await chain.call('anvil_setBalance', getSigner(key), '0xde0b6b3a7640000')
    const makeSettings = (key: string) => [
      {
        ...{ network, rpc_url: node.url, confirmations: 1, interval_seconds: 1 },
        signer_key_file: writeTemporary('key', key),
      },
    ]
    const anchors = makeSettings(keys.anchors)
    const publishers = makeSettings(keys.publishers)
    service = await startTestService({ config: { anchors, publishers } })
    app = await createData(service)
    await app.publish('open', [{ id: 'a' }])
    await app.call('PATCH', '', { publish: 'plaintext' })
    await awaitPublished()
    await awaitAnchored()
  })
  afterAll(async () => {
    await service?.close()
    await node?.stop()
    await chain?.stop()
  })

  const count = async (key: string) =>
    Number(await chain.call('eth_getTransactionCount', getSigner(key), 'latest'))
  const countAttempts = async () => {
    const rows = await service.database.query<{ attempt: number }>(
      sql`SELECT attempt FROM operations.publication WHERE app = ${app.appId}`,
    )
    return rows.reduce((sum, { attempt }) => sum + attempt, 0)
  }
  const listStates = async () => {
    const rows = await service.database.query<{ state: string }>(
      sql`SELECT state FROM operations.publication WHERE app = ${app.appId} ORDER BY from_height`,
    )
    return rows.map(({ state }) => state)
  }
  /** The service's own entries that tell of anchors. */
  const readTold = async () => {
    const told = []
    for await (const { entries } of service.running.service.tenants.system.chain.blocksFrom(1))
      for (const entry of entries)
        if (entry?.header.type === 'anchor') told.push(JSON.parse(String(entry.body)))
    return told
  }

  async function awaitPublished(): Promise<void> {
    const { height } = (await app.call('GET', '/chain/checkpoint')).body
    await vi.waitFor(
      async () => {
        service.world.advance(5_000)
        const [published] = (await app.call('GET', '')).body.publish.chains
        expect(published?.height).toBeGreaterThanOrEqual(height)
      },
      { timeout: 40_000, interval: 200 },
    )
  }

  async function awaitAnchored(): Promise<void> {
    const { size } = (await app.call('GET', '/chain/checkpoint')).body
    await vi.waitFor(
      async () => {
        service.world.advance(5_000)
        const { anchors } = (await app.call('GET', '/chain/anchors')).body
        expect(
          Math.max(0, ...anchors.map((one: { head?: { size: number } }) => one.head?.size ?? 0)),
        ).toBe(size)
      },
      { timeout: 40_000, interval: 200 },
    )
  }

  /** Waits until nobody looks at what was published before: each that a node has no receipt of takes up room. */
  async function awaitFinal(): Promise<void> {
    await chain.call('anvil_mine', '0x50')
    await vi.waitFor(
      async () => {
        service.world.advance(31_000)
        expect(await listStates()).toEqual(['final'])
      },
      { timeout: 20_000, interval: 200 },
    )
  }

  /** Stores a record that is anchored and published while the node behaves so, and looks often. */
  async function storeWhile(behaviour: Behaviour, id: string): Promise<void> {
    const before = await count(keys.publishers)
    // Sent while nobody knows what became of it.
    node.behave('lag')
    await app.store('open', [{ id }])
    await vi.waitFor(
      async () => {
        service.world.advance(2_000)
        expect(await count(keys.publishers)).toBeGreaterThan(before)
      },
      { timeout: 20_000, interval: 100 },
    )
    node.behave(behaviour)
    // Where blocks are final at once, a minute of such answers is believed.
    const stepMs = behaviour === 'lag at once' ? 5_000 : 31_000
    for (let look = 0; look < 8; look++) {
      service.world.advance(stepMs)
      await new Promise((resolve) => setTimeout(resolve, 300))
    }
  }

  test('blocks are published one after the other where a node answers with an error for a block that is yet to come', async () => {
    await awaitFinal()
    node.behave('strict')
    for (const id of ['strict one', 'strict two']) {
      await app.store('open', [{ id }])
      await awaitPublished()
    }
    expect(await listStates()).toContain('confirmed')
    await awaitFinal()
    node.behave('honest')
  })

  test.each<Behaviour>(['lag', 'lag at once', 'soar', 'fork', 'vain'])(
    'nothing is sent again, withdrawn or final by the word of a node that does %s',
    async (behaviour) => {
      await awaitFinal()
      const before = await count(keys.publishers)
      const attempts = await countAttempts()
      const toldBefore = (await readTold()).length
      await storeWhile(behaviour, behaviour)
      expect(await count(keys.publishers)).toBe(before + 1)
      expect(await countAttempts()).toBe(attempts)
      expect((await listStates()).at(-1)).not.toBe('final')
      node.behave('honest')
      await awaitPublished()
      await awaitAnchored()
      const told = (await readTold()).slice(toldBefore)
      expect(told.filter((one) => one.withdrawn === true)).toEqual([])
      const head = Number(await chain.call('eth_blockNumber'))
      for (const { block_number, block_hash } of told) {
        expect(block_number).toBeLessThanOrEqual(head)
        expect(block_hash).not.toContain('f0f0f0f0')
      }
      expect(await count(keys.publishers)).toBe(before + 1)
    },
  )
})
