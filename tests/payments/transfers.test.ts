import { randomBytes } from 'node:crypto'
import { giveParts } from '@tollbase/testing/give-parts'
import { expect, test } from 'vitest'
import type { Database } from '../../packages/server/src/database/database.ts'
import { sql } from '../../packages/server/src/database/sql.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import type { Tenants } from '../../packages/server/src/services/applications/tenants.ts'
import type { PaymentMethod } from '../../packages/server/src/services/payments/payment-ports.ts'
import type { OutgoingTransfer } from '../../packages/server/src/services/payments/transfers/transfer-store.ts'
import {
  type TransferOrder,
  type TransferPorts,
  Transfers,
} from '../../packages/server/src/services/payments/transfers/transfers.ts'
import { openCopies } from '../audit/copies.ts'
import { createFundedBuyer, readBalance } from '../support/buyer.ts'
import { expectBalanced, readAccounts, readChainBalance } from '../support/market.ts'
import { blockTransfers, connectDevnet } from '../support/payer.ts'
import { withService } from '../support/per-engine.ts'
import type { TestService } from '../support/service.ts'

const log = { warn: () => undefined }
const makeId = () => `wd_${randomBytes(16).toString('hex')}`

function getPorts(service: TestService): TransferPorts {
  return { ...service.running.service.payments.ports, log }
}

/** Creates a buyer whose money, all of it, is a balance at the service. */
async function createDepositor(service: TestService, amount: bigint) {
  const buyer = await createFundedBuyer(service, amount)
  const { devnet } = service.running
  if (devnet === undefined) throw new Error('this needs the devnet')
  const { payTo, asset, id: network, chainId } = devnet.network
  const extra = { name: asset.name, version: asset.version, chainId }
  const about = { scheme: 'exact', network, payTo, asset: asset.address, extra }
  const entry = { ...about, amount: String(amount) }
  const required = {
    headers: new Headers({
      'payment-required': Buffer.from(JSON.stringify({ accepts: [entry] })).toString('base64'),
    }),
    status: 402,
    body: undefined,
    text: '',
  }
  const header = Object.values(await buyer.payV2(required))[0] ?? ''
  const paymentPayload = JSON.parse(Buffer.from(header, 'base64').toString())
  const body = { x402Version: 2, paymentPayload, paymentRequirements: {} }
  const { text } = await service.request('POST', '/api/payments/settle', { body })
  expect(JSON.parse(text).success, text).toBe(true)
  return buyer
}

function makeOrder(
  service: TestService,
  buyer: { readonly address: string },
  amount: bigint,
): TransferOrder {
  const network = service.running.devnet?.network.id ?? ''
  const account = `wallet:${buyer.address}`
  return { id: makeId(), kind: 'withdrawal', account, network, recipient: buyer.address, amount }
}

async function awaitOutcome(transfers: Transfers, id: string): Promise<OutgoingTransfer> {
  for (let tries = 0; tries < 400; tries++) {
    await transfers.advance(id)
    const found = await transfers.find(id)
    if (found?.state === 'paid' || found?.state === 'returned') return found
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error(`the transfer ${id} has no outcome`)
}

async function expectAuditEqual(service: TestService): Promise<void> {
  const report = await service.whileStopped((config) => audit(config, () => undefined))
  expect(report.equal, JSON.stringify(report)).toBe(true)
}

class Died extends Error {}

/** Transfers of a process that dies before or after its step of this number, and the steps that it began. */
function makeDying(ports: TransferPorts, death: { step: number; when: 'before' | 'after' }) {
  const steps: string[] = []
  let dead = false
  const step = async <T>(name: string, work: () => Promise<T>): Promise<T> => {
    if (dead) throw new Died(name)
    steps.push(name)
    const isLast = steps.length - 1 === death.step
    if (isLast) dead = true
    if (isLast && death.when === 'before') throw new Died(name)
    const result = await work()
    if (dead) throw new Died(name)
    return result
  }
  const { system } = ports.tenants
  const chain = {
    head: () => system.chain.head(),
    whenApplied: (height: number) => system.chain.whenApplied(height),
    append: (...given: Parameters<typeof system.chain.append>) =>
      step('append', () => system.chain.append(...given)),
  }
  const database: Database = {
    ...ports.database,
    query: (statement, options) => step('query', () => ports.database.query(statement, options)),
    execute: (statement) => step('execute', () => ports.database.execute(statement)),
    transaction: (work, options) =>
      step('transaction', () => ports.database.transaction(work, options)),
  }
  const methods = ports.methods.map(
    ({ treasury, ...method }): PaymentMethod => ({
      ...method,
      ...(treasury && {
        treasury: { transfer: (...given) => step('transfer', () => treasury.transfer(...given)) },
      }),
    }),
  )
  // Transfers use nothing else of the tenants.
  const tenants = giveParts<Tenants>({ system: { ...system, chain } })
  return { transfers: new Transfers({ ...ports, database, methods, tenants }), steps }
}

withService(
  (service) => {
    test('a transfer moves its amount once, out of the account and to the recipient, and asked again it is the same', async () => {
      const buyer = await createDepositor(service(), 1_000n)
      const transfers = new Transfers(getPorts(service()))
      const order = makeOrder(service(), buyer, 600n)
      const asked = await transfers.request(order)
      expect(asked.state).toBe('debited')
      expect(await readBalance(service(), buyer.address)).toBe(400n)
      const paid = await awaitOutcome(transfers, order.id)
      expect(paid.state).toBe('paid')
      expect(paid.transaction).toMatch(/^0x[0-9a-f]{64}$/)
      expect(await readChainBalance(service(), buyer.address)).toBe(600n)
      expect((await transfers.request(order)).state).toBe('paid')
      await expect(transfers.request({ ...order, amount: 300n })).rejects.toMatchObject({
        code: 'CONFLICT',
      })
      expect(await readChainBalance(service(), buyer.address)).toBe(600n)
      expect((await readAccounts(service())).get(`transit:${order.network}`)).toBe(0n)
      await expectBalanced(service())
    })

    test('a transfer that nobody can make is refused before anything is taken', async () => {
      const buyer = await createDepositor(service(), 1_000n)
      const transfers = new Transfers(getPorts(service()))
      const order = makeOrder(service(), buyer, 1_001n)
      const { payTo } = service().running.devnet?.network ?? { payTo: '' }
      const wrong: readonly (readonly [Partial<TransferOrder>, string])[] = [
        [{}, 'BALANCE_TOO_LOW'],
        [{ amount: 99n }, 'VALIDATION_FAILED'],
        [{ amount: 500n, recipient: payTo }, 'VALIDATION_FAILED'],
        [{ amount: 500n, network: 'eip155:1' }, 'TRANSFERS_NOT_CONFIGURED'],
      ]
      for (const [change, code] of wrong)
        await expect(transfers.request({ ...order, ...change })).rejects.toMatchObject({ code })
      expect(await transfers.find(order.id)).toBeUndefined()
      expect(await readBalance(service(), buyer.address)).toBe(1_000n)
    })

    test('P19: of forty transfers at once, by two processes, as many are made as the balance covers', async () => {
      const buyer = await createDepositor(service(), 1_050n)
      const both = [new Transfers(getPorts(service())), new Transfers(getPorts(service()))] as const
      const orders = Array.from({ length: 40 }, () => makeOrder(service(), buyer, 100n))
      const asked = await Promise.allSettled(
        orders.map((order, at) => both[at % 2 === 0 ? 0 : 1].request(order)),
      )
      const taken = orders.filter((_, at) => asked[at]?.status === 'fulfilled')
      expect(taken).toHaveLength(10)
      for (const one of asked)
        if (one.status === 'rejected') expect(one.reason).toMatchObject({ code: 'BALANCE_TOO_LOW' })
      await Promise.all(taken.map(({ id }) => awaitOutcome(both[0], id)))
      expect(await readChainBalance(service(), buyer.address)).toBe(1_000n)
      expect(await readBalance(service(), buyer.address)).toBe(50n)
      await expectBalanced(service())
    })

    test.each(['before', 'after'] as const)(
      'P7: a transfer survives a death %s each of its steps: it is made once, and its account pays once',
      async (when) => {
        const ports = getPorts(service())
        const seen = new Set<string>()
        for (let step = 0; ; step++) {
          expect(step).toBeLessThan(40)
          const buyer = await createDepositor(service(), 1_000n)
          const order = makeOrder(service(), buyer, 700n)
          const { transfers, steps } = makeDying(ports, { step, when })
          await transfers.request(order).catch(() => undefined)
          await transfers.advance(order.id).catch(() => undefined)
          for (const name of steps) seen.add(name)
          const alive = new Transfers(ports)
          // The owner asks again, as one does who got no answer.
          await alive.request(order)
          expect((await awaitOutcome(alive, order.id)).state).toBe('paid')
          expect(await readChainBalance(service(), buyer.address)).toBe(700n)
          expect(await readBalance(service(), buyer.address)).toBe(300n)
          if (steps.length <= step) break
        }
        expect([...seen]).toEqual(expect.arrayContaining(['append', 'transaction', 'transfer']))
        await expectBalanced(service())
      },
    )

    test('a transfer that a life made which no backup knows is paid, and its account pays once', async () => {
      const ports = getPorts(service())
      const buyer = await createDepositor(service(), 1_000n)
      const order = makeOrder(service(), buyer, 700n)
      const methods = ports.methods.map((method) => ({
        ...method,
        treasury: { transfer: () => Promise.reject(new Died()) },
      }))
      const asked = await new Transfers({ ...ports, methods }).request(order)
      const treasury = ports.methods.find(({ network }) => network.id === order.network)?.treasury
      const sent = { id: order.id, to: order.recipient, amount: 700n }
      const lost = { ...sent, validBefore: asked.valid_before }
      await expect
        .poll(async () => (await treasury?.transfer(lost, 0, async () => true))?.state)
        .toBe('settled')
      const alive = new Transfers(ports)
      expect((await alive.find(order.id))?.state).toBe('debited')
      expect((await awaitOutcome(alive, order.id)).state).toBe('paid')
      expect(await readChainBalance(service(), buyer.address)).toBe(700n)
      await expectBalanced(service())
    })

    test('a service that starts again finishes what it was asked before, and audit finds it equal', async () => {
      const buyer = await createDepositor(service(), 1_000n)
      const order = makeOrder(service(), buyer, 500n)
      const { transfers } = makeDying(getPorts(service()), { step: 9, when: 'before' })
      await transfers.request(order).catch(() => undefined)
      await service().restart()
      const found = await awaitOutcome(service().running.service.transfers, order.id)
      expect(found.state).toBe('paid')
      await expectAuditEqual(service())
    })

    test('a row that was changed in the database sends nothing to anybody else, and the audit names what was changed', async () => {
      const buyer = await createDepositor(service(), 1_000n)
      const thief = `0x${randomBytes(20).toString('hex')}`
      const ports = getPorts(service())
      const order = makeOrder(service(), buyer, 500n)
      const { transfers } = makeDying(ports, { step: 9, when: 'before' })
      await transfers.request(order).catch(() => undefined)
      const setRecipient = (address: string) =>
        ports.database.execute(
          sql`UPDATE operations.outgoing_transfer SET recipient = ${address} WHERE id = ${order.id}`,
        )
      await setRecipient(thief)
      const alive = new Transfers(ports)
      await expect(alive.advance(order.id)).rejects.toThrow(/what the ledger has/)
      expect(await readChainBalance(service(), thief)).toBe(0n)
      await setRecipient(buyer.address)
      expect((await awaitOutcome(alive, order.id)).state).toBe('paid')
      expect(await readChainBalance(service(), buyer.address)).toBe(500n)
      const copies = await service().whileStopped(openCopies)
      try {
        for (const [field, change] of [
          ['recipient', `recipient = '${thief}'`],
          ['valid_before', 'valid_before = valid_before + 1'],
          ['transaction', `transaction = '0x' || repeat('0', 64)`],
        ] as const)
          await copies.harmed(async (database, config) => {
            const statement = `UPDATE operations.outgoing_transfer SET ${change}`
            await database.execute(sql.compiled(`${statement} WHERE id = '${order.id}'`, []))
            const { difference } = await audit(config, () => undefined)
            expect(difference, change).toMatchObject({ row: order.id, field })
          })
      } finally {
        await copies.close()
      }
    })

    // The clock of the chain is moved: nothing may come after this.
    test('a transfer that the token refuses costs no gas, and is made once the token takes it', async () => {
      const buyer = await createDepositor(service(), 1_000n)
      const unblock = await blockTransfers(service(), buyer.address)
      const transfers = new Transfers(getPorts(service()))
      const order = makeOrder(service(), buyer, 600n)
      await transfers.request(order)
      for (let tries = 0; tries < 8; tries++) await transfers.advance(order.id)
      expect(await transfers.find(order.id)).toMatchObject({
        ...{ state: 'debited', tries: 0, reason: expect.stringContaining('the token refuses it') },
      })
      const sent = await service().database.query(
        sql`SELECT id FROM operations.transaction_journal WHERE id LIKE ${`transfer:${order.id}%`}`,
      )
      expect(sent).toEqual([])
      await unblock()
      expect((await awaitOutcome(transfers, order.id)).state).toBe('paid')
      expect(await readChainBalance(service(), buyer.address)).toBe(600n)
      await expectBalanced(service())
    })

    test('the money of a transfer that never got into a block is returned once the chain is past its end, and not before', async () => {
      const buyer = await createDepositor(service(), 1_000n)
      const ports = getPorts(service())
      const stuck = ports.methods.map(
        (method): PaymentMethod => ({
          ...method,
          treasury: { transfer: async () => ({ state: 'pending', reason: 'not_sent' }) },
        }),
      )
      const order = { ...makeOrder(service(), buyer, 770n), fee: 30n }
      await new Transfers({ ...ports, methods: stuck }).request(order)
      // The clock of the service alone proves nothing: a chain may be late.
      service().world.advance(26 * 3600_000)
      const reopened = new Transfers(ports)
      await reopened.advance(order.id)
      expect(await reopened.find(order.id)).toMatchObject({ state: 'debited', reason: 'not_sent' })
      expect(await readBalance(service(), buyer.address)).toBe(200n)
      const devnet = connectDevnet(service())
      const { timestamp } = await devnet.getBlock()
      const { valid_before: end = 0n } = (await reopened.find(order.id)) ?? {}
      // The blocks that are past its end may be replaced by ones that are not.
      await devnet.increaseTime({ seconds: Number(end - timestamp) + 300 })
      await devnet.mine({ blocks: 1 })
      await reopened.advance(order.id)
      expect((await reopened.find(order.id))?.state).toBe('debited')
      await devnet.increaseTime({ seconds: 400 })
      await devnet.mine({ blocks: 1 })
      await reopened.advance(order.id)
      expect((await reopened.find(order.id))?.state).toBe('debited')
      // A second look must agree, once the block of the first one is final.
      await devnet.mine({ blocks: 80 })
      service().world.advance(61_000)
      expect((await awaitOutcome(reopened, order.id)).state).toBe('returned')
      expect(await readBalance(service(), buyer.address)).toBe(1_000n)
      expect(await readChainBalance(service(), buyer.address)).toBe(0n)
      await expectBalanced(service())
    })
  },
  { devnet: true },
)
