import { requirePresent } from '@tollbase/server/base/assert'
import { realWorld, type World } from '@tollbase/server/base/world'
import { sql } from '@tollbase/server/database/sql'
import { multicall3 } from '@tollbase/server/devnet/contracts'
import { isUsed, readBalance } from '@tollbase/server/x402/authorization-use'
import { findMined, readTransactionCount } from '@tollbase/server/x402/evm-chain'
import { encodeQuantity } from '@tollbase/server/x402/hex'
import { jointPartsMax, multicallAddress } from '@tollbase/server/x402/joint'
import type { Rpc } from '@tollbase/server/x402/rpc'
import { deriveAddress } from '@tollbase/server/x402/signature'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type Due,
  listTransactions,
  lookup,
  type Place,
  settle,
  startHeldChain,
} from './held-chain.ts'

let held: Awaited<ReturnType<typeof startHeldChain>>

beforeAll(async () => {
  held = await startHeldChain(120)
})

afterAll(() => held?.close())

const makeDues = (count: number) => Array.from({ length: count }, () => held.makeDue())
const settleAll = (place: Place, dues: readonly Due[]) =>
  held.mineUntil(Promise.all(dues.map((due) => settle(place, due))))

describe('transfers that wait at the same time', () => {
  test('they go together, ten at most, each is settled once by its own event, and one that is alone goes at once by itself', async () => {
    const place = await held.open()
    const before = await readBalance(held.rpc, held.devnet.network, held.devnet.network.payTo)
    const lone = held.makeDue()
    const first = await settleAll(place, [lone])
    expect((await place.sender.find(lone.id))?.parts).toEqual([])
    const dues = makeDues(25)
    const outcomes = await settleAll(place, dues)
    expect(outcomes.map(({ state }) => state)).toEqual(dues.map(() => 'settled'))
    const sent = await readTransactionCount(held.rpc, place.sender.address)
    expect(listTransactions([...first, ...outcomes]).size).toBe(Number(sent))
    expect(sent).toBe(4n)
    for (const { id } of dues)
      expect((await place.sender.find(id))?.parts.length).toBeLessThanOrEqual(jointPartsMax)
    // Asked for again, and looked up, it is the same.
    expect(await Promise.all(dues.map((due) => settle(place, due)))).toEqual(outcomes)
    expect(await Promise.all(dues.map((due) => lookup(place, due)))).toEqual(outcomes)
    expect(await readTransactionCount(held.rpc, place.sender.address)).toBe(sent)
    const after = await readBalance(held.rpc, held.devnet.network, held.devnet.network.payTo)
    expect(after - before).toBe(2_600n)
    await place.sender.stop()
  })

  test('a payment that is spent, used or taken back by then fails or counts alone', async () => {
    const place = await held.open()
    const dues = makeDues(6)
    const [broke, stolen, ...good] = dues
    const all = dues.map((due) => settle(place, due))
    await held.untilSent(place, dues)
    expect((await place.sender.find(dues[3]!.id))?.parts).toHaveLength(6)
    await held.harms.broke(broke!)
    await held.harms.thirdParty(stolen!)
    const [first, second, ...others] = await held.mineUntil(Promise.all(all))
    const joint = listTransactions(others)
    expect([others.length, joint.size]).toEqual([good.length, 1])
    expect(first).toEqual({
      ...{ state: 'failed', reason: 'transaction_reverted', final: false, wasInVain: true },
    })
    expect(second).toMatchObject({ state: 'settled' })
    expect(joint.has(second?.state === 'settled' ? second.transaction : '')).toBe(false)
    expect(await lookup(place, broke!)).toEqual(first)
    await place.sender.stop()
  })

  test('wallets with code, and payments for other servers, go alone', async () => {
    const place = await held.open()
    const [plain, coded] = [makeDues(2), makeDues(2)]
    const foreign = [held.makeDue({ isAlone: true }), held.makeDue({ isAlone: true })]
    // Its signatures are good: it answers as ERC-1271 says.
    for (const { key } of coded)
      await held.rpc.call('anvil_setCode', [
        deriveAddress(key),
        '0x631626ba7e60e01b60005260206000f3',
      ])
    const outcomes = await settleAll(place, [...plain, ...coded, ...foreign])
    expect(outcomes.map(({ state }) => state)).toEqual(Array(6).fill('settled'))
    expect(listTransactions(outcomes).size).toBe(5)
    for (const { id } of [...coded, ...foreign])
      expect((await place.sender.find(id))?.parts).toEqual([])
    await place.sender.stop()
  })

  test.each(['0x', '0x600160005260206000f3'])(
    'where the code of Multicall3 is %s, all go alone',
    async (code) => {
      await held.rpc.call('anvil_setCode', [multicallAddress, code])
      try {
        const place = await held.open()
        const outcomes = await settleAll(place, makeDues(4))
        expect(listTransactions(outcomes).size).toBe(4)
        await place.sender.stop()
      } finally {
        await held.rpc.call('anvil_setCode', [multicallAddress, multicall3.code])
      }
    },
  )
})

describe('a part that uses up all the gas', () => {
  test('it makes the others go again by themselves, fails alone, and ends joint transactions for a day', async () => {
    let now = realWorld.now()
    const place = await held.open({ world: { ...realWorld, now: () => now } })
    const dues = makeDues(5)
    const all = dues.map((due) => settle(place, due))
    await held.untilSent(place, dues)
    const joint = requirePresent(await place.sender.find(dues[2]!.id), 'a joint transaction')
    expect(joint.parts).toHaveLength(5)
    await held.harms.burner(dues[2]!)
    const outcomes = await held.mineUntil(Promise.all(all))
    const failed = { state: 'failed', reason: 'transaction_reverted', final: false }
    expect(outcomes[2]).toMatchObject(failed)
    expect(outcomes.filter(({ state }) => state === 'settled')).toHaveLength(4)
    expect(listTransactions(outcomes).size).toBe(4)
    const mined = await findMined(held.rpc, joint.hash)
    expect([mined?.succeeded, mined?.gasUsed]).toEqual([false, 530_000n])
    // Later they are found again by the transactions of their own.
    expect(await Promise.all(dues.map((due) => lookup(place, due)))).toEqual(outcomes)
    const sent = await readTransactionCount(held.rpc, place.sender.address)
    expect(sent).toBe(5n)
    await settleAll(place, makeDues(3))
    expect(await readTransactionCount(held.rpc, place.sender.address)).toBe(8n)
    now += 86_400_000
    const validBefore = BigInt(Math.floor(now / 1000) + 600)
    await settleAll(
      place,
      [1, 2, 3].map(() => held.makeDue({ validBefore })),
    )
    expect(await readTransactionCount(held.rpc, place.sender.address)).toBe(9n)
    await place.sender.stop()
  })

  test('as the last one it costs its own gas, and fails alone', async () => {
    const place = await held.open()
    const dues = makeDues(3)
    const all = dues.map((due) => settle(place, due))
    await held.untilSent(place, dues)
    const { parts = [] } = (await place.sender.find(dues[0]!.id)) ?? {}
    const last = dues.find(({ id }) => id === parts.at(-1))!
    await held.harms.burner(last)
    const outcomes = await held.mineUntil(Promise.all(all))
    for (const [at, due] of dues.entries())
      expect(outcomes[at]?.state).toBe(due === last ? 'failed' : 'settled')
    expect(await readTransactionCount(held.rpc, place.sender.address)).toBe(1n)
    await place.sender.stop()
  })
})

describe('a joint transaction that is mined and does not make a part', () => {
  test('a part that was left too little gas is made by itself, its payer is not blamed, and joint transactions end for a day, in the next process too', async () => {
    const place = await held.open()
    const dues = makeDues(3)
    const all = dues.map((due) => settle(place, due))
    await held.untilSent(place, dues)
    const joint = requirePresent(await place.sender.find(dues[0]!.id), 'a joint transaction')
    // Code that makes no call leaves all parts as they would be without gas, and succeeds.
    await held.rpc.call('anvil_setCode', [multicallAddress, '0x00'])
    await held.mine()
    await held.rpc.call('anvil_setCode', [multicallAddress, multicall3.code])
    const outcomes = await held.mineUntil(Promise.all(all))
    expect((await findMined(held.rpc, joint.hash))?.succeeded).toBe(true)
    expect(outcomes.map(({ state }) => state)).toEqual(['settled', 'settled', 'settled'])
    expect(listTransactions(outcomes).size).toBe(3)
    expect(await Promise.all(dues.map((due) => lookup(place, due)))).toEqual(outcomes)
    expect(await Promise.all(dues.map((due) => settle(place, due)))).toEqual(outcomes)
    await settleAll(place, makeDues(2))
    expect(await readTransactionCount(held.rpc, place.sender.address)).toBe(6n)
    await place.sender.stop()
    const next = await held.open({ key: place.key })
    await settleAll(next, makeDues(2))
    expect(await readTransactionCount(held.rpc, next.sender.address)).toBe(8n)
    await next.sender.stop()
  })

  test('the process that dies before it sees this leaves the part to the next one', async () => {
    const place = await held.open({ settleTimeoutMs: 1 })
    const dues = makeDues(2)
    const all = dues.map((due) => settle(place, due))
    await held.untilSent(place, dues)
    for (const outcome of await Promise.all(all)) expect(outcome.state).toBe('pending')
    await place.sender.stop()
    await held.rpc.call('anvil_setCode', [multicallAddress, '0x00'])
    await held.mine()
    await held.rpc.call('anvil_setCode', [multicallAddress, multicall3.code])
    const next = await held.open({ key: place.key })
    const outcomes = await settleAll(next, dues)
    expect(outcomes.map(({ state }) => state)).toEqual(['settled', 'settled'])
    expect(await readTransactionCount(held.rpc, next.sender.address)).toBe(3n)
    await next.sender.stop()
  })
})

describe('faults around a joint transaction', () => {
  test.each(['payment.journaled', 'payment.broadcast'] as const)(
    'a death at %s: the next process sends the same bytes, and each payment is made once',
    async (point) => {
      const dying: World = {
        ...realWorld,
        failpoint: (at) => {
          if (at === point) throw new Error('died')
        },
      }
      // The node of the one that dies is not heard any more.
      const deaf: Rpc = {
        ...held.rpc,
        call: async (method, params) =>
          method === 'eth_sendRawTransaction' && point === 'payment.journaled'
            ? Promise.reject(new Error('died'))
            : held.rpc.call(method, params),
      }
      const dead = await held.open({ world: dying, by: deaf })
      const dues = makeDues(4)
      const lost = dues.map((due) => settle(dead, due))
      while ((await dead.sender.find(dues[3]!.id)) === undefined) await realWorld.sleep(2)
      const journaled = requirePresent(await dead.sender.find(dues[0]!.id), 'a transaction')
      expect(journaled.parts).toHaveLength(4)
      await dead.sender.stop()
      const next = await held.open({ key: dead.key })
      const outcomes = await settleAll(next, dues)
      for (const outcome of outcomes)
        expect(outcome).toMatchObject({ state: 'settled', transaction: journaled.hash })
      expect(await readTransactionCount(held.rpc, next.sender.address)).toBe(1n)
      await Promise.allSettled(lost)
      await next.sender.stop()
    },
  )

  test('one that no block takes is sent again with higher fees, and each part is found in the one that is mined', async () => {
    let now = realWorld.now()
    const place = await held.open({
      world: { ...realWorld, now: () => now },
      replaceAfterMs: 30_000,
    })
    const dues = makeDues(3)
    const all = dues.map((due) => settle(place, due))
    await held.untilSent(place, dues)
    const gwei = 10n ** 9n
    await held.rpc.call('anvil_setNextBlockBaseFeePerGas', [encodeQuantity(1_000n * gwei)])
    await held.mine()
    await place.sender.resume(0)
    now += 30_000
    await place.sender.resume(0)
    await Promise.allSettled(all)
    const second = requirePresent(await place.sender.find(dues[1]!.id), 'a transaction')
    expect([second.earlierHashes.length, second.parts.length]).toEqual([1, 3])
    const outcomes = await settleAll(place, dues)
    for (const outcome of outcomes)
      expect(outcome).toMatchObject({ state: 'settled', transaction: second.hash })
    await held.rpc.call('anvil_setNextBlockBaseFeePerGas', [encodeQuantity(gwei)])
    await held.mine()
    await place.sender.stop()
  })

  test('a block that the chain forgets is filled again with the same transaction', async () => {
    const place = await held.open()
    const dues = makeDues(3)
    const outcomes = await settleAll(place, dues)
    const mined = await findMined(held.rpc, [...listTransactions(outcomes)][0] ?? '')
    const height = BigInt(String(await held.rpc.call('eth_blockNumber', [])))
    await held.rpc.call('anvil_rollback', [Number(height - (mined?.blockNumber ?? height) + 1n)])
    expect(await isUsed(held.rpc, held.devnet.network, dues[0]!.payment.payload)).toBe(false)
    await place.sender.resume(0)
    const again = await settleAll(place, dues)
    expect(listTransactions(again)).toEqual(listTransactions(outcomes))
    await place.sender.stop()
  })

  test('where the journal was lost, the chain tells of each part', async () => {
    const place = await held.open()
    const dues = makeDues(3)
    const outcomes = await settleAll(place, dues)
    await place.sender.stop()
    await held.store.database.execute(
      sql`DELETE FROM operations.transaction_journal WHERE parts <> '{}'`,
    )
    const restored = await held.open({ key: place.key })
    for (const [at, due] of dues.entries()) {
      expect(await lookup(restored, due)).toMatchObject({ ...outcomes[at] })
    }
    await restored.sender.stop()
  })
})
