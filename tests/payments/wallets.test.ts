import { expect, test } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { rebuild } from '../../packages/server/src/operator/rebuild.ts'
import { openCopies } from '../audit/copies.ts'
import {
  ask,
  type Buyer,
  createFundedBuyer,
  depositing,
  list,
  makeBuyer,
  parseEntry,
  quote,
  readBalance,
} from '../support/buyer.ts'
import {
  expectBalanced,
  type Market,
  openMarket,
  readAccounts,
  readChainBalance,
  readEarnings,
} from '../support/market.ts'
import { createFundedPayer, findNativeEntry, pay } from '../support/payer.ts'
import { withService } from '../support/per-engine.ts'
import type { Json, TestReply } from '../support/service.ts'
import { askSigned, makeTestWallet } from '../support/wallet.ts'

withService(
  (service) => {
    const withdrawFrom = (from: string, by: Buyer, sent: object): Promise<TestReply> =>
      askSigned(service(), makeTestWallet(by.account), {
        ...{ method: 'POST', path: `/api/wallets/${from}/withdraw`, ...sent },
      })
    const withdraw = (by: Buyer, body: object, headers = {}): Promise<TestReply> =>
      withdrawFrom(by.address, by, { body, headers })
    const readWallet = async (address: string): Promise<Json> =>
      (await service().request('GET', `/api/wallets/${address}`)).body

    async function createDepositor(amount: string): Promise<Buyer> {
      const buyer = await createFundedBuyer(service(), BigInt(amount))
      const reply = await buyer.buy(service(), depositing(buyer.address, amount))
      expect(reply.status, reply.text).toBe(200)
      return buyer
    }

    async function awaitTransaction(id: string): Promise<Json> {
      for (let tries = 0; tries < 600; tries++) {
        const { body } = await service().request('GET', `/api/transactions/${id}`)
        if (body.status !== 'pending') return body
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
      throw new Error(`${id} has no outcome`)
    }

    /** An application with 8,000 of earnings, and its owner. */
    async function openOwned(): Promise<{ market: Market; owner: Buyer; path: string }> {
      const market = await openMarket(service(), { price: { per_row: '2000' } })
      const owner = makeBuyer()
      const path = `/api/apps/${market.appId}`
      const body = { owner_address: owner.address }
      await service().request('PATCH', path, { body, headers: service().operator })
      const buyer = await createFundedBuyer(service())
      await buyer.buy(service(), list({ root: market.root, limit: 5 }))
      return { market, owner, path }
    }

    test('a deposit asks for exactly its amount, is the balance of the wallet that is named, whoever paid, and repeated answers the same', async () => {
      const [payer, owner] = [await createFundedBuyer(service()), makeBuyer()]
      const asked = depositing(owner.address, '5000')
      const required = await quote(service(), asked)
      expect(parseEntry(required).amount).toBe('5000')
      for (const entry of required.body.accepts) expect(entry.maxAmountRequired).toBe('5000')
      const header = await payer.payV2(required)
      const first = await ask(service(), asked, header)
      expect(first.status, first.text).toBe(200)
      expect(first.body).toMatchObject({
        payer: payer.address,
        amount: '5000',
        entry: { kind: 'deposit', amount: '5000', balance_after: '5000' },
      })
      expect(first.body.entry.reference).toBe(first.body.payment_id)
      expect(first.headers.get('x-receipt-id')).toBeNull()
      expect(first.headers.get('payment-response')).not.toBeNull()
      const again = await Promise.all([1, 2, 3].map(() => ask(service(), asked, header)))
      for (const reply of again) {
        expect(reply.text).toBe(first.text)
        expect(reply.headers.get('idempotent-replayed')).toBe('true')
      }
      expect(await readBalance(service(), owner.address)).toBe(5_000n)
      expect(await readBalance(service(), payer.address)).toBe(0n)
      expect(await readChainBalance(service(), payer.address)).toBe(99_995_000n)
      const { height, sequence } = first.body.entry
      const proof = `/api/apps/system/chain/proof?height=${height}&sequence=${sequence}`
      expect((await service().request('GET', proof)).status).toBe(200)
      expect(await awaitTransaction(first.body.payment_id)).toMatchObject({
        ...{ kind: 'deposit', status: 'confirmed', from: payer.address, app_id: null },
      })
    })

    test('one payment is one deposit: of eight wallets that it is brought to at once, one has its money', async () => {
      const payer = await createFundedBuyer(service())
      const wallets = Array.from({ length: 8 }, () => makeBuyer().address)
      const required = await quote(service(), depositing(wallets[0] ?? '', '4000'))
      // Version 1 says no quote, so that the same bytes fit every one of them.
      const header = await payer.payV1(required)
      const replies = await Promise.all(
        wallets.map((address) => ask(service(), depositing(address, '4000'), header)),
      )
      expect(replies.filter(({ status }) => status === 200)).toHaveLength(1)
      for (const { status } of replies) expect([200, 409, 503]).toContain(status)
      const balances = await Promise.all(wallets.map((address) => readBalance(service(), address)))
      expect(balances.reduce((sum, one) => sum + one, 0n)).toBe(4_000n)
      const settled = await ask(service(), depositing(payer.address, '4000'), header)
      expect([settled.status, settled.body.code]).toEqual([409, 'PAYMENT_ALREADY_USED'])
      await expectBalanced(service())
    })

    test('a payment of another amount, or one that bought something, is no deposit', async () => {
      const payer = await createFundedBuyer(service())
      const market = await openMarket(service(), { price: { per_row: '1000' } })
      const reading = list({ root: market.root, limit: 4 })
      const bought = await payer.payV1(await quote(service(), reading))
      expect((await ask(service(), reading, bought)).status).toBe(200)
      const used = await ask(service(), depositing(payer.address, '4000'), bought)
      expect([used.status, used.body.code]).toEqual([409, 'PAYMENT_ALREADY_USED'])
      const required = await quote(service(), depositing(payer.address, '6000'))
      for (const value of ['5999', '6001']) {
        const header = await payer.payV1(required, { authorization: { value } })
        const refused = await ask(service(), depositing(payer.address, '6000'), header)
        expect(refused.status, refused.text).toBe(402)
      }
      expect(await readBalance(service(), payer.address)).toBe(0n)
    })

    test('an authorization that somebody else handed to the chain is the balance of its payer, and of nobody who read it there', async () => {
      const [payer, thief] = [await createFundedBuyer(service()), makeBuyer()]
      const { devnet, service: parts } = service().running
      if (devnet === undefined) throw new Error('this needs the devnet')
      const required = await quote(service(), depositing(payer.address, '7000'))
      const header = await payer.payV1(required)
      const body = JSON.parse(Buffer.from(header['x-payment'] ?? '', 'base64').toString())
      const [method] = parts.payments.ports.methods
      if (method === undefined) throw new Error('no network')
      const { authorization, signature } = body.payload
      const settled = await method.facilitator.settle(
        `transfer:wd_${'0'.repeat(32)}`,
        {
          ...{ version: 1, network: method.network.id, scheme: 'exact', receiptForm: 'base64' },
          payload: {
            from: authorization.from.toLowerCase(),
            to: authorization.to.toLowerCase(),
            value: BigInt(authorization.value),
            validAfter: BigInt(authorization.validAfter),
            validBefore: BigInt(authorization.validBefore),
            nonce: authorization.nonce,
            signature,
          },
        },
        {
          ...{ network: method.network, amount: 7_000n, quoteId: '', expiresAt: 0 },
          maxTimeoutSeconds: 300,
        },
      )
      expect(settled.state).toBe('settled')
      const stolen = await ask(service(), depositing(thief.address, '7000'), header)
      expect(stolen.status, stolen.text).toBe(402)
      expect(await readBalance(service(), thief.address)).toBe(0n)
      expect(await readBalance(service(), payer.address)).toBe(7_000n)
      // The transaction above is of no claim and of no transfer, which is what audit looks for.
      await service().database.execute(
        sql`DELETE FROM operations.transaction_journal WHERE id = ${`transfer:wd_${'0'.repeat(32)}`}`,
      )
    })

    test('a deposit can be a transfer of the payer, by its hash', async () => {
      const [payer, owner] = [await createFundedPayer(service()), makeBuyer()]
      const asked = depositing(owner.address, '3000')
      const proof = await pay(service(), payer, asked)
      const reply = await ask(service(), asked, proof)
      expect(reply.status, reply.text).toBe(200)
      expect((await ask(service(), asked, proof)).text).toBe(reply.text)
      expect(await readBalance(service(), owner.address)).toBe(3_000n)
      const { payTo } = findNativeEntry(await quote(service(), asked))
      expect(payTo).not.toBe(owner.address)
    })

    test.each([
      ['0', 400],
      ['-1', 400],
      ['1.5', 400],
      ['1e4', 400],
      ['999', 400],
      ['1000', 402],
      ['1000000000000000', 402],
      ['1000000000000001', 400],
      [`${2n ** 256n}`, 400],
      [1000.5, 400],
      [null, 400],
    ])('a deposit of %s is answered %i before anybody pays', async (amount, status) => {
      const body = { amount }
      const path = `/api/wallets/${makeBuyer().address}/deposit`
      const reply = await service().request('POST', path, { body })
      expect(reply.status, reply.text).toBe(status)
      const nobody = await service().request('POST', `/api/wallets/0x${'0'.repeat(40)}/deposit`, {
        body: { amount: '1000' },
      })
      expect(nobody.status).toBe(400)
    })

    test('a withdrawal needs the signature of its own wallet, each once; neither another wallet nor the operator has it', async () => {
      const [owner, thief] = [await createDepositor('2000'), makeBuyer()]
      const path = `/api/wallets/${owner.address}/withdraw`
      const body = { amount: '500', destination: thief.address }
      expect((await service().request('POST', path, { body })).status).toBe(401)
      expect((await withdrawFrom(owner.address, thief, { body })).status).toBe(403)
      const byOperator = await service().request('POST', path, {
        body,
        headers: service().operator,
      })
      expect(byOperator.status).toBe(403)
      const market = await openMarket(service(), {})
      const byKey = await service().request('POST', path, { body, headers: market.headers })
      expect(byKey.status).toBe(403)
      const raw = JSON.stringify({ amount: '500' })
      const timestamp = Math.floor(service().world.now() / 1000)
      const headers = await makeTestWallet(owner.account).sign({
        ...{ origin: service().url, method: 'POST', path, body: raw, timestamp },
      })
      const sent = await Promise.all(
        [1, 2, 3, 4].map(() => service().request('POST', path, { raw, headers })),
      )
      expect(sent.map(({ status }) => status).sort()).toEqual([202, 401, 401, 401])
      const changed = await service().request('POST', path, {
        ...{ raw: JSON.stringify({ amount: '600' }), headers },
      })
      expect(changed.status).toBe(401)
      const taken = sent.find(({ status }) => status === 202)
      expect((await awaitTransaction(taken?.body.withdrawal_id)).to).toBe(owner.address)
      expect(await readBalance(service(), owner.address)).toBe(1_500n)
      expect(await readChainBalance(service(), thief.address)).toBe(0n)
    })

    test('a withdrawal leaves the balance at once, is pending until the chain has it, and is then at its destination', async () => {
      const owner = await createDepositor('5000')
      const target = makeBuyer().address
      const reply = await withdraw(owner, { amount: 1200, destination: target })
      expect(reply.status, reply.text).toBe(202)
      expect(reply.body).toMatchObject({
        ...{ amount: '1200', destination: target, status: expect.stringMatching(/pending|paid/) },
        entry: { kind: 'withdrawal', amount: '-1200', balance_after: '3800' },
      })
      const during = await readWallet(owner.address)
      expect(during.available).toBe('3800')
      expect(['0', '1200']).toContain(during.pending)
      expect(await awaitTransaction(reply.body.withdrawal_id)).toMatchObject({
        ...{ kind: 'withdrawal', status: 'confirmed', to: target, amount: '1200' },
      })
      expect(await readWallet(owner.address)).toMatchObject({ available: '3800', pending: '0' })
      expect(await readChainBalance(service(), target)).toBe(1_200n)
      const entries = await askSigned(service(), makeTestWallet(owner.account), {
        ...{ method: 'GET', path: `/api/wallets/${owner.address}/entries` },
      })
      expect(entries.body.entries.map(({ kind }: Json) => kind)).toEqual(['withdrawal', 'deposit'])
    })

    test.each([
      [{ amount: '0' }, 400],
      [{ amount: '-5' }, 400],
      [{ amount: '99' }, 400],
      [{ amount: '100.5' }, 400],
      [{ amount: `${2n ** 64n}` }, 400],
      [{ amount: `${10n ** 15n + 1n}` }, 400],
      [{}, 400],
      [{ amount: '100', destination: `0x${'0'.repeat(40)}` }, 400],
      [{ amount: '100', destination: 'me' }, 400],
      [{ amount: '100', network: 'eip155:1' }, 409],
      [{ amount: '1001' }, 409],
      [{ amount: '100', idempotency_key: '' }, 400],
      [{ amount: '100', idempotency_key: 'a b' }, 400],
    ])(
      'the withdrawal %j of a balance of 1000 is refused with %i, and takes nothing',
      async (body, status) => {
        const owner = await createDepositor('1000')
        const reply = await withdraw(owner, body)
        expect(reply.status, reply.text).toBe(status)
        expect(await readWallet(owner.address)).toMatchObject({ available: '1000', pending: '0' })
      },
    )

    test('with one Idempotency-Key a withdrawal is made once, however it is sent, and another one with that key is 409', async () => {
      const owner = await createDepositor('3000')
      const header = { 'idempotency-key': 'first' }
      const body = { amount: '1000' }
      const replies = await Promise.all([
        ...[1, 2, 3].map(() => withdraw(owner, body, header)),
        withdraw(owner, { ...body, idempotency_key: 'first' }),
        withdraw(owner, {
          ...{ ...body, idempotency_key: 'first' },
          destination: owner.account.address,
        }),
      ])
      for (const reply of replies) expect(reply.status, reply.text).toBe(202)
      expect(new Set(replies.map(({ body: one }) => one.withdrawal_id)).size).toBe(1)
      expect(new Set(replies.map(({ body: one }) => JSON.stringify(one.entry))).size).toBe(1)
      for (const other of [
        { amount: '1001' },
        { amount: '1000', destination: makeBuyer().address },
        { amount: '1000', network: 'eip155:1' },
      ]) {
        const inBody = await withdraw(owner, { ...other, idempotency_key: 'first' })
        expect([inBody.status, inBody.body.code], JSON.stringify(other)).toEqual([409, 'CONFLICT'])
        const inHeader = await withdraw(owner, other, header)
        expect([inHeader.status, inHeader.body.code]).toEqual([409, 'IDEMPOTENCY_KEY_USED'])
      }
      const both = await withdraw(
        owner,
        { ...body, idempotency_key: 'b' },
        { 'idempotency-key': 'a' },
      )
      expect(both.status).toBe(400)
      const stranger = await createDepositor('1000')
      const own = await withdraw(stranger, body, header)
      expect(own.body.withdrawal_id).not.toBe(replies[0]?.body.withdrawal_id)
      await awaitTransaction(replies[0]?.body.withdrawal_id)
      await awaitTransaction(own.body.withdrawal_id)
      expect(await readBalance(service(), owner.address)).toBe(2_000n)
      expect(await readChainBalance(service(), owner.address)).toBe(1_000n)
    })

    test('P19: of many withdrawals and deposits at once a balance gives exactly what it has, and is never negative', async () => {
      const owner = await createDepositor('1000')
      const payer = await createFundedBuyer(service())
      const deposits = Array.from({ length: 3 }, () =>
        payer.buy(service(), depositing(owner.address, '1000')),
      )
      const asked = Array.from({ length: 40 }, () => withdraw(owner, { amount: '450' }))
      const replies = await Promise.all(asked)
      for (const reply of await Promise.all(deposits)) expect(reply.status, reply.text).toBe(200)
      const later = await Promise.all(
        Array.from({ length: 14 }, () => withdraw(owner, { amount: '450' })),
      )
      const taken = [...replies, ...later].filter(({ status }) => status === 202)
      for (const { status, body } of [...replies, ...later])
        if (status !== 202) expect(body.code).toBe('BALANCE_TOO_LOW')
      // 4,000 in all: eight times 450, and 400 stays.
      expect(taken).toHaveLength(8)
      for (const { body } of taken) await awaitTransaction(body.withdrawal_id)
      expect(await readWallet(owner.address)).toMatchObject({ available: '400', pending: '0' })
      expect(await readChainBalance(service(), owner.address)).toBe(3_600n)
      await expectBalanced(service())
    })

    test("an application's deposit is on its balance beside what it earned, and is no earning", async () => {
      const { market, path } = await openOwned()
      const payer = await createFundedBuyer(service())
      const raw = JSON.stringify({ amount: '2500' })
      const asked = { method: 'POST', path: `${path}/wallet/deposit`, raw, headers: market.headers }
      const stranger = await service().request('POST', asked.path, { raw })
      expect(stranger.status).toBe(401)
      const reply = await payer.buy(service(), asked)
      expect(reply.status, reply.text).toBe(200)
      expect(reply.body.entry).toMatchObject({ amount: '2500', balance_after: '10500' })
      expect(await readEarnings(service(), market)).toBe(10_500n)
      const options = { headers: market.headers }
      const info = await service().request('POST', `${path}/payout/info`, { ...options, body: {} })
      expect(info.body).toMatchObject({ available_balance: '10500', lifetime_earned: '8000' })
      const all = await service().request('GET', `${path}/transactions`, options)
      expect(all.body.transactions[0]).toMatchObject({
        ...{ id: reply.body.payment_id, kind: 'deposit', app_id: market.appId, amount: '2500' },
      })
      const statement = await service().request('GET', `${path}/billing/statement`, options)
      expect(statement.body).toMatchObject({ other: '2500', closing_balance: '10500' })
      expect((await readAccounts(service())).get(`app:${market.appId}`)).toBe(10_500n)
    })

    test("a stolen key withdraws an application's balance to where payouts go and nowhere else; the owner's signature sends it anywhere, and what is locked stays", async () => {
      const { market, owner, path } = await openOwned()
      const thief = makeBuyer()
      const post = (body: object, headers: Record<string, string> = {}) =>
        service().request('POST', `${path}/wallet/withdraw`, {
          ...{ body, headers: { ...market.headers, ...headers } },
        })
      const stolen = await post({ amount: '1000', destination: thief.address })
      expect([stolen.status, stolen.body.code]).toEqual([409, 'PAYOUT_NOT_POSSIBLE'])
      const chosen = await service().request('POST', `${path}/payout/settings`, {
        ...{ body: { payout_destination: thief.address }, headers: market.headers },
      })
      expect(chosen.body.pending_destination.address).toBe(thief.address)
      const early = await post({ amount: '1000', destination: thief.address })
      expect([early.status, early.body.code]).toEqual([409, 'PAYOUT_NOT_POSSIBLE'])
      const operator = await service().request('POST', `${path}/wallet/withdraw`, {
        ...{ body: { amount: '1000', destination: thief.address }, headers: service().operator },
      })
      expect(operator.status).toBe(409)
      const key = { 'idempotency-key': 'monday' }
      const own = await post({ amount: '1000' }, key)
      expect(own.status, own.text).toBe(202)
      expect(own.body.destination).toBe(owner.address)
      expect((await post({ amount: '1000' }, key)).body.entry).toEqual(own.body.entry)
      await service().request('POST', `${path}/payout/settings`, {
        ...{ body: { locked_balance: '5000' }, headers: service().operator },
      })
      expect((await post({ amount: '2001' })).body.code).toBe('BALANCE_TOO_LOW')
      const target = makeBuyer().address
      const signed = (body: object, by: Buyer) =>
        askSigned(service(), makeTestWallet(by.account), {
          ...{ method: 'POST', path: `${path}/wallet/withdraw`, body },
        })
      expect((await signed({ amount: '2000', destination: target }, thief)).status).toBe(401)
      const sent = await signed({ amount: '2000', destination: target }, owner)
      expect(sent.status, sent.text).toBe(202)
      const info = await service().request('POST', `${path}/payout/info`, {
        ...{ body: {}, headers: market.headers },
      })
      expect(info.body).toMatchObject({ available_balance: '0', lifetime_paid: '0' })
      await awaitTransaction(own.body.withdrawal_id)
      await awaitTransaction(sent.body.withdrawal_id)
      expect(await readChainBalance(service(), target)).toBe(2_000n)
      expect(await readChainBalance(service(), thief.address)).toBe(0n)
      const payouts = await service().request('GET', `${path}/payouts`, {
        headers: market.headers,
      })
      expect(payouts.body.payouts).toEqual([])
    })

    test('audit finds all of it equal, names a deposit that was turned to another wallet, and a rebuild makes the same', async () => {
      const thief = makeBuyer().address
      await service().whileStopped(async (config) => {
        const report = await audit(config, () => undefined)
        expect(report.difference).toBeUndefined()
        expect(report.equal).toBe(true)
        const copies = await openCopies(config)
        try {
          await copies.harmed(async (database, harmed) => {
            await database.execute(sql`
              UPDATE operations.claim SET terms = regexp_replace(terms, 'wallet:0x[0-9a-f]+', ${`wallet:${thief}`})
              WHERE operation = 'deposit' AND terms IS NOT NULL`)
            const { difference } = await audit(harmed, () => undefined)
            expect(difference).toMatchObject({ field: 'terms', found: `wallet:${thief}` })
          })
        } finally {
          await copies.close()
        }
        expect(await rebuild(config, () => undefined)).toMatchObject({ equal: true })
      })
      await expectBalanced(service())
    })
  },
  { devnet: true },
)
