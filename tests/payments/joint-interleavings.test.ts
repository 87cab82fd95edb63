import { realWorld, type World } from '@tollbase/server/base/world'
import { sql } from '@tollbase/server/database/sql'
import { multicall3 } from '@tollbase/server/devnet/contracts'
import { isUsed, readBalance } from '@tollbase/server/x402/authorization-use'
import { findMined, readLogs, readTransactionCount } from '@tollbase/server/x402/evm-chain'
import type { Settlement } from '@tollbase/server/x402/facilitator'
import { encodeQuantity } from '@tollbase/server/x402/hex'
import { multicallAddress } from '@tollbase/server/x402/joint'
import { hasPayment, listAuthorizationTopics } from '@tollbase/server/x402/token'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Chance } from '../simulation/chance.ts'
import { type Due, lookup, type Place, settle, startHeldChain } from './held-chain.ts'

const seeds = Array.from({ length: 6 }, (_, at) => `${process.env.TOLLBASE_SEED ?? 'joint'} ${at}`)
const rounds = 8
const confirmations = 3
const gwei = 10n ** 9n
let held: Awaited<ReturnType<typeof startHeldChain>>

beforeAll(async () => {
  held = await startHeldChain(600)
})

afterAll(() => held?.close())

/**
 * Payments are asked for at random moments, some twice, while payers spend their money elsewhere, others hand their
 * authorizations in, wallets get code that uses up all gas, or leaves too little of it, steps of the sender fail, the
 * service starts anew, fees rise and blocks are replaced.
 */
async function live(chance: Chance, key: Buffer) {
  let aheadMs = 0
  let isFaulty = true
  const world: World = {
    ...realWorld,
    now: () => realWorld.now() + aheadMs,
    failpoint: (point) => {
      if (isFaulty && chance.happens(`death at ${point}`, 60)) throw new Error(`died at ${point}`)
    },
  }
  const start = () =>
    held.open({ key, world, confirmations, settleTimeoutMs: 40, replaceAfterMs: 30_000 })
  let place = await start()
  const dues: Due[] = []
  const work: Promise<unknown>[] = []
  const ask = (due: Due) => {
    const pause = chance.happens('in the same turn', 700) ? 0 : chance.between('pause', 1, 12)
    const asked =
      pause === 0 ? settle(place, due) : realWorld.sleep(pause).then(() => settle(place, due))
    work.push(asked.catch(() => undefined))
  }
  for (let round = 0; round < rounds; round++) {
    for (let n = chance.between('new payments', 0, 13); n > 0; n--) {
      const due = held.makeDue()
      dues.push(due)
      ask(due)
      if (chance.happens('asked twice', 150)) ask(due)
    }
    for (const due of dues) if (chance.happens('asked again', 60)) ask(due)
    if (chance.happens('all are sent', 600)) await realWorld.sleep(chance.between('sent', 5, 25))
    for (const due of dues) await harm(chance, due)
    if (chance.happens('fees rise', 150))
      await held.rpc.call('anvil_setNextBlockBaseFeePerGas', [encodeQuantity(50n * gwei)])
    if (chance.happens('too little gas is left', 60)) await mineWithoutParts()
    for (let n = chance.between('blocks', 0, 3); n > 0; n--) await held.mine()
    if (chance.happens('the chain replaces blocks', 250))
      await held.rpc.call('anvil_rollback', [chance.between('replaced', 1, confirmations - 1)])
    if (chance.happens('time passes', 400)) {
      aheadMs += 35_000
      await place.sender.resume(0).catch(() => undefined)
    }
    if (chance.happens('the service starts anew', 200)) {
      await place.sender.stop()
      await Promise.all(work.splice(0))
      place = await start()
    }
  }
  isFaulty = false
  await Promise.all(work)
  return { place, dues }
}

/** Mines a block in which joint transactions succeed and make nothing, as where the gas was gone before. */
async function mineWithoutParts(): Promise<void> {
  await held.rpc.call('anvil_setCode', [multicallAddress, '0x00'])
  await held.mine()
  await held.rpc.call('anvil_setCode', [multicallAddress, multicall3.code])
}

async function harm(chance: Chance, due: Due): Promise<void> {
  // The node may have the same transaction already.
  if (chance.happens('broke', 40)) await held.harms.broke(due).catch(() => undefined)
  if (chance.happens('third party', 40)) await held.harms.thirdParty(due)
  if (chance.happens('burner', 8)) await held.harms.burner(due)
}

/** Brings all to their ends in calm weather. */
async function settleCalmly(place: Place, dues: readonly Due[]): Promise<Settlement[]> {
  let outcomes: Settlement[] = []
  for (let n = 0; n < 40; n++) {
    await held.rpc.call('anvil_setNextBlockBaseFeePerGas', [encodeQuantity(gwei)])
    await place.sender.resume(0)
    const asked = dues.map((due) => settle(place, due))
    for (let block = 0; block < confirmations + 1; block++) await held.mine()
    outcomes = await held.mineUntil(Promise.all(asked))
    if (outcomes.every(({ state }) => state !== 'pending')) return outcomes
  }
  return outcomes
}

/** Finds the transaction by which the token says that exactly this payment was made. */
async function findMove({ payment: { payload } }: Due): Promise<string | undefined> {
  const { network } = held.devnet
  const topics = listAuthorizationTopics(payload)
  const toBlock = BigInt(String(await held.rpc.call('eth_blockNumber', [])))
  const range = { address: network.asset.address, topics, fromBlock: 0n, toBlock }
  const [use] = await readLogs(held.rpc, range)
  const mined = use && (await findMined(held.rpc, use.transactionHash))
  return mined && hasPayment(mined.logs, network, payload) ? mined.hash : undefined
}

test.each(seeds)(
  'whatever happens to transactions and payers, each payment has the outcome that the token tells of it alone: %s',
  async (seed) => {
    const chance = new Chance(seed)
    const { devnet, rpc, store } = held
    const { payTo } = devnet.network
    const before = await readBalance(rpc, devnet.network, payTo)
    const key = chance.bytes('key', 32)
    const { place, dues } = await live(chance, key)
    const outcomes = await settleCalmly(place, dues)
    let moved = 0n
    for (const [at, due] of dues.entries()) {
      const transaction = await findMove(due)
      const outcome = outcomes[at]
      if (transaction === undefined) {
        expect(outcome).toMatchObject({ state: 'failed' })
        expect(await isUsed(rpc, devnet.network, due.payment.payload)).toBe(false)
      } else {
        moved += 100n
        expect(outcome).toMatchObject({ state: 'settled', transaction })
      }
      expect(await lookup(place, due)).toMatchObject({ state: outcome?.state })
    }
    expect((await readBalance(rpc, devnet.network, payTo)) - before).toBe(moved)
    await checkJournal(place, dues)
    await place.sender.stop()
    await store.database.execute(sql`DELETE FROM operations.transaction_journal`)
  },
  120_000,
)

/** The journal has each nonce once, each payment in one joint transaction and in one of its own at most. */
async function checkJournal({ sender }: Place, dues: readonly Due[]): Promise<void> {
  const rows = await sender.listNewest(10_000)
  expect(BigInt(rows.length)).toBe(await readTransactionCount(held.rpc, sender.address))
  for (const due of dues) {
    const { id } = due
    const joint = rows.filter(({ parts }) => parts.includes(id))
    const own = rows.filter((row) => row.id === id)
    expect([joint.length, own.length].every((count) => count <= 1)).toBe(true)
    if (joint.length === 0 || own.length === 0) continue
    const move = await findMove(due)
    expect(joint[0]?.state === 'reverted' || move !== joint[0]?.hash).toBe(true)
  }
}
