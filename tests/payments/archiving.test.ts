import { expect, test } from 'vitest'
import { ask, createFundedBuyer, depositing, list, makeBuyer, quote } from '../support/buyer.ts'
import { expectBalanced, openMarket, readEarnings } from '../support/market.ts'
import { withService } from '../support/per-engine.ts'
import { askSigned, makeTestWallet } from '../support/wallet.ts'
import { runWhileSettling } from './while-settling.ts'

withService(
  (service) => {
    type Headers = Readonly<Record<string, string>>
    const send = (method: string, path: string, headers: Headers) =>
      service().request(method, path, { headers })
    const patch = (path: string, headers: Headers, body: object) =>
      service().request('PATCH', path, { headers, body })

    /** An application that has sold something, and its owner. */
    async function scene() {
      const market = await openMarket(service(), { price: { per_row: '1000' } })
      const owner = makeBuyer()
      const path = `/api/apps/${market.appId}`
      await patch(path, service().operator, { owner_address: owner.address })
      const asked = list({ root: market.root, limit: 3 })
      const bought = await (await createFundedBuyer(service())).buy(service(), asked)
      expect(bought.status, bought.text).toBe(200)
      return { market, owner, path, asked }
    }

    test('an archived application keeps its money within reach of its owner, its Admin keys and the operator alone', async () => {
      const { market, owner, path } = await scene()
      expect((await send('DELETE', path, market.headers)).status).toBe(200)
      const signed = async (method: string, where: string) =>
        makeTestWallet(owner.account).sign({
          method,
          path: where,
          body: '',
          timestamp: Math.floor(service().world.now() / 1000),
          origin: service().url,
        })
      for (const [method, of] of [
        ['GET', 'wallet'],
        ['GET', 'wallet/entries'],
        ['POST', 'payout/info'],
      ] as const) {
        const where = `${path}/${of}`
        for (const headers of [market.headers, service().operator, await signed(method, where)])
          expect((await send(method, where, headers)).status, where).toBe(200)
        for (const headers of [{}, await stranger()])
          expect((await send(method, where, headers)).status, where).toBe(404)
      }
      expect(await readEarnings(service(), market)).toBe(2400n)
      const { body } = await send('POST', `${path}/payout/info`, market.headers)
      expect(body).toMatchObject({ available_balance: '2400', payout_destination: owner.address })
    })

    test('what an archived application let others spend ends with it, and a wallet revokes what it let others spend through it', async () => {
      const { market, path, asked } = await scene()
      const spender = await service().createApp()
      const at = `/api/apps/${spender.appId}`
      const post = (where: string, headers: Headers, body: object) =>
        service().request('POST', `${at}${where}`, { headers, body })
      const bank = await createFundedBuyer(service())
      const deposit = {
        ...{ method: 'POST', path: `${at}/wallet/deposit`, raw: '{"amount":"50000"}' },
        headers: spender.headers,
      }
      expect((await bank.buy(service(), deposit)).status).toBe(200)
      expect((await bank.buy(service(), depositing(bank.address, '50000'))).status).toBe(200)
      const limits = { grantee: 'agent', spend_limit: '20000' }
      const granted = await post('/authorizations', spender.headers, limits)
      const wallet = makeTestWallet(bank.account)
      const signed = { method: 'POST', path: `${at}/authorizations` }
      const own = await askSigned(service(), wallet, { ...signed, body: limits })
      const agent = await post('/keys', spender.headers, {
        ...{ permissions: ['Pay'], pay_limits: { spend_allowance: '20000' } },
      })
      const keys = [
        { 'x-user-key': granted.body.user_key },
        { 'x-agent-key': agent.body.key },
        { 'x-user-key': own.body.user_key },
      ]
      const spend = () =>
        Promise.all(
          keys.map(async (headers) => (await ask(service(), { ...asked, headers })).status),
        )
      expect(await spend()).toEqual([200, 200, 200])
      expect((await send('DELETE', at, spender.headers)).status).toBe(200)
      expect(await spend()).toEqual([401, 401, 200])
      const listed = await send('GET', `${at}/authorizations`, spender.headers)
      expect(listed.body.authorizations).toHaveLength(2)
      const foreign = makeTestWallet()
      for (const [who, status] of [
        [foreign, 404],
        [wallet, 200],
      ] as const) {
        const list = { method: 'GET', path: `${at}/authorizations` }
        expect((await askSigned(service(), who, list)).status).toBe(status)
        const end = { method: 'POST', path: `${at}/authorizations/${own.body.id}/revoke` }
        expect((await askSigned(service(), who, end)).status).toBe(status)
      }
      expect(await spend()).toEqual([401, 401, 401])
      expect((await post('/authorizations', spender.headers, limits)).status).toBe(404)
      expect((await patch(at, service().operator, { status: 'active' })).status).toBe(200)
      expect(await spend()).toEqual([200, 200, 401])
      expect((await send('GET', path, market.headers)).status).toBe(200)
      await expectBalanced(service())
    })

    const stranger = async () => (await service().createApp()).headers

    test('a stolen key that archives its application is seen and revoked there, and stays out when it comes back', async () => {
      const { market, owner, path } = await scene()
      const create = { body: { permissions: ['Admin'] }, headers: market.headers }
      const { body: stolen } = await service().request('POST', `${path}/keys`, create)
      const thief = { 'x-app-key': stolen.key }
      expect((await send('DELETE', path, thief)).status).toBe(200)
      const wallet = makeTestWallet(owner.account)
      for (const headers of [{}, await stranger()])
        for (const [method, where] of [
          ['GET', `${path}/keys`],
          ['POST', `${path}/keys/${stolen.key_hash}/revoke`],
        ] as const)
          expect((await send(method, where, headers)).status, where).toBe(404)
      const listed = await askSigned(service(), wallet, { method: 'GET', path: `${path}/keys` })
      const shown = listed.body.keys.find(
        (key: { key_hash: string }) => key.key_hash === stolen.key_hash,
      )
      expect(shown.status).toBe('active')
      const revoke = { method: 'POST', path: `${path}/keys/${stolen.key_hash}/revoke` }
      expect((await askSigned(service(), wallet, revoke)).status).toBe(200)
      expect((await send('POST', `${path}/payout/info`, thief)).status).toBe(401)
      expect((await send('POST', `${path}/payout/info`, market.headers)).status).toBe(200)
      expect((await patch(path, service().operator, { status: 'active' })).status).toBe(200)
      expect((await send('DELETE', path, thief)).status).toBe(401)
    })

    test('the operator alone brings an archived application back, as it was', async () => {
      const { market, path, asked } = await scene()
      await send('DELETE', path, market.headers)
      const back = { status: 'active' }
      expect((await patch(path, market.headers, back)).status).toBe(403)
      expect((await patch(path, {}, back)).status).toBe(404)
      expect((await patch(path, service().operator, { name: 'x' })).status).toBe(404)
      await service().restart()
      const again = await patch(path, service().operator, back)
      expect([again.status, again.body.status]).toEqual([200, 'active'])
      const own = await ask(service(), { ...asked, headers: market.headers })
      expect(own.body.records).toHaveLength(3)
      const bought = await (await createFundedBuyer(service())).buy(service(), asked)
      expect(bought.status, bought.text).toBe(200)
      expect(await readEarnings(service(), market)).toBe(4800n)
      await expectBalanced(service())
    })

    test('an application is not archived while a payment to it is under way, which the refusal names', async () => {
      const { market, path, asked } = await scene()
      const buyer = await createFundedBuyer(service())
      const header = await buyer.payV2(await quote(service(), asked))
      let refused = await send('GET', path, {})
      const before = async () => {
        refused = await send('DELETE', path, market.headers)
      }
      const sold = await runWhileSettling(service(), { before }, () =>
        ask(service(), asked, header),
      )
      expect(sold.status, sold.text).toBe(200)
      expect([refused.status, refused.body.code]).toEqual([409, 'CONFLICT'])
      const id = sold.headers.get('x-payment-id')
      expect(refused.body.details).toMatchObject({ open: { payments: [id] } })
      expect((await send('DELETE', path, market.headers)).status).toBe(200)
    })
  },
  { devnet: true },
)
