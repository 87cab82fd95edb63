import { randomBytes } from 'node:crypto'
import { takeShare } from '@tollbase/testing/by-commit'
import { describe, expect, test, vi } from 'vitest'
import { type Failpoint, failpoints } from '../../packages/server/src/base/failpoints.ts'
import { sql } from '../../packages/server/src/database/sql.ts'
import { depositing, list, makeBuyer, readBalance } from '../support/buyer.ts'
import { expectBalanced, openMarket, readAccounts, readChainBalance } from '../support/market.ts'
import { blockTransfers, connectDevnet, createFundedPayer } from '../support/payer.ts'
import { withService } from '../support/per-engine.ts'
import type { TestService } from '../support/service.ts'
import {
  awaitReversal,
  expectAuditEqual,
  finalBlocks,
  passEnd,
  readReversal,
  readTakenBack,
  sendAgain,
  takeBack,
  watchUntil,
} from './reorganize.ts'

/** The time-out is for a slow day: each test waits for two processes, an audit and many blocks. */
vi.setConfig({ testTimeout: 240_000 })

/** A move that its chain took back, and how it ends. */
type Scene = {
  readonly id: string
  /** Brings the chain to where it ends. */
  readonly end: () => Promise<void>
  /** The books at the end. */
  readonly expectEnd: () => Promise<void>
}

const elsewhere = `0x${'9'.repeat(40)}`
const outside = 'outside:eip155:84532'

/** A purchase whose payer has spent its money elsewhere meanwhile; what is left is taken back. */
async function reversePayment(service: TestService): Promise<Scene> {
  const { buyer, id, chain, spendElsewhere } = await buyAndTakeBack(service)
  await spendElsewhere()
  await chain.mine({ blocks: 1 })
  await chain.setAutomine(true)
  return {
    id,
    end: () => passEnd(service),
    expectEnd: async () => {
      expect(await readReversal(service, id)).toMatchObject({ moved: '1000', lost: '4000' })
      const accounts = await readAccounts(service)
      expect(accounts.get('losses')).toBe(-4_000n)
      expect(accounts.get(outside)).toBe(0n)
      expect(await readBalance(service, buyer.address)).toBe(0n)
    },
  }
}

/** A purchase whose transaction is mined again. */
async function bringPaymentBack(service: TestService): Promise<Scene> {
  const { buyer, id, chain } = await buyAndTakeBack(service)
  return {
    id,
    end: async () => {
      await chain.setAutomine(true)
      await sendAgain(service)
    },
    expectEnd: async () => {
      expect(await readReversal(service, id)).toBeUndefined()
      expect((await readAccounts(service)).get(outside)).toBe(-5_000n)
      expect(await readBalance(service, buyer.address)).toBe(1_000n)
      expect(await readChainBalance(service, buyer.address)).toBe(0n)
    },
  }
}

/** A withdrawal that was paid, and that no block takes again before its end. */
async function reverseTransfer(service: TestService): Promise<Scene> {
  const chain = connectDevnet(service)
  const buyer = makeBuyer()
  await createFundedPayer(service, 5_000n, buyer.account)
  expect((await buyer.buy(service, depositing(buyer.address, '5000'))).status).toBe(200)
  await chain.mine({ blocks: finalBlocks })
  const { transfers } = service.running.service
  const order = {
    ...{ id: `wd_${randomBytes(16).toString('hex')}`, kind: 'withdrawal' as const },
    ...{ account: `wallet:${buyer.address}`, network: 'eip155:84532' },
    ...{ recipient: buyer.address, amount: 2_000n },
  }
  const since = await chain.getBlockNumber({ cacheTime: 0 })
  await transfers.request(order)
  await watchUntil(service, async () => (await transfers.find(order.id))?.state === 'paid')
  await takeBack(service, since)
  await blockTransfers(service, buyer.address)
  await chain.setAutomine(true)
  return {
    id: order.id,
    end: () => passEnd(service, 26 * 3_600),
    expectEnd: async () => {
      const found = await service.running.service.transfers.find(order.id)
      expect(found).toMatchObject({ state: 'returned', transaction: null })
      expect(await readBalance(service, buyer.address)).toBe(5_000n)
      expect((await readAccounts(service)).get(outside)).toBe(-5_000n)
    },
  }
}

async function buyAndTakeBack(service: TestService) {
  const chain = connectDevnet(service)
  const market = await openMarket(service, { price: { per_row: '1000' } })
  const buyer = makeBuyer()
  const payer = await createFundedPayer(service, 5_000n, buyer.account)
  const other = await payer.sign({ to: elsewhere, value: 5_000n })
  const since = await chain.getBlockNumber({ cacheTime: 0 })
  const find = { name: { ne: 'Graz' } }
  const sold = await buyer.buy(service, list({ root: market.root, limit: 5, find }))
  expect(sold.status, sold.text).toBe(200)
  await takeBack(service, since)
  const id = sold.headers.get('x-payment-id') ?? ''
  return { buyer, id, chain, spendElsewhere: other.send }
}

const scenes = {
  'a payment that is reversed': reversePayment,
  'a payment that comes back': bringPaymentBack,
  'a withdrawal that is reversed': reverseTransfer,
}
type Kind = keyof typeof scenes

/** Says that a move of this kind passes the point. */
function passes(kind: Kind, point: Failpoint): boolean {
  if (!point.startsWith('move.')) return false
  if (kind === 'a payment that comes back')
    return point === 'move.gone' || point === 'move.freed' || point === 'move.final'
  return kind !== 'a withdrawal that is reversed' || point !== 'move.gone'
}

const kinds: readonly Kind[] = [
  'a payment that is reversed',
  'a payment that comes back',
  'a withdrawal that is reversed',
]
const deaths = kinds.flatMap((kind) =>
  failpoints.filter((point) => passes(kind, point)).map((point) => [kind, point] as const),
)

describe.each(takeShare(deaths, 4))('%s, and a process that dies at %s', (kind, point) => {
  withService(
    (service) => {
      test('P12: the next process ends with the same books', async () => {
        const scene = await scenes[kind](service())
        let isDead = false
        const arm = () =>
          service().world.atFailpoints((reached) => {
            if (reached !== point) return
            isDead = true
            throw new Error(`died at ${point}`)
          })
        const isEarly = point === 'move.gone'
        if (isEarly) arm()
        await seeGone(service(), scene, () => isDead)
        if (!isEarly) {
          arm()
          await scene.end()
          await watchUntil(service(), async () => {
            await connectDevnet(service()).mine({ blocks: finalBlocks })
            return isDead
          })
        }
        service().world.atFailpoints(undefined)
        await service().restart()
        if (isEarly) await scene.end()
        if (kind !== 'a payment that comes back') await awaitReversal(service(), scene.id)
        await watchUntil(service(), async () => {
          await connectDevnet(service()).mine({ blocks: finalBlocks })
          return (await readTakenBack(service(), scene.id)) === undefined
        })
        await scene.expectEnd()
        await expectBalanced(service())
        expect(await listHolds(service())).toEqual([])
        await expectAuditEqual(service())
      })
    },
    { devnet: true },
  )
})

/** Waits until the watch has seen that the move is gone, or has died of it. */
async function seeGone(service: TestService, { id }: Scene, isDead: () => boolean): Promise<void> {
  await watchUntil(service, async () => isDead() || (await readTakenBack(service, id)) === null)
}

const listHolds = ({ database }: TestService) =>
  database.query(sql`SELECT id FROM operations.account_hold WHERE id LIKE 'reversal%'`)
