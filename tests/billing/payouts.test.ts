import { beforeAll, expect, test } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { rebuild } from '../../packages/server/src/operator/rebuild.ts'
import { payOutDue } from '../../packages/server/src/services/payments/payouts/payouts.ts'
import { Transfers } from '../../packages/server/src/services/payments/transfers/transfers.ts'
import { ask, type Buyer, createFundedBuyer, list, makeBuyer } from '../support/buyer.ts'
import { expectBalanced, type Market, openMarket, readChainBalance } from '../support/market.ts'
import { blockTransfers } from '../support/payer.ts'
import { withService } from '../support/per-engine.ts'
import type { Json, TestReply } from '../support/service.ts'
import { askSigned, makeTestWallet } from '../support/wallet.ts'

const dayMs = 24 * 3_600_000

withService(
  (service) => {
    let buyer: Buyer
    beforeAll(async () => {
      buyer = await createFundedBuyer(service())
    })

    type Seller = { readonly market: Market; readonly owner: Buyer; readonly path: string }

    /** An application that has earned 8,000, and its owner. */
    async function openSeller(): Promise<Seller> {
      const market = await openMarket(service(), { price: { per_row: '2000' } })
      const owner = makeBuyer()
      const path = `/api/apps/${market.appId}`
      const body = { owner_address: owner.address }
      const owned = await service().request('PATCH', path, { body, headers: service().operator })
      expect(owned.status, owned.text).toBe(200)
      const bought = await buyer.buy(service(), list({ root: market.root, limit: 5 }))
      expect(bought.status, bought.text).toBe(200)
      return { market, owner, path }
    }

    const post = ({ market, path }: Seller, what: string, body: object): Promise<TestReply> =>
      service().request('POST', `${path}/payout/${what}`, { body, headers: market.headers })
    const readInfo = async (seller: Seller): Promise<Json> => (await post(seller, 'info', {})).body

    async function postSigned({ path }: Seller, by: Buyer, given: object): Promise<TestReply> {
      const raw = JSON.stringify(given)
      const headers = await makeTestWallet(by.account).sign({
        origin: service().url,
        method: 'POST',
        path: `${path}/payout/settings`,
        body: raw,
        timestamp: Math.floor(service().world.now() / 1000),
      })
      return service().request('POST', `${path}/payout/settings`, { raw, headers })
    }

    const awaitPaidOne = (id: string) =>
      expect
        .poll(async () => (await service().running.service.transfers.find(id))?.state, {
          timeout: 30_000,
        })
        .toBe('paid')

    async function awaitPaid({ market, path }: Seller): Promise<Json[]> {
      const options = { headers: market.headers }
      for (let tries = 0; tries < 600; tries++) {
        const { body } = await service().request('GET', `${path}/payouts`, options)
        if (body.payouts.every((one: Json) => one.status === 'paid')) return body.payouts
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
      throw new Error('a payout has no outcome')
    }

    test.each(['payout', 'withdrawal'])(
      'a %s takes earnings first; what was paid in and sent out is not there for keys that pay, whatever is earned later',
      async (kind) => {
        const sendOut = async (seller: Seller, amount: string) => {
          const { headers } = seller.market
          const body = { amount }
          const withdraw = `${seller.path}/wallet/withdraw`
          const reply =
            kind === 'payout'
              ? await post(seller, 'request', body)
              : await service().request('POST', withdraw, { body, headers })
          expect(reply.status, reply.text).toBe(202)
        }
        const dear = await openMarket(service(), { price: { per_row: '1000' } })
        const prepay = async ({ market, path }: Seller, amount: string) => {
          const raw = JSON.stringify({ amount })
          const deposit = { method: 'POST', path: `${path}/wallet/deposit`, raw }
          const paid = await buyer.buy(service(), { ...deposit, headers: market.headers })
          expect(paid.status, paid.text).toBe(200)
        }
        const openPaying = async () => {
          const seller = await openSeller()
          await prepay(seller, '5000')
          const body = { permissions: ['Pay'], pay_limits: {}, name: 'agent' }
          const { headers } = seller.market
          const made = await service().request('POST', `${seller.path}/keys`, { body, headers })
          const pay = async (limit: number) => {
            const headers = { 'x-agent-key': made.body.key }
            const { status, body } = await ask(service(), list({ root: dear.root, limit }), headers)
            return [status, body.details?.limit, body.details?.left]
          }
          return { seller, pay }
        }
        const all = await openPaying()
        await sendOut(all.seller, '12000')
        await buyer.buy(service(), list({ root: all.seller.market.root, limit: 5 }))
        expect(await all.pay(2)).toEqual([403, 'prepaid', '1000'])
        await prepay(all.seller, '3000')
        expect((await all.pay(3))[0]).toBe(200)
        expect(await all.pay(2)).toEqual([403, 'prepaid', '1000'])
        const earned = await openPaying()
        await sendOut(earned.seller, '8000')
        expect((await earned.pay(4))[0]).toBe(200)
        await buyer.buy(service(), list({ root: earned.seller.market.root, limit: 5 }))
        expect(await earned.pay(2)).toEqual([403, 'prepaid', '1000'])
      },
    )

    test('a refund takes earnings first; what of deposits it gave away is not there for keys that pay, whatever is earned later', async () => {
      const dear = await openMarket(service(), { price: { per_row: '1000' } })
      const seller = await openSeller()
      const { path, market } = seller
      const raw = JSON.stringify({ amount: '5000' })
      const deposit = { method: 'POST', path: `${path}/wallet/deposit`, raw }
      const paid = await buyer.buy(service(), { ...deposit, headers: market.headers })
      expect(paid.status, paid.text).toBe(200)
      const { headers } = market
      const agent = { permissions: ['Pay'], pay_limits: {}, name: 'agent' }
      const made = await service().request('POST', `${path}/keys`, { body: agent, headers })
      const pay = async (limit: number) => {
        const by = { 'x-agent-key': made.body.key }
        const { status, body } = await ask(service(), list({ root: dear.root, limit }), by)
        return [status, body.details?.limit, body.details?.left]
      }
      const { sales } = (await service().request('GET', `${path}/sales`, { headers })).body
      const given = await service().request('POST', `${path}/sales/${sales[0].payment_id}/refund`, {
        headers,
        body: {},
      })
      // It earned 8,000 of the 10,000 that it gives back.
      expect([given.status, given.body.amount]).toEqual([200, '10000'])
      await buyer.buy(service(), list({ root: market.root, limit: 5 }))
      expect(await pay(4)).toEqual([403, 'prepaid', '3000'])
      expect((await pay(3))[0]).toBe(200)
      expect(await pay(1)).toEqual([403, 'prepaid', '0'])
    })

    test('earnings are paid out to the owner, once for each request, and every book says so', async () => {
      const seller = await openSeller()
      const { owner, path, market } = seller
      expect(await readInfo(seller)).toMatchObject({
        available_balance: '8000',
        payout_destination: owner.address,
        lifetime_paid: '0',
      })
      const emptied = await openSeller()
      const order = { amount: '3000', idempotency_key: 'november' }
      const asked = await Promise.all([1, 2, 3].map(() => post(seller, 'request', order)))
      for (const reply of asked) expect(reply.status, reply.text).toBe(202)
      expect(new Set(asked.map(({ body }) => body.payout_id)).size).toBe(1)
      const rest = await Promise.all(
        [1, 2, 3].map(() => post(emptied, 'request', { idempotency_key: 'all' })),
      )
      expect(rest.map(({ status, body }) => [status, body.amount])).toEqual(
        [1, 2, 3].map(() => [202, '8000']),
      )
      const other = await post(seller, 'request', { ...order, amount: '3001' })
      expect([other.status, other.body.code]).toEqual([409, 'CONFLICT'])
      const [paid, ...more] = await awaitPaid(seller)
      expect(more).toEqual([])
      expect(paid).toMatchObject({ amount: '3000', destination: owner.address })
      expect(paid.signed_transactions).toEqual([
        { transaction_hash: paid.transaction_hash, signed_at: expect.any(String) },
      ])
      expect(await readChainBalance(service(), owner.address)).toBe(3_000n)
      expect(await readInfo(seller)).toMatchObject({
        available_balance: '5000',
        pending_balance: '0',
        lifetime_earned: '8000',
        lifetime_paid: '3000',
      })
      const found = await service().request('GET', `/api/transactions/${paid.payout_id}`)
      expect(found.body).toMatchObject({
        kind: 'payout',
        status: 'confirmed',
        transaction_hash: paid.transaction_hash,
      })
      const statement = await service().request('GET', `${path}/billing/statement`, {
        headers: market.headers,
      })
      expect(statement.body).toMatchObject({ other: '-3000', closing_balance: '5000' })
      await expectBalanced(service())
    })

    test('F6: of many requests at once no more is paid than was earned and is not locked, and what is locked only grows', async () => {
      const seller = await openSeller()
      const locked = await postSigned(seller, seller.owner, {
        ...{ locked_balance: '4500', min_payout: 1000 },
      })
      expect(locked.status, locked.text).toBe(200)
      expect((await readInfo(seller)).available_balance).toBe('3500')
      const small = await post(seller, 'request', { amount: '999' })
      expect([small.status, small.body.code]).toEqual([409, 'PAYOUT_NOT_POSSIBLE'])
      const asked = await Promise.all(
        Array.from({ length: 12 }, () => post(seller, 'request', { amount: '1000' })),
      )
      const statuses = asked.map(({ status, body }) => (status === 202 ? 'paid' : body.code))
      expect(statuses.filter((one) => one === 'paid')).toHaveLength(3)
      const refused = statuses.filter((one) => one !== 'paid')
      expect(new Set(refused)).toEqual(new Set(['BALANCE_TOO_LOW']))
      const less = await post(seller, 'settings', { locked_balance: '4499' })
      expect([less.status, less.body.details?.field]).toEqual([400, '/locked_balance'])
      await awaitPaid(seller)
      expect(await readChainBalance(service(), seller.owner.address)).toBe(3_000n)
      await expectBalanced(service())
    })

    test('a payout of which nothing was sent is cancelled, by whoever may ask for one, and its money is back exactly once', async () => {
      const seller = await openSeller()
      const { path, market, owner } = seller
      const unblock = await blockTransfers(service(), owner.address)
      const { headers } = market
      const asked = await post(seller, 'request', { amount: '3000' })
      const id = asked.body.payout_id
      const cancel = (by = headers, payout = id) =>
        service().request('POST', `${path}/payout/${payout}/cancel`, { headers: by })
      const theirs = await openMarket(service(), {})
      expect((await cancel(theirs.headers)).status).toBe(401)
      expect((await cancel(headers, 'payout_none')).body.code).toBe('TRANSACTION_NOT_FOUND')
      expect((await readInfo(seller)).available_balance).toBe('5000')
      // The database was restored since, and the network is open no more: the payout may have been sent in the lost life.
      const { ports } = service().running.service.payments
      const noteRestored = (ms: number | null) =>
        service().database.execute(
          sql`UPDATE operations.network_pin SET restored_at_ms = ${ms}::int8`,
        )
      await noteRestored(service().world.now())
      const after = new Transfers({ ...ports, methods: [], log: { warn: () => undefined } })
      const found = await after.find(id)
      if (found === undefined) throw new Error('there is no payout')
      await expect(after.cancel(found)).rejects.toMatchObject({ code: 'CONFLICT' })
      await noteRestored(null)
      const replies = await Promise.all(Array.from({ length: 6 }, () => cancel()))
      for (const reply of replies)
        expect([reply.status, reply.body.status], reply.text).toEqual([200, 'cancelled'])
      const whole = { available_balance: '8000', pending_balance: '0', lifetime_paid: '0' }
      expect(await readInfo(seller)).toMatchObject(whole)
      // A process that died after its decision, before and after the entry, goes on.
      const { transfers } = service().running.service
      const setState = (one: string, state: string) =>
        service().database.execute(
          sql`UPDATE operations.outgoing_transfer SET state = ${state}, reason = 'cancelled' WHERE id = ${one}`,
        )
      await setState(id, 'cancelled')
      await transfers.advance(id)
      const second = (await post(seller, 'request', { amount: '1000' })).body.payout_id
      await setState(second, 'cancelled')
      await transfers.advance(second)
      await unblock()
      for (const one of [id, second]) await transfers.advance(one)
      expect(await readInfo(seller)).toMatchObject(whole)
      const { payouts } = (await service().request('GET', `${path}/payouts`, { headers })).body
      expect(payouts.map(({ status }: Json) => status)).toEqual(['cancelled', 'cancelled'])
      expect(await readChainBalance(service(), owner.address)).toBe(0n)
      await expectBalanced(service())
    })

    test('a payout is either sent or cancelled, however close the two come', async () => {
      const seller = await openSeller()
      const { path, market, owner } = seller
      const ids: string[] = []
      const results = await Promise.all(
        Array.from({ length: 6 }, async () => {
          const { body } = await post(seller, 'request', { amount: '1000' })
          ids.push(body.payout_id)
          const at = `${path}/payout/${body.payout_id}/cancel`
          const { headers } = market
          return (await service().request('POST', at, { headers })).status
        }),
      )
      const paid = BigInt(results.filter((status) => status === 409).length) * 1000n
      const { transfers } = service().running.service
      await expect
        .poll(async () => Promise.all(ids.map(async (id) => (await transfers.find(id))?.state)), {
          timeout: 30_000,
        })
        .toSatisfy((states) => states.every((one: string) => /paid|returned/.test(one)))
      expect(await readChainBalance(service(), owner.address)).toBe(paid)
      expect(await readInfo(seller)).toMatchObject({
        available_balance: String(8000n - paid),
        lifetime_paid: String(paid),
      })
      const late = await post(seller, 'request', { amount: '1000' })
      await awaitPaidOne(late.body.payout_id)
      const at = `${path}/payout/${late.body.payout_id}/cancel`
      const refused = await service().request('POST', at, { headers: market.headers })
      expect([refused.status, refused.body.code]).toEqual([409, 'CONFLICT'])
      await expectBalanced(service())
    })

    test('what a seller wants paid out by itself is paid out once it is as much as the threshold, and once', async () => {
      const seller = await openSeller()
      const settings = { auto_payout_enabled: true, payout_threshold: '8001' }
      expect((await post(seller, 'settings', settings)).status).toBe(200)
      const failures: unknown[] = []
      const run = () =>
        payOutDue(service().running.service, (app, error) => failures.push([app, error]))
      await run()
      expect(await awaitPaid(seller)).toEqual([])
      await post(seller, 'settings', { payout_threshold: '8000' })
      await Promise.all([run(), run()])
      await run()
      expect(await awaitPaid(seller)).toMatchObject([{ amount: '8000' }])
      expect(await readChainBalance(service(), seller.owner.address)).toBe(8_000n)
      await expectBalanced(service())
    })

    test('a change of settings is an entry of the chain, and survives a restart and a rebuild', async () => {
      const seller = await openSeller()
      const changed = await post(seller, 'settings', { min_payout: '777', payout_threshold: 9 })
      const { height, sequence } = changed.body.entry
      const proof = `/api/apps/system/chain/proof?height=${height}&sequence=${sequence}`
      expect((await service().request('GET', proof)).status).toBe(200)
      await service().whileStopped(async (config) => {
        expect(await audit(config, () => undefined)).toMatchObject({ equal: true })
        expect(await rebuild(config, () => undefined)).toMatchObject({ equal: true })
      })
      expect(await readInfo(seller)).toMatchObject({ min_payout: '777', payout_threshold: '9' })
    })

    test('an owner whom a key has named is not trusted sooner by being named again while the operator names the former one', async () => {
      const seller = await openSeller()
      const { owner, path, market } = seller
      const thief = makeBuyer()
      const raw = JSON.stringify({ owner_address: thief.address })
      const signed = await makeTestWallet(thief.account).sign({
        origin: service().url,
        method: 'PATCH',
        path,
        body: raw,
        timestamp: Math.floor(service().world.now() / 1000),
      })
      const headers = { ...market.headers, ...signed }
      const named = await service().request('PATCH', path, { raw, headers })
      expect(named.status, named.text).toBe(200)
      const change = (headers: Record<string, string>, address: string) =>
        service().request('PATCH', path, { body: { owner_address: address }, headers })
      await Promise.all([
        ...Array.from({ length: 5 }, () => change(market.headers, thief.address)),
        change(service().operator, owner.address),
        ...Array.from({ length: 20 }, () => change(market.headers, thief.address)),
      ])
      const info = await readInfo(seller)
      expect(info.payout_destination).toBe(owner.address)
    })

    test('an owner who was replaced by a stolen key takes the application back within a day, by its own signature alone', async () => {
      const seller = await openSeller()
      const { owner, path, market } = seller
      const [mine, theirs] = [makeTestWallet(owner.account), makeTestWallet()]
      const name = (wallet: typeof mine, headers: Record<string, string> = {}) => {
        const body = { owner_address: wallet.address }
        return askSigned(service(), wallet, { method: 'PATCH', path, body, headers })
      }
      const taken = await name(theirs, market.headers)
      expect(taken.body.owner_address, taken.text).toBe(theirs.address)
      // The thief has named another wallet of its own meanwhile.
      const other = makeTestWallet()
      expect((await name(other, market.headers)).body.owner_address).toBe(other.address)
      const list = { method: 'GET', path: `${path}/keys` }
      const { keys } = (await askSigned(service(), mine, list)).body
      const revoke = { method: 'POST', path: `${path}/keys/${keys[0].key_hash}/revoke` }
      expect((await askSigned(service(), mine, revoke)).status).toBe(200)
      const back = await name(mine)
      expect(back.body.owner_address, back.text).toBe(owner.address)
      for (const wallet of [theirs, other])
        expect((await askSigned(service(), wallet, list)).status).toBe(401)
      const info = { method: 'POST', path: `${path}/payout/info`, body: {} }
      expect((await askSigned(service(), mine, info)).body).toMatchObject({
        ...{ payout_destination: owner.address, pending_destination: null },
      })
      // Named by a key, with time enough to see it, the next owner is the owner.
      const made = await service().request('POST', `${path}/keys`, {
        ...{ headers: service().operator, body: { permissions: ['Admin'] } },
      })
      await name(theirs, { 'x-app-key': made.body.key })
      service().world.advance(dayMs + 1_000)
      const late = await askSigned(service(), mine, list)
      const now = await askSigned(service(), theirs, info)
      service().world.advance(-dayMs - 1_000)
      expect([late.status, now.body.payout_destination]).toEqual([401, theirs.address])
    })

    test('a stolen key that archives the application keeps its former owner from nothing', async () => {
      const { owner, path, market } = await openSeller()
      const [mine, theirs] = [makeTestWallet(owner.account), makeTestWallet()]
      const change = (wallet: typeof mine, body: object, headers: Record<string, string> = {}) =>
        askSigned(service(), wallet, { method: 'PATCH', path, body, headers })
      const name = (wallet: typeof mine, headers = {}) =>
        change(wallet, { owner_address: wallet.address }, headers)
      const taken = await name(theirs, market.headers)
      expect(taken.body.owner_address, taken.text).toBe(theirs.address)
      const { headers } = market
      expect((await service().request('DELETE', path, { headers })).status).toBe(200)
      expect((await name(makeTestWallet())).body.code).toBe('APPLICATION_NOT_FOUND')
      expect((await name(theirs)).status, 'changes nothing').toBe(200)
      const more = await change(mine, { owner_address: owner.address, name: 'mine' })
      expect([more.status, more.body.code], more.text).toEqual([404, 'APPLICATION_NOT_FOUND'])
      for (const _answer of ['lost', 'sent again']) {
        const back = await name(mine)
        expect([back.status, back.body.status], back.text).toEqual([200, 'archived'])
      }
      const info = { method: 'POST', path: `${path}/payout/info`, body: {} }
      expect((await askSigned(service(), mine, info)).body).toMatchObject({
        ...{ payout_destination: owner.address, pending_destination: null },
      })
      expect((await askSigned(service(), theirs, info)).status).toBe(404)
      expect((await service().request('GET', path)).status).toBe(404)
    })

    test('an owner whom a key named is the owner at once where the operator names it too', async () => {
      const { owner, path, market } = await openSeller()
      const [mine, next] = [makeTestWallet(owner.account), makeTestWallet()]
      const body = { owner_address: next.address }
      const named = await askSigned(service(), next, {
        ...{ method: 'PATCH', path, body, headers: market.headers },
      })
      expect(named.body.owner_address, named.text).toBe(next.address)
      const confirm = { body, headers: service().operator }
      expect((await service().request('PATCH', path, confirm)).status).toBe(200)
      const info = { method: 'POST', path: `${path}/payout/info`, body: {} }
      expect((await askSigned(service(), next, info)).body).toMatchObject({
        ...{ payout_destination: next.address, pending_destination: null },
      })
      expect((await askSigned(service(), mine, info)).status).toBe(401)
    })

    // The clock of the service is moved: nothing that needs the chain's time may come after this.
    test('a key alone redirects no payout for a day, nor by naming another owner; the owner does so at once', async () => {
      const seller = await openSeller()
      const { owner, path, market } = seller
      const [mine, thief] = [makeBuyer(), makeBuyer()]
      const own = await postSigned(seller, owner, { payout_destination: mine.address })
      expect(own.body).toMatchObject({
        payout_destination: mine.address,
        pending_destination: null,
      })
      const stolen = await post(seller, 'settings', { payout_destination: thief.address })
      expect(stolen.body).toMatchObject({
        payout_destination: mine.address,
        pending_destination: { address: thief.address },
      })
      const undone = await post(seller, 'settings', { payout_destination: mine.address })
      expect(undone.body).toMatchObject({
        payout_destination: mine.address,
        pending_destination: null,
      })

      const another = await openSeller()
      const raw = JSON.stringify({ owner_address: thief.address })
      const signed = await makeTestWallet(thief.account).sign({
        origin: service().url,
        method: 'PATCH',
        path: another.path,
        body: raw,
        timestamp: Math.floor(service().world.now() / 1000),
      })
      const headers = { ...another.market.headers, ...signed }
      const named = await service().request('PATCH', another.path, { raw, headers })
      expect(named.body.owner_address, named.text).toBe(thief.address)
      const early = await postSigned(another, thief, { payout_destination: thief.address })
      expect(early.body).toMatchObject({
        payout_destination: null,
        pending_destination: { address: thief.address },
      })
      const refused = await post(another, 'request', {})
      expect([refused.status, refused.body.code]).toEqual([409, 'PAYOUT_NOT_POSSIBLE'])

      await post(seller, 'settings', { payout_destination: thief.address })
      service().world.advance(dayMs - 60_000)
      // Asked for again, the change has no longer to wait, nor a shorter time.
      await post(seller, 'settings', { payout_destination: thief.address })
      expect((await readInfo(seller)).payout_destination).toBe(mine.address)
      service().world.advance(120_000)
      expect(await readInfo(seller)).toMatchObject({
        payout_destination: thief.address,
        pending_destination: null,
      })
      const { payTo } = service().running.devnet?.network ?? { payTo: '' }
      const ours = await post(seller, 'settings', { payout_destination: payTo })
      expect([ours.status, ours.body.details?.field]).toEqual([400, '/payout_destination'])
      const theirs = await openMarket(service(), {})
      const options = { body: {}, headers: theirs.headers }
      const foreign = await service().request('POST', `${path}/payout/request`, options)
      expect(foreign.status, market.appId).toBe(401)
    })
  },
  { devnet: true },
)
