import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { EvmPublishingChain } from '../../packages/server/src/anchors/evm-publishing-chain.ts'
import { noLog as log } from '../../packages/server/src/base/log.ts'
import { realWorld, type World } from '../../packages/server/src/base/world.ts'
import { sql } from '../../packages/server/src/database/sql.ts'
import {
  createTestDatabase,
  type TestDatabase,
} from '../../packages/server/src/database/testing.ts'
import { encodeHex } from '../../packages/server/src/x402/hex.ts'
import {
  buildJointColumns,
  buildReplacementColumns,
  makeJournalTables,
} from '../../packages/server/src/x402/journal.ts'
import { openRpc, type Rpc } from '../../packages/server/src/x402/rpc.ts'
import { JournaledSender } from '../../packages/server/src/x402/sender.ts'
import { signTransaction } from '../../packages/server/src/x402/transaction.ts'
import { type OuterChain, startOuterChain } from './place.ts'

vi.setConfig({ testTimeout: 90_000 })

const network = { id: 'eip155:31337', chainId: 31337 }
const key = Buffer.alloc(32, 0x7e)
const gwei = 10n ** 9n
let chain: OuterChain
let store: TestDatabase
let rpc: Rpc
/** Time passes where the test says so. */
let now = realWorld.now()
const world: World = { ...realWorld, now: () => now, every: () => () => undefined }

beforeAll(async () => {
  chain = await startOuterChain()
  store = await createTestDatabase()
  await store.database.execute(sql`CREATE SCHEMA operations`)
  for (const table of [
    ...makeJournalTables(),
    ...buildReplacementColumns(),
    ...buildJointColumns(),
  ])
    await store.database.execute(table)
  rpc = openRpc({ url: chain.url, world: realWorld })
})
afterAll(async () => {
  rpc?.close()
  await store?.drop()
  await chain?.stop()
})

test('a publication that a reorganisation took back, and whose nonce another transaction took, is given up though others are under way', async () => {
  let isDeaf = false
  const by: Rpc = {
    ...rpc,
    call: async (method, params) =>
      isDeaf && method === 'eth_sendRawTransaction' ? '0x' : rpc.call(method, params),
  }
  const { database } = store
  const sender = new JournaledSender({ database, rpc: by, world, network, key, log })
  const outer = new EvmPublishingChain({ rpc: by, network, sender, world, confirmations: 1 })
  await chain.call('anvil_setBalance', sender.address, '0xde0b6b3a7640000')
  await outer.start(async () => true)
  const send = async (n: number) => {
    const tree = { origin: 'test/shop', size: n, root: new Uint8Array(32).fill(n) }
    const sending = { id: `publish:${n}`, tree }
    for (;;) {
      const transaction = await outer.send(sending, new Uint8Array(100).fill(n))
      if (transaction !== undefined) return { ...sending, transaction }
      await realWorld.sleep(50)
    }
  }
  const first = await send(1)
  await expect
    .poll(() => outer.readStates([first]), { timeout: 20_000 })
    .toMatchObject([{ state: 'confirmed', isFinal: false }])
  const nonce = (await sender.find(first.id))?.nonce ?? 0n
  await chain.call('anvil_rollback', 1)
  await chain.call('anvil_dropAllTransactions')
  const fees = { maxFeePerGas: 200n * gwei, maxPriorityFeePerGas: 100n * gwei }
  const { raw } = signTransaction(
    { chainId: network.chainId, nonce, ...fees, gas: 30_000n, to: sender.address, data: '0x' },
    key,
  )
  await chain.call('eth_sendRawTransaction', encodeHex(raw))
  isDeaf = true
  const second = await send(2)
  const states: unknown[] = []
  // As publishing looks: at what is under way all the time, at what was confirmed each half minute.
  for (let half = 0; half < 4; half++) {
    for (const ms of [10_000, 20_000]) {
      now += ms
      expect(await outer.readStates([second])).toEqual([{ state: 'waiting' }])
    }
    states.push((await outer.readStates([first, second]))[0]?.state)
    await chain.call('anvil_mine', '0x50')
  }
  expect(states).toEqual(['waiting', 'waiting', 'failed', 'failed'])
  await outer.stop()
})
