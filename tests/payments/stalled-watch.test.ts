import { randomBytes } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import { requirePresent } from '../../packages/server/src/base/assert.ts'
import type { Chain } from '../../packages/server/src/chain/chain.ts'
import { sql } from '../../packages/server/src/database/sql.ts'
import { listOpenClaims } from '../../packages/server/src/services/payments/claims/claim-lists.ts'
import {
  makeMoveMemory,
  runMoveRound,
} from '../../packages/server/src/services/payments/reversals/watch-moves.ts'
import type { BlockWatch } from '../../packages/server/src/x402/block-watch.ts'
import {
  type Asked,
  ask,
  type Buyer,
  depositing,
  list,
  makeBuyer,
  type PaymentHeader,
  quote,
  readBalance,
} from '../support/buyer.ts'
import { expectBalanced, openMarket, setPrices } from '../support/market.ts'
import { connectDevnet, createFundedPayer } from '../support/payer.ts'
import { withService } from '../support/per-engine.ts'
import type { TestService } from '../support/service.ts'
import {
  finalBlocks,
  keepSigned,
  passEnd,
  readReversal,
  readTakenBack,
  sendAgain,
  takeBack,
} from './reorganize.ts'

vi.setConfig({ testTimeout: 120_000 })

function makeGate() {
  let open = () => {}
  const passed = new Promise<void>((resolve) => {
    open = resolve
  })
  return { passed, open }
}

/** Lets the next append wait until the gate `opened` is. */
function pauseAppend(chain: Chain) {
  const [reached, opened] = [makeGate(), makeGate()]
  const append = chain.append.bind(chain)
  vi.spyOn(chain, 'append').mockImplementationOnce(async (...given) => {
    reached.open()
    await opened.passed
    return append(...given)
  })
  return { reached, opened }
}

withService(
  (service) => {
    /** Makes a process that looks at the chain; `pause` comes between the chain's answer and what it does about it. */
    const makeWatch = (
      pause = async (_transaction: string) => {},
      world: TestService['world'] = service().world,
    ) => {
      const { payments, log } = service().running.service
      const [method] = payments.ports.methods
      if (method?.blocks === undefined) throw new Error('needs a chain')
      const watch = method.blocks.open()
      const blocks = {
        look: () => watch.look(),
        readHeight: () => watch.readHeight(),
        findUse: async (...asked: Parameters<BlockWatch['findUse']>) => {
          const receipt = await watch.findUse(...asked)
          await pause(asked[0])
          return receipt
        },
      } as BlockWatch
      const memory = makeMoveMemory()
      return () =>
        runMoveRound(
          { ...payments.ports, world, log, turns: payments.turns },
          { ...method, blocks },
          memory,
        )
    }

    /**
     * Deposits 5,000; returns the payment's id, and its transaction. A test before this one may have moved the clock on, which ends the lease
     * of the gas key until it is renewed: then the answer is to ask again.
     */
    const deposit = async (buyer: Buyer): Promise<{ id: string; transaction: string }> => {
      const asked = depositing(buyer.address, '5000')
      const header = await buyer.payV2(await quote(service(), asked))
      let deposited = await ask(service(), asked, header)
      for (
        ;
        deposited.body.code === 'PAYMENT_PENDING';
        deposited = await ask(service(), asked, header)
      )
        await setTimeout(100)
      expect(deposited.status, deposited.text).toBe(200)
      return { id: deposited.body.payment_id, transaction: deposited.body.transaction }
    }

    /** Finds the last payment of a buyer, with the transaction that moved its money. */
    const readPaid = async ({ address }: Buyer): Promise<{ id: string; transaction: string }> => {
      const [claim] = await service().database.query<{ id: string; transaction: string }>(
        sql`SELECT id, settled_by AS transaction FROM operations.claim
          WHERE split_part(identity, '/', 3) = ${address} ORDER BY created_at_ms DESC LIMIT 1`,
      )
      return requirePresent(claim, 'a payment')
    }

    test('P12: what a process booked before it died is looked up by the transaction that the ledger has', async () => {
      const { database, running } = service()
      const buyer = makeBuyer()
      await createFundedPayer(service(), 5_000n, buyer.account)
      const { id } = await deposit(buyer)
      const { transfers } = running.service
      const out = `wd_${randomBytes(16).toString('hex')}`
      await transfers.request({
        ...{ id: out, kind: 'withdrawal', account: `wallet:${buyer.address}`, amount: 2_000n },
        ...{ network: 'eip155:84532', recipient: buyer.address },
      })
      await expect.poll(async () => (await transfers.find(out))?.state).toBe('paid')
      await database.execute(
        sql`UPDATE operations.claim SET state = 'claimed', settled_by = NULL WHERE id = ${id}`,
      )
      await database.execute(
        sql`UPDATE operations.outgoing_transfer SET state = 'sent', transaction = NULL WHERE id = ${out}`,
      )
      await makeWatch()()
      expect(await readTakenBack(service(), id)).toBeUndefined()
      expect(await readTakenBack(service(), out)).toBeUndefined()
      expect(await readBalance(service(), buyer.address)).toBe(3_000n)
    })

    test('P12: a process that stood still does not free money that was taken back once more meanwhile', async () => {
      const chain = connectDevnet(service())
      const buyer = makeBuyer()
      await createFundedPayer(service(), 5_000n, buyer.account)
      const since = await chain.getBlockNumber({ cacheTime: 0 })
      const { id } = await deposit(buyer)
      const look = makeWatch()
      await takeBack(service(), since)
      await look()
      expect(await readBalance(service(), buyer.address)).toBe(0n)
      await chain.setAutomine(true)
      await sendAgain(service())
      const [reached, opened] = [makeGate(), makeGate()]
      const stalled = makeWatch(() => {
        reached.open()
        return opened.passed
      })()
      await reached.passed
      await takeBack(service(), since)
      await look()
      opened.open()
      await stalled
      expect(await readTakenBack(service(), id)).toBe(null)
      expect(await readBalance(service(), buyer.address)).toBe(0n)
      // The next look that sees it there frees it.
      await chain.setAutomine(true)
      await sendAgain(service())
      await look()
      expect(await readTakenBack(service(), id)).toBeUndefined()
      expect(await readBalance(service(), buyer.address)).toBe(5_000n)
      await expectBalanced(service())
    })

    test('P12: money that is there is not held because a process that had missed it noted that after others had found it, and died', async () => {
      const chain = connectDevnet(service())
      const buyer = makeBuyer()
      await createFundedPayer(service(), 5_000n, buyer.account)
      const since = await chain.getBlockNumber({ cacheTime: 0 })
      const { id, transaction } = await deposit(buyer)
      const bringBack = await keepSigned(service(), transaction)
      await takeBack(service(), since)
      const [reached, opened] = [makeGate(), makeGate()]
      const stall = async (asked: string) => {
        if (asked === transaction) reached.open()
        await opened.passed
      }
      const failpoint = (point: string) => {
        if (point === 'move.gone') throw new Error('it died')
      }
      const dying = makeWatch(stall, { ...service().world, failpoint })()
      await reached.passed
      await chain.setAutomine(true)
      await bringBack()
      const look = makeWatch()
      await look()
      opened.open()
      // The note is there by then.
      await expect(dying).rejects.toThrow('it died')
      await look()
      expect(await readTakenBack(service(), id)).toBeUndefined()
      expect(await readBalance(service(), buyer.address)).toBe(5_000n)
    })

    const reconcileOpen = async () => {
      const { payments } = service().running.service
      const page = { olderThanMs: Number.MAX_SAFE_INTEGER, after: { at: -1n, id: '' }, limit: 100 }
      for (const claim of await listOpenClaims(payments.ports.database, page))
        await payments.reconcile(claim)
    }

    /** Lets the process die once the money of a payment is here, and another one find it. */
    const payAndDie = async (asked: Asked, header: PaymentHeader) => {
      const { world } = service()
      world.atFailpoints((point) => {
        if (point === 'payment.settled') throw new Error('it died')
      })
      const lost = await ask(service(), asked, header).finally(() => world.atFailpoints(undefined))
      expect(lost.status, lost.text).toBe(500)
      await reconcileOpen()
    }

    /**
     * Pays for a write whose process dies once its money is here: that waits for the request to be sent again. With other
     * money, its payer has 5,000 on its balance beside.
     */
    const payForLostWrite = async ({ hasOther = false } = {}) => {
      const market = await openMarket(service())
      await setPrices(service(), market, [
        { operation: 'write', model: 'per_record', amount: '5000' },
      ])
      const body = { root: market.root, data: [{ name: 'Wels' }] }
      const asked: Asked = {
        ...{ method: 'POST', path: '/store?wait=true', raw: JSON.stringify(body) },
        headers: market.headers,
      }
      const buyer = makeBuyer()
      await createFundedPayer(service(), hasOther ? 10_000n : 5_000n, buyer.account)
      if (hasOther) await deposit(buyer)
      const header = { ...(await buyer.payV2(await quote(service(), asked))), 'x-balance': 'off' }
      const since = await connectDevnet(service()).getBlockNumber({ cacheTime: 0 })
      await payAndDie(asked, header)
      return { market, buyer, since, send: () => ask(service(), asked, header) }
    }

    test('P12: what a purchase is about to write is charged for, though its chain takes its money back in that moment', async () => {
      const { market, since, send } = await payForLostWrite()
      const { chain } = await service().running.service.tenants.load(market.appId)
      await takeBack(service(), since)
      const { reached, opened } = pauseAppend(chain)
      const sent = send()
      await reached.passed
      const look = makeWatch()
      await look()
      opened.open()
      const written = await sent
      expect(written.status, written.text).toBe(200)
      expect(await readIncome(service(), market.appId)).toBe(5_000n)
      expect((await send()).text).toBe(written.text)
      await look()
      await connectDevnet(service()).setAutomine(true)
      await expectBalanced(service())
    })

    test('P12: money that its chain does not have is not freed by its purchase, which is sent again and held of what else its payer has', async () => {
      const { market, buyer, since, send } = await payForLostWrite({ hasOther: true })
      const bringBack = await keepSigned(service(), (await readPaid(buyer)).transaction)
      const { chain } = await service().running.service.tenants.load(market.appId)
      await takeBack(service(), since)
      const look = makeWatch()
      await look()
      expect(await readBalance(service(), buyer.address)).toBe(5_000n)
      const { reached, opened } = pauseAppend(chain)
      const sent = send()
      const isAtWork = await Promise.race([sent.then(() => false), reached.passed.then(() => true)])
      // It may have the other money, or wait until its own is back.
      expect(await readBalance(service(), buyer.address)).toBe(isAtWork ? 0n : 5_000n)
      opened.open()
      expect((await sent).status).toBe(isAtWork ? 200 : 402)
      vi.restoreAllMocks()
      await connectDevnet(service()).setAutomine(true)
      await bringBack()
      await look()
      const written = await send()
      expect(written.status, written.text).toBe(200)
      expect(await readIncome(service(), market.appId)).toBe(5_000n)
      expect(await readBalance(service(), buyer.address)).toBe(5_000n)
      await expectBalanced(service())
    })

    test('P12: money that its chain does not have is not free in the moment in which the request that it was held for fails', async () => {
      const { market, buyer, since, send } = await payForLostWrite()
      const { chain } = await service().running.service.tenants.load(market.appId)
      await takeBack(service(), since)
      const [reached, opened] = [makeGate(), makeGate()]
      vi.spyOn(chain, 'append').mockImplementationOnce(async () => {
        reached.open()
        await opened.passed
        throw new Error('the write failed')
      })
      const sent = send()
      await reached.passed
      const look = makeWatch()
      await look()
      opened.open()
      expect((await sent).status).toBe(500)
      // Whatever became of the request: nothing that was held for it may be taken before the next look.
      await reconcileOpen()
      expect(await readBalance(service(), buyer.address)).toBe(0n)
      await look()
      expect(await readBalance(service(), buyer.address)).toBe(0n)
      await connectDevnet(service()).setAutomine(true)
      await expectBalanced(service())
    })

    /** The same of a read of three rows that is asked for five, so 2,000 of its 5,000 are change. */
    const payForLostRead = async () => {
      const records = [{ id: 'a' }, { id: 'b' }, { id: 'c' }]
      const { root } = await openMarket(service(), { price: { per_row: '1000' }, records })
      const buyer = makeBuyer()
      const payer = await createFundedPayer(service(), 5_000n, buyer.account)
      const elsewhere = await payer.sign({ to: `0x${'9'.repeat(40)}`, value: 5_000n })
      const asked = list({ root, limit: 5 })
      const header = { ...(await buyer.payV2(await quote(service(), asked))), 'x-balance': 'off' }
      const since = await connectDevnet(service()).getBlockNumber({ cacheTime: 0 })
      await payAndDie(asked, header)
      const { id } = await readPaid(buyer)
      return { buyer, id, elsewhere, since, send: () => ask(service(), asked, header) }
    }

    test('P12: the rest of what a purchase cost less than is not free either, where its chain took its money back meanwhile', async () => {
      const { buyer, since, send } = await payForLostRead()
      await takeBack(service(), since)
      const { chain: ledger } = service().running.service.tenants.system
      const { reached, opened } = pauseAppend(ledger)
      const sent = send()
      await reached.passed
      const look = makeWatch()
      await look()
      opened.open()
      const bought = await sent
      expect(bought.status, bought.text).toBe(200)
      // Three rows came: 2,000 of the 5,000 are left, and its chain does not have them.
      expect(await readBalance(service(), buyer.address)).toBe(0n)
      await look()
      expect(await readBalance(service(), buyer.address)).toBe(0n)
      await connectDevnet(service()).setAutomine(true)
      await expectBalanced(service())
    })

    // The last one: the chain is far ahead of the time in the end.
    test('P12: a reversal that waits for a request takes what that has left, though the tables do not have its sale yet', async () => {
      const { database, running } = service()
      const { buyer, id, elsewhere, since, send } = await payForLostRead()
      const chain = connectDevnet(service())
      await takeBack(service(), since)
      await elsewhere.send()
      await chain.mine({ blocks: 1 })
      const { reached, opened } = pauseAppend(running.service.tenants.system.chain)
      const sent = send()
      await reached.passed
      const look = makeWatch()
      await passEnd(service())
      await look()
      await chain.mine({ blocks: finalBlocks })
      const looking = look()
      await database.transaction(async (slow) => {
        await slow.execute(sql`LOCK TABLE system.sale IN SHARE MODE`)
        opened.open()
        await setTimeout(1_000)
      })
      await looking
      const bought = await sent
      expect(bought.status, bought.text).toBe(200)
      expect(await readReversal(service(), id)).toMatchObject({ moved: '2000', lost: '3000' })
      expect(await readBalance(service(), buyer.address)).toBe(0n)
      await chain.setAutomine(true)
      await expectBalanced(service())
    })
  },
  { devnet: true },
)

/** Reads what was charged for what the application sold. */
async function readIncome({ running, database }: TestService, appId: string): Promise<bigint> {
  const { chain } = running.service.tenants.system
  await chain.whenApplied(chain.head().height)
  const [row] = await database.query<{ sum: string }>(sql`
    SELECT coalesce(sum((body::jsonb ->> 'amount')::numeric), 0)::text AS sum FROM system.sale
    WHERE body::jsonb ->> 'app' = ${appId}`)
  return BigInt(row?.sum ?? 0)
}
