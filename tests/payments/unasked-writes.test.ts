import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { listOpenClaims } from '../../packages/server/src/services/payments/claims/claim-lists.ts'
import {
  type Asked,
  ask,
  createFundedBuyer,
  depositing,
  quote,
  readBalance,
} from '../support/buyer.ts'
import {
  expectBalanced,
  type Market,
  openMarket,
  readAccounts,
  readReceipt,
  setPrices,
} from '../support/market.ts'
import { withService } from '../support/per-engine.ts'
import type { TestReply, TestService } from '../support/service.ts'

/** Each write that is sold, as a buyer sends it, and its price. */
const writes: readonly (readonly [string, number, (market: Market) => Asked])[] = [
  [
    'a store',
    2000,
    ({ root }) => post('/store?wait=true', { root, data: [{ name: 'Wels' }, { name: 'Steyr' }] }),
  ],
  [
    'a batch',
    2000,
    ({ appId, collection }) =>
      post(`/api/apps/${appId}/batch`, {
        operations: [
          { operation: 'create', collection, data: { id: 'c9', name: 'Lienz' } },
          { operation: 'delete', collection, data: { id: 'c0' } },
        ],
      }),
  ],
  [
    'an upload',
    1000,
    ({ appId }) => ({
      ...{ method: 'POST', path: `/api/apps/${appId}/blobs/files` },
      raw: '--x\r\nContent-Disposition: form-data; name="blob"; filename="a.txt"\r\nContent-Type: text/plain\r\n\r\nhello\r\n--x--\r\n',
      headers: { 'content-type': 'multipart/form-data; boundary=x' },
    }),
  ],
  [
    'a change of encryption',
    1000,
    ({ appId }) => post(`/api/apps/${appId}/encryption`, { action: 'add', collections: ['empty'] }),
  ],
]

withService(
  (service) => {
    for (const [name, price, request] of writes)
      for (const way of ['a transfer', 'a balance'])
        test(`${name} that was made and paid for by ${way} is charged once, and can be asked for, though its buyer went away`, async () => {
          const { market, asked } = await openScene(service(), request)
          const buyer = await createFundedBuyer(service())
          if (way === 'a balance')
            await buyer.buy(service(), depositing(buyer.address, String(price)))
          const paid = await buyer.payV2(await quote(service(), asked))
          const headers = { ...paid, 'x-balance': way === 'a balance' ? 'on' : 'off' }
          const lost = await loseAnswer(service(), () => ask(service(), asked, headers))
          expect(lost.body.details).not.toHaveProperty('charged')
          expect(await readIncome(service(), market)).toBe(0n)
          await reconcileAll(service())
          expect(await readIncome(service(), market)).toBe(BigInt(price))
          expect(await readBalance(service(), buyer.address)).toBe(0n)
          const answer = await ask(service(), asked, headers)
          expect(answer.status, answer.text).toBeLessThan(300)
          expect(await readReceipt(service(), answer)).toMatchObject({
            ...{ payment_id: lost.body.details.payment_id, amount: String(price) },
            ...{ payer: buyer.address, result_hash: sha256(answer.text) },
          })
          expect((await ask(service(), asked, headers)).text).toBe(answer.text)
          await reconcileAll(service())
          expect(await readIncome(service(), market)).toBe(BigInt(price))
          await expectBalanced(service())
        })

    test("a write that was made is charged though its application was archived meanwhile: nobody's balance stays held", async () => {
      const store = writes[0]?.[2]
      if (store === undefined) throw new Error('there is no store')
      const { market, asked } = await openScene(service(), store)
      const buyer = await createFundedBuyer(service())
      await buyer.buy(service(), depositing(buyer.address, '2500'))
      const headers = await buyer.payV2(await quote(service(), asked))
      await loseAnswer(service(), () => ask(service(), asked, headers))
      const path = `/api/apps/${market.appId}`
      const archived = await service().request('DELETE', path, { headers: market.headers })
      expect(archived.status, archived.text).toBe(200)
      await service().restart()
      await expect.poll(() => readIncome(service(), market), { timeout: 10_000 }).toBe(2000n)
      expect(await readBalance(service(), buyer.address)).toBe(500n)
      expect((await ask(service(), asked, headers)).status).toBeLessThan(300)
    })

    test('a write by a prepaid key without an Idempotency-Key, which cannot ask again, is charged once its process is gone', async () => {
      const store = writes[0]?.[2]
      if (store === undefined) throw new Error('there is no store')
      const { market, asked } = await openScene(service(), store)
      const agent = await service().createApp()
      const payer = await createFundedBuyer(service())
      const deposit = { method: 'POST', path: `/api/apps/${agent.appId}/wallet/deposit` }
      const raw = JSON.stringify({ amount: '5000' })
      expect((await payer.buy(service(), { ...deposit, raw, headers: agent.headers })).status).toBe(
        200,
      )
      const key = await service().request('POST', `/api/apps/${agent.appId}/keys`, {
        body: { permissions: ['Pay'], pay_limits: {}, name: 'agent' },
        headers: agent.headers,
      })
      await loseAnswer(service(), () =>
        ask(service(), asked, { 'x-agent-key': String(key.body.key) }),
      )
      await service().restart()
      await expect.poll(() => readIncome(service(), market), { timeout: 10_000 }).toBe(2000n)
      expect((await readAccounts(service())).get(`app:${agent.appId}`)).toBe(3000n)
      const report = await service().whileStopped((config) => audit(config, () => undefined))
      expect(report, JSON.stringify(report)).toMatchObject({ equal: true })
    })
  },
  { devnet: true },
)

function post(path: string, body: object): Asked {
  return { method: 'POST', path, raw: JSON.stringify(body) }
}

async function openScene(service: TestService, request: (market: Market) => Asked) {
  const market = await openMarket(service)
  for (const body of [{ name: 'empty' }, { name: 'files', collection_type: 'blob' }]) {
    const at = `/api/apps/${market.appId}/collections`
    const made = await service.request('POST', at, { body, headers: market.headers })
    expect(made.status, made.text).toBe(201)
  }
  await setPrices(service, market, [
    { operation: 'write', model: 'per_record', amount: '1000' },
    {
      ...{ target: { collection: 'files' }, operation: 'write' },
      ...{ model: 'per_record', amount: '1000' },
    },
  ])
  const asked = request(market)
  return { market, asked: { ...asked, headers: { ...market.headers, ...asked.headers } } }
}

/** Lets the process lose a request whose write was made, before its answer is kept. */
async function loseAnswer(
  service: TestService,
  work: () => Promise<TestReply>,
): Promise<TestReply> {
  service.world.atFailpoints((point) => {
    if (point === 'payment.delivered') throw new Error('it died')
  })
  try {
    const reply = await work()
    expect(reply.status, reply.text).toBe(500)
    return reply
  } finally {
    service.world.atFailpoints(undefined)
  }
}

async function reconcileAll({ running }: TestService): Promise<void> {
  const { payments } = running.service
  const page = { olderThanMs: Number.MAX_SAFE_INTEGER, after: { at: -1n, id: '' }, limit: 100 }
  for (const claim of await listOpenClaims(payments.ports.database, page))
    await payments.reconcile(claim)
}

/** Reads what was charged for what the application sold. */
async function readIncome({ running, database }: TestService, { appId }: Market): Promise<bigint> {
  const { chain } = running.service.tenants.system
  await chain.whenApplied(chain.head().height)
  const [row] = await database.query<{ sum: string }>(sql`
    SELECT coalesce(sum((body::jsonb ->> 'amount')::numeric), 0)::text AS sum FROM system.sale
    WHERE body::jsonb ->> 'app' = ${appId}`)
  return BigInt(row?.sum ?? 0)
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
