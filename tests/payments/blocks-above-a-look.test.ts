import type { Hex } from 'viem'
import { expect, test, vi } from 'vitest'
import { Fault } from '../../packages/server/src/base/fault.ts'
import { sql } from '../../packages/server/src/database/sql.ts'
import {
  makeMoveMemory,
  runMoveRound,
} from '../../packages/server/src/services/payments/reversals/watch-moves.ts'
import {
  makeSweepMemory,
  sweepRound,
} from '../../packages/server/src/services/payments/settling/sweeper.ts'
import type { BlockWatch } from '../../packages/server/src/x402/block-watch.ts'
import { ask, depositing, list, makeBuyer, quote, readBalance } from '../support/buyer.ts'
import { openMarket, readChainBalance } from '../support/market.ts'
import {
  connectDevnet,
  createFundedPayer,
  findNativeEntry,
  makeProof,
  pay,
} from '../support/payer.ts'
import { withService } from '../support/per-engine.ts'
import type { TestService } from '../support/service.ts'
import { replaceFacilitators } from './false-facilitators.ts'
import {
  finalBlocks,
  readReversal,
  readTakenBack,
  reorganize,
  sendAgain,
  takeBack,
} from './reorganize.ts'

vi.setConfig({ testTimeout: 120_000 })

/** Opens a watch; each call looks once, and what is given comes between the look and the receipts. */
function openLooks(service: TestService) {
  const { payments, log } = service.running.service
  const [method] = payments.ports.methods
  if (method?.blocks === undefined) throw new Error('needs a chain')
  const watch = method.blocks.open()
  const memory = makeMoveMemory()
  return (meanwhile = async () => {}) => {
    const blocks = {
      look: async () => {
        const seen = await watch.look()
        await meanwhile()
        return seen
      },
      findReceipt: (transaction: string) => watch.findReceipt(transaction),
      findUse: (...asked: Parameters<BlockWatch['findUse']>) => watch.findUse(...asked),
      readHeight: () => watch.readHeight(),
    } as BlockWatch
    const ports = { ...payments.ports, log, turns: payments.turns }
    return runMoveRound(ports, { ...method, blocks }, memory)
  }
}

withService(
  (service) => {
    const readHeight = () => connectDevnet(service()).getBlockNumber({ cacheTime: 0 })

    test('P12: a payment that was seen above the newest block of a look is held once that block is replaced', async () => {
      const chain = connectDevnet(service())
      const buyer = makeBuyer()
      await createFundedPayer(service(), 5_000n, buyer.account)
      const since = await readHeight()
      const deposited = await buyer.buy(service(), depositing(buyer.address, '5000'))
      expect(deposited.status, deposited.text).toBe(200)
      const id = deposited.headers.get('x-payment-id') ?? ''
      const look = openLooks(service())
      await takeBack(service(), since)
      await look()
      expect(await readTakenBack(service(), id)).toBe(null)
      const above = await readHeight()
      await look(() => sendAgain(service()))
      expect(await readTakenBack(service(), id)).toBeUndefined()
      expect(await readBalance(service(), buyer.address)).toBe(5_000n)
      await reorganize(service(), above)
      await look()
      expect(await readTakenBack(service(), id)).toBe(null)
      expect(await readBalance(service(), buyer.address)).toBe(0n)
      await chain.setAutomine(true)
      await sendAgain(service())
      await look()
      expect(await readBalance(service(), buyer.address)).toBe(5_000n)
    })

    test('P12: a sweep that was seen above the newest block of a look is asked about again once that block is replaced', async () => {
      const chain = connectDevnet(service())
      const market = await openMarket(service(), { price: { per_row: '1000' } })
      const payer = await createFundedPayer(service(), 5_000n)
      const asked = list({ root: market.root, limit: 5 })
      const { payTo: address, extra } = findNativeEntry(await quote(service(), asked))
      const hash = await payer.transfer({ to: address, value: 5_000n })
      const sold = await ask(service(), asked, makeProof(extra.quoteId, hash))
      expect(sold.status, sold.text).toBe(200)
      const name = `sweep:${sold.headers.get('x-payment-id')}`
      const { payments, log } = service().running.service
      const memory = makeSweepMemory(payments.ports)
      const settled: string[] = []
      const round = (isOver: boolean) => {
        const ports = replaceFacilitators(payments.ports, (real) => ({
          settle: async (id, ...due) => {
            settled.push(id)
            return isOver ? { state: 'pending', reason: 'not_confirmed' } : real.settle(id, ...due)
          },
        }))
        return sweepRound(ports, log, memory)
      }
      const above = await readHeight()
      // The clock was moved on, which ends the lease of the gas key: until it is renewed, nothing is sent.
      const sweep = async () => {
        await round(false)
        return readChainBalance(service(), address)
      }
      await expect.poll(sweep).toBe(0n)
      settled.length = 0
      await takeBack(service(), above)
      const [journaled] = await service().database.query<{ hash: Hex }>(
        sql`SELECT hash FROM operations.transaction_journal WHERE id = ${name}`,
      )
      if (journaled === undefined) throw new Error('the sweep was not sent')
      await chain.dropTransaction(journaled)
      await chain.mine({ blocks: finalBlocks })
      expect(await readChainBalance(service(), address)).toBe(5_000n)
      await round(true)
      expect(settled).toEqual([name])
      await chain.setAutomine(true)
    })

    test('P12: a payment that may come for as long as its payer signed it for keeps no later ones from being looked at', async () => {
      const chain = connectDevnet(service())
      const { payments, log } = service().running.service
      const [method] = payments.ports.methods
      if (method?.blocks === undefined) throw new Error('needs a chain')
      const blocks = method.blocks.open()
      const ports = { ...payments.ports, log, turns: payments.turns }
      const memory = makeMoveMemory({ pageSize: 1, pagesMax: 2 })
      const since = await readHeight()
      const ids: string[] = []
      for (let n = 0; n < 3; n++) {
        const buyer = makeBuyer()
        await createFundedPayer(service(), 5_000n, buyer.account)
        const deposited = await buyer.buy(service(), depositing(buyer.address, '5000'))
        expect(deposited.status, deposited.text).toBe(200)
        ids.push(deposited.headers.get('x-payment-id') ?? '')
      }
      await takeBack(service(), since)
      // Those of the tests before it are looked at first.
      for (let rounds = 0; rounds < 6; rounds++)
        await runMoveRound(ports, { ...method, blocks }, memory)
      for (const id of ids) expect(await readTakenBack(service(), id)).toBe(null)
      await chain.setAutomine(true)
    })

    test('P12: a payment of which nobody can tell keeps no other one from being held, nor does one that is asked about for long', async () => {
      const chain = connectDevnet(service())
      const { payments, log } = service().running.service
      const [method] = payments.ports.methods
      if (method?.blocks === undefined) throw new Error('needs a chain')
      const blocks = method.blocks.open()
      const ports = { ...payments.ports, log, turns: payments.turns }
      const memory = makeMoveMemory({ pageSize: 1 })
      const since = await readHeight()
      const ids: string[] = []
      for (let n = 0; n < 3; n++) {
        const buyer = makeBuyer()
        await createFundedPayer(service(), 5_000n, buyer.account)
        const deposited = await buyer.buy(service(), depositing(buyer.address, '5000'))
        expect(deposited.status, deposited.text).toBe(200)
        ids.push(deposited.headers.get('x-payment-id') ?? '')
      }
      await takeBack(service(), since)
      const readNotes = () => Promise.all(ids.map((id) => readTakenBack(service(), id)))
      const whenAsked: (readonly unknown[])[] = []
      const { methods } = replaceFacilitators(ports, (real) => ({
        lookup: async (id, ...due) => {
          if (!ids.includes(id)) return real.lookup(id, ...due)
          whenAsked.push(await readNotes())
          return { state: 'failed', reason: 'transaction_reverted', final: false }
        },
        // The gas key has too little.
        verify: () => Promise.reject(new Fault('UNAVAILABLE')),
      }))
      const round = runMoveRound(ports, { ...method, ...methods[0], blocks }, memory)
      await expect(round).rejects.toMatchObject({ code: 'UNAVAILABLE' })
      await chain.setAutomine(true)
      const held = ids.map(() => null)
      expect([await readNotes(), ...whenAsked]).toEqual([held, held, held, held])
    })

    test('P12: a payment of a kind that is not taken any more keeps nobody from looking at what else was taken back', async () => {
      const chain = connectDevnet(service())
      const { root } = await openMarket(service(), { price: { per_row: '1000' } })
      const payer = await createFundedPayer(service(), 5_000n)
      const since = await readHeight()
      const asked = list({ root, limit: 5 })
      const sold = await ask(service(), asked, await pay(service(), payer, asked))
      expect(sold.status, sold.text).toBe(200)
      const id = sold.headers.get('x-payment-id') ?? ''
      const { payments, log } = service().running.service
      const [method] = payments.ports.methods
      if (method?.blocks === undefined) throw new Error('needs a chain')
      // The operator takes no transfers of payers' own any more.
      const { native, blocks, ...rest } = method
      const ports = { ...payments.ports, log, turns: payments.turns }
      await takeBack(service(), since)
      await runMoveRound(ports, { ...rest, blocks: blocks.open() }, makeMoveMemory())
      expect(await readTakenBack(service(), id)).toBe(null)
      await chain.setAutomine(true)
    })

    // The last one: the chain is far ahead of the time in the end.
    test('P12: a payment that is over by a block above the newest one of a look is reversed once that block is final', async () => {
      const chain = connectDevnet(service())
      const buyer = makeBuyer()
      const payer = await createFundedPayer(service(), 5_000n, buyer.account)
      const elsewhere = await payer.sign({ to: `0x${'9'.repeat(40)}`, value: 5_000n })
      const since = await readHeight()
      const deposited = await buyer.buy(service(), depositing(buyer.address, '5000'))
      expect(deposited.status, deposited.text).toBe(200)
      const id = deposited.headers.get('x-payment-id') ?? ''
      const look = openLooks(service())
      await takeBack(service(), since)
      await elsewhere.send()
      await chain.mine({ blocks: 1 })
      await look(async () => {
        // As many as make the newest block of the look final, and one more, by which the payment is over.
        await chain.mine({ blocks: finalBlocks })
        service().world.advance(1_000_000)
        await chain.increaseTime({ seconds: 1_000 })
        await chain.mine({ blocks: 1 })
      })
      await look()
      expect(await readReversal(service(), id)).toBeUndefined()
      await chain.mine({ blocks: finalBlocks })
      await look()
      expect(await readReversal(service(), id)).toMatchObject({ moved: '5000', lost: '0' })
      await chain.setAutomine(true)
    })
  },
  { devnet: true },
)

// On a chain of its own, as it leaves what was taken back.
withService(
  (service) => {
    test('P12: a payment that a chain took back is held, also where one that it has again cannot be freed', async () => {
      const deposit = async () => {
        const buyer = makeBuyer()
        await createFundedPayer(service(), 5_000n, buyer.account)
        const since = await connectDevnet(service()).getBlockNumber({ cacheTime: 0 })
        const { status, text, headers } = await buyer.buy(
          service(),
          depositing(buyer.address, '5000'),
        )
        expect(status, text).toBe(200)
        return { id: headers.get('x-payment-id') ?? '', since }
      }
      const look = openLooks(service())
      const first = await deposit()
      const second = await deposit()
      await takeBack(service(), second.since)
      // A process that noted so has died since, and the chain has it again.
      await service().database.execute(
        sql`INSERT INTO operations.taken_back (id) VALUES (${first.id})`,
      )
      service().world.atFailpoints((point) => {
        if (point === 'move.freed') throw new Error('broken off')
      })
      try {
        await expect(look()).rejects.toThrow('broken off')
      } finally {
        service().world.atFailpoints(undefined)
      }
      expect(await readTakenBack(service(), first.id)).toBe(null)
      expect(await readTakenBack(service(), second.id)).toBe(null)
    })
  },
  { devnet: true },
)
