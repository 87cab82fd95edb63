import { randomBytes } from 'node:crypto'
import { expect, test, vi } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { JournaledSender } from '../../packages/server/src/x402/sender.ts'
import { ask, createFundedBuyer, list, quote } from '../support/buyer.ts'
import { openMarket, readChainBalance } from '../support/market.ts'
import {
  type Json,
  startTestService,
  type TestReply,
  type TestService,
} from '../support/service.ts'

const count = 12

/** A row whose bytes make the calls of others is named, though their number is right. */
async function checkCallsAreAudited(
  service: TestService,
  config: Parameters<typeof audit>[0],
): Promise<void> {
  const joint = sql`operations.transaction_journal WHERE parts <> '{}'`
  const rows = await service.database.query<{ id: string; parts: string[] }>(
    sql`SELECT id, parts FROM ${joint} ORDER BY cardinality(parts) DESC`,
  )
  const payments = rows.find(({ parts }) => parts.length > 2 && parts[0]?.startsWith('pay_'))
  const sent = rows.find(({ parts }) => parts.length > 2 && parts[0]?.startsWith('transfer:'))
  expect([payments !== undefined, sent !== undefined]).toEqual([true, true])
  for (const {
    id,
    parts: [first = '', second = '', third = '', ...rest],
  } of rows.filter((one) => one === payments || one === sent)) {
    const put = (parts: readonly string[]) =>
      service.database.execute(
        sql`UPDATE operations.transaction_journal SET parts = ${parts}::text[] WHERE id = ${id}`,
      )
    await put([first, third, second, ...rest])
    expect((await audit(config, () => undefined)).difference).toMatchObject({
      ...{ what: 'table operations.transaction_journal', row: id, field: 'raw', part: third },
    })
    await put([first, second, third, ...rest])
  }
}

/** Lists the transactions of the journal that make several payments. */
const listJoint = ({ running }: TestService) =>
  running.service.database.query<{ hash: string; parts: string[] }>(
    sql`SELECT hash, parts FROM operations.transaction_journal WHERE parts <> '{}' ORDER BY nonce`,
  )

const readReceipt = (reply: TestReply): Json =>
  JSON.parse(Buffer.from(reply.headers.get('payment-response') ?? '', 'base64').toString())

test('buyers who pay at the same moment, and withdraw at the same moment, share transactions: each has a receipt, the lists name the transaction for each, and the audit is equal', async () => {
  const service = await startTestService({ devnet: true })
  try {
    const market = await openMarket(service, { price: { per_access: '1000' } })
    const asked = list({ root: market.root, limit: 1 })
    const buyers = await Promise.all(
      Array.from({ length: count }, () => createFundedBuyer(service, 200_000n)),
    )
    const signed = await Promise.all(
      buyers.map(async (buyer) => buyer.payV2(await quote(service, asked))),
    )
    const buying = await sendTogether(service, 'pay_', () =>
      signed.map((header) => ask(service, asked, { ...header, 'x-balance': 'off' })),
    )
    const replies = await Promise.all(buying)
    expect(replies.map(({ status }) => status)).toEqual(replies.map(() => 200))
    const joint = await listJoint(service)
    const together = joint.flatMap(({ parts }) => parts)
    expect(together.length).toBeGreaterThan(1)
    const transactions = replies.map((reply) => String(readReceipt(reply).transaction))
    expect(new Set(transactions).size).toBe(count - together.length + joint.length)
    for (const id of together) {
      const { body } = await service.request('GET', `/api/transactions/${id}`, {
        headers: market.headers,
      })
      const { hash } = joint.find(({ parts }) => parts.includes(id)) ?? {}
      expect(JSON.stringify(body)).toContain(hash)
    }
    await payOutTogether(service)
    await service.whileStopped(async (config) => {
      const report = await audit(config, () => undefined)
      expect(report.equal, JSON.stringify(report)).toBe(true)
      await checkCallsAreAudited(service, config)
    })
  } finally {
    await service.close()
  }
}, 120_000)

/**
 * Begins some works and keeps the first of their transactions from the journal until the sender has all others, so that
 * these go together however slow the machine is.
 */
async function sendTogether<T>(
  { database }: TestService,
  prefix: string,
  begin: () => readonly T[],
): Promise<readonly T[]> {
  const send = vi.spyOn(JournaledSender.prototype, 'send')
  const countAsked = () => {
    const ids = send.mock.calls.map(([{ id }]) => id)
    return new Set(ids.filter((id) => id.startsWith(prefix))).size
  }
  try {
    return await database.transaction(async (tx) => {
      await tx.execute(sql`LOCK TABLE operations.transaction_journal IN EXCLUSIVE MODE`)
      const begun = begin()
      await expect.poll(countAsked, { timeout: 30_000 }).toBe(begun.length)
      return begun
    })
  } finally {
    send.mockRestore()
  }
}

async function payOutTogether(service: TestService): Promise<void> {
  const { transfers, payments } = service.running.service
  const network = requireNetwork(service)
  const before = (await listJoint(service)).length
  const wallets = Array.from({ length: 5 }, () => `0x${randomBytes(20).toString('hex')}`)
  const rich = await createFundedBuyer(service, 2_000_000n)
  await depositAll(service, rich)
  const orders = wallets.map((recipient) => ({
    ...{ id: `wd_${randomBytes(16).toString('hex')}`, kind: 'withdrawal' as const },
    ...{ account: `wallet:${rich.address}`, network, recipient, amount: 20_000n },
  }))
  const asked = await sendTogether(service, 'transfer:', () =>
    orders.map((order) => transfers.request(order)),
  )
  await Promise.all(asked)
  const paid = []
  for (const { id } of orders)
    paid.push(
      await expect
        .poll(async () => (await transfers.find(id))?.state, { timeout: 20_000 })
        .toBe('paid')
        .then(() => transfers.find(id)),
    )
  for (const recipient of wallets) expect(await readChainBalance(service, recipient)).toBe(20_000n)
  const joint = (await listJoint(service)).slice(before)
  expect(joint.flatMap(({ parts }) => parts).length).toBeGreaterThan(1)
  for (const one of paid) {
    if (one === undefined) throw new Error('a transfer that was asked for')
    const [row] = await transfers.listSigned(one)
    expect(row?.transaction).toBe(one.transaction)
  }
  expect(payments.countInFlight()).toBe(0)
}

function requireNetwork({ running }: TestService): string {
  if (running.devnet === undefined) throw new Error('this needs the devnet')
  return running.devnet.network.id
}

async function depositAll(
  service: TestService,
  buyer: Awaited<ReturnType<typeof createFundedBuyer>>,
): Promise<void> {
  const path = `/api/wallets/${buyer.address}/deposit`
  const deposit = { method: 'POST', path, raw: JSON.stringify({ amount: '1000000' }) }
  const reply = await buyer.buy(service, deposit)
  expect(reply.status, reply.text).toBe(200)
}
