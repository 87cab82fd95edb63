import { createWalletClient, encodeFunctionData, type Hex, http } from 'viem'
import { baseSepolia } from 'viem/chains'
import { expect, test, vi } from 'vitest'
import { requirePresent } from '../../packages/server/src/base/assert.ts'
import { sql } from '../../packages/server/src/database/sql.ts'
import { multicall3 } from '../../packages/server/src/devnet/contracts.ts'
import { findClaim } from '../../packages/server/src/services/payments/claims/claim-store.ts'
import { decodeStoredPayment } from '../../packages/server/src/services/payments/claims/stored-payment.ts'
import {
  makeMoveMemory,
  runMoveRound,
} from '../../packages/server/src/services/payments/reversals/watch-moves.ts'
import type { BlockWatch } from '../../packages/server/src/x402/block-watch.ts'
import { multicallAddress } from '../../packages/server/src/x402/joint.ts'
import type { ExactPayment } from '../../packages/server/src/x402/protocol.ts'
import { encodeTransferCall } from '../../packages/server/src/x402/token.ts'
import { ask, type Buyer, depositing, makeBuyer, quote, readBalance } from '../support/buyer.ts'
import { expectBalanced } from '../support/market.ts'
import { connectDevnet, createFundedPayer } from '../support/payer.ts'
import { withService } from '../support/per-engine.ts'
import type { TestService } from '../support/service.ts'
import { readTakenBack, sendAgain, takeBack } from './reorganize.ts'

/** Writes 24,000 events without a topic, some 10 MB of a receipt. */
const noisy: Hex = '0x615dc05b60006000a06001900380600357'

/** Uses an authorization in a transaction of very many events. */
async function useAmongEvents(service: TestService, payload: ExactPayment): Promise<void> {
  const chain = connectDevnet(service)
  const { account, address } = makeBuyer()
  const noise = makeBuyer().address as Hex
  await chain.setBalance({ address: address as Hex, value: 10n ** 20n })
  await chain.setCode({ address: noise, bytecode: noisy })
  const { devnet } = service.running
  const { token, rpcUrl } = requirePresent(devnet, 'a devnet')
  const calls = [
    { target: token as Hex, allowFailure: false, callData: encodeTransferCall(payload) as Hex },
    { target: noise, allowFailure: false, callData: '0x' as Hex },
  ]
  const { abi } = multicall3
  const data = encodeFunctionData({ abi, functionName: 'aggregate3', args: [calls] })
  const wallet = createWalletClient({ account, chain: baseSepolia, transport: http(rpcUrl) })
  const to = multicallAddress as Hex
  const fees = { maxFeePerGas: 10n ** 11n, maxPriorityFeePerGas: 10n ** 9n }
  const hash = await wallet.sendTransaction({ to, data, gas: 14_000_000n, ...fees })
  // Its receipt would be 10 MB each time.
  await expect
    .poll(async () => (await chain.getTransaction({ hash }).catch(() => undefined))?.blockNumber)
    .toBeTypeOf('bigint')
  expect((await chain.getBlock()).gasUsed).toBeGreaterThan(9_000_000n)
}

vi.setConfig({ testTimeout: 120_000 })

withService(
  (service) => {
    /** Makes a round of looks at what is booked; `refuse` may let the node give no receipt. */
    const makeRound = (refuse: (transaction: string) => void = () => {}) => {
      const { payments, log } = service().running.service
      const [method] = payments.ports.methods
      const watch = requirePresent(method?.blocks, 'a watch').open()
      const blocks = {
        look: () => watch.look(),
        readHeight: () => watch.readHeight(),
        findUse: async (...asked: Parameters<BlockWatch['findUse']>) => {
          refuse(asked[0])
          return watch.findUse(...asked)
        },
      } as BlockWatch
      const memory = makeMoveMemory()
      const ports = { ...payments.ports, log, turns: payments.turns }
      const run = () =>
        runMoveRound(ports, { ...requirePresent(method, 'a method'), blocks }, memory)
      return { memory, run }
    }

    const deposit = async (buyer: Buyer): Promise<{ id: string; transaction: string }> => {
      const asked = depositing(buyer.address, '5000')
      const header = await buyer.payV2(await quote(service(), asked))
      const { status, text, body } = await ask(service(), asked, header)
      expect(status, text).toBe(200)
      return { id: body.payment_id, transaction: body.transaction }
    }

    test('a claimed payment that its payer uses himself among more events than are read is on his balance, and is watched like any other', async () => {
      const { database, running, world } = service()
      const { payments } = running.service
      const buyer = makeBuyer()
      await createFundedPayer(service(), 5_000n, buyer.account)
      const asked = depositing(buyer.address, '5000')
      const header = await buyer.payV2(await quote(service(), asked))
      world.atFailpoints((point) => {
        if (point === 'payment.claimed') throw new Error('it died')
      })
      await ask(service(), asked, header).finally(() => world.atFailpoints(undefined))
      const [row] = await database.query<{ id: string }>(
        sql`SELECT id FROM operations.claim WHERE split_part(identity, '/', 3) = ${buyer.address}`,
      )
      const find = async () =>
        requirePresent(await findClaim(database, { id: row?.id ?? '' }), 'the claim')
      const claim = await find()
      expect(claim.state).toBe('claimed')
      const payment = decodeStoredPayment(claim.payment)
      await useAmongEvents(service(), payment.payload as ExactPayment)
      await payments.reconcile(claim)
      expect((await find()).state).toBe('deposited')
      expect(await readBalance(service(), buyer.address)).toBe(5_000n)
      const { memory, run } = makeRound()
      await run()
      expect(memory.heights.size).toBe(1)
      await expectBalanced(service())
    })

    test('a booked payment whose receipt cannot be read stays watched, and keeps no other one from being held that its chain took back', async () => {
      const chain = connectDevnet(service())
      const [unread, other] = [makeBuyer(), makeBuyer()]
      for (const { account } of [unread, other]) await createFundedPayer(service(), 5_000n, account)
      const { id, transaction } = await deposit(unread)
      const since = await chain.getBlockNumber({ cacheTime: 0 })
      const lost = await deposit(other)
      let isRefused = true
      const { run } = makeRound((named) => {
        if (isRefused && named === transaction) throw new Error('the node is overloaded')
      })
      await takeBack(service(), since)
      const look = async () => {
        await expect(run()).rejects.toThrow('the node is overloaded')
        return readTakenBack(service(), lost.id)
      }
      await expect.poll(look, { timeout: 10_000 }).toBe(null)
      expect(await readBalance(service(), other.address)).toBe(0n)
      expect(await readTakenBack(service(), id)).toBeUndefined()
      isRefused = false
      await chain.setAutomine(true)
      await sendAgain(service())
      await run()
      expect(await readBalance(service(), other.address)).toBe(5_000n)
      await expectBalanced(service())
    })
  },
  { devnet: true },
)
