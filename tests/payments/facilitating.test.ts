import type { AddressInfo, Server } from 'node:net'
import { x402Client } from '@x402/core/client'
import { HTTPFacilitatorClient } from '@x402/core/server'
import { ExactEvmScheme as ExactEvmClient } from '@x402/evm/exact/client'
import { ExactEvmScheme } from '@x402/evm/exact/server'
import { paymentMiddleware, x402ResourceServer } from '@x402/express'
import { wrapFetchWithPayment } from '@x402/fetch'
import express from 'express'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { expect, test } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { createFundedBuyer, makeBuyer, readBalance } from '../support/buyer.ts'
import { expectBalanced, readChainBalance } from '../support/market.ts'
import { withService } from '../support/per-engine.ts'
import { askSigned, makeTestWallet } from '../support/wallet.ts'
import { facilitator, makeAddress, makeOtherServer } from './other-servers.ts'

withService(
  (service) => {
    const token = () => service().running.devnet?.token ?? ''
    const { makeRequirements, sign, post } = makeOtherServer(service)
    const count = async (outcome: string) => {
      const { text } = await service().request('GET', '/metrics')
      const [, value = '0'] =
        new RegExp(`facilitated_total{outcome="${outcome}"[^}]*} (\\d+)`).exec(text) ?? []
      return Number(value)
    }

    test('a stock Express server sells through this facilitator to a stock client: the money goes to its payee, and none of it is in our books', async () => {
      const app = await service().createApp()
      const payTo = makeAddress()
      const auth = { authorization: `Bearer ${app.key}` }
      const client = new HTTPFacilitatorClient({
        url: `${service().url}/api/payments`,
        createAuthHeaders: async () => ({ verify: auth, settle: auth, supported: auth }),
      })
      const resourceServer = new x402ResourceServer(client).register(
        'eip155:84532',
        new ExactEvmScheme(),
      )
      const price = { asset: token(), amount: '2500', extra: { name: 'USDC', version: '2' } }
      const accepts = { scheme: 'exact', network: 'eip155:84532', payTo, price } as const
      const shop = express()
      shop.use(
        paymentMiddleware(
          { 'GET /tea': { accepts, description: 'Tea', mimeType: 'application/json' } },
          resourceServer,
        ),
      )
      shop.use((_, response) => void response.type('application/json').send('{"tea":"green"}'))
      const listening = await new Promise<Server>((resolve) => {
        const server = shop.listen(0, '127.0.0.1', () => resolve(server))
      })
      try {
        const { port } = listening.address() as AddressInfo
        const account = privateKeyToAccount(generatePrivateKey())
        await service().running.devnet?.faucet(account.address, 10_000n)
        const pay = wrapFetchWithPayment(
          fetch,
          new x402Client().register('eip155:84532', new ExactEvmClient(account)),
        )
        const bought = await pay(`http://127.0.0.1:${port}/tea`)
        expect([bought.status, await bought.text()]).toEqual([200, '{"tea":"green"}'])
        expect(await readChainBalance(service(), payTo)).toBe(2_500n)
        expect(await readChainBalance(service(), account.address.toLowerCase())).toBe(7_500n)
        expect(await readBalance(service(), account.address.toLowerCase())).toBe(0n)
        await expectBalanced(service())
        expect(await count('settled')).toBe(1)
        const { text } = await service().request('GET', '/metrics')
        expect(text).toMatch(/facilitated_gas_total{network="eip155:84532"} 0\.0*[1-9]/)
      } finally {
        listening.close()
      }
    })

    test('a payment that does not fit, or that this facilitator does not serve, is refused before it costs gas', async () => {
      const app = await service().createApp()
      const payTo = makeAddress()
      const buyer = await createFundedBuyer(service(), 5_000n)
      const requirements = makeRequirements(2, payTo)
      const payload = await sign(buyer, 2, requirements)
      const reasons: string[] = []
      for (const [changed, paid] of [
        [{ payTo: makeAddress() }, payload],
        [{ amount: '999' }, payload],
        [{ asset: makeAddress() }, payload],
        [{ network: 'eip155:1' }, payload],
        [{ scheme: 'upto' }, payload],
        [{ payTo: 'nobody' }, payload],
        [{ amount: '1e3' }, payload],
        [{ amount: '400' }, await sign(buyer, 2, makeRequirements(2, payTo, '400'))],
        [{}, await sign(makeBuyer(), 2, requirements)],
      ] as const) {
        const asked = { ...requirements, ...changed }
        const [verified, settled] = [
          (await post('verify', app, [paid, asked])).body,
          (await post('settle', app, [paid, asked])).body,
        ]
        expect([verified.isValid, settled.success, settled.transaction]).toEqual([false, false, ''])
        expect(verified.invalidReason).toBe(settled.errorReason)
        reasons.push(settled.errorReason)
      }
      expect(reasons).toEqual([
        ...['mismatch', 'mismatch', 'unsupported_asset', 'invalid_network', 'unsupported_scheme'],
        ...[
          'invalid_payment_requirements',
          'invalid_payment_requirements',
          'below_minimum_payment',
        ],
        'insufficient_balance',
      ])
      expect((await post('settle', undefined, [payload, requirements])).status).toBe(401)
      expect((await post('verify', undefined, [payload, requirements])).status).toBe(401)
      expect(await readChainBalance(service(), payTo)).toBe(0n)
    })

    test('a payment to this service itself is a deposit as before, and needs no key', async () => {
      const own = service().running.service.payments.ports.methods[0]?.network.payTo ?? ''
      const buyer = await createFundedBuyer(service(), 5_000n)
      const requirements = makeRequirements(2, own, '3000')
      const payload = await sign(buyer, 2, requirements)
      const { body } = await post('settle', undefined, [payload, requirements])
      expect(body).toMatchObject({ success: true, payer: buyer.address })
      expect(await readBalance(service(), buyer.address)).toBe(3_000n)
      await expectBalanced(service())
    })

    test('an authorization that paid somebody else is nobody’s balance here, whatever its requirements say, also once it is over', async () => {
      const [payTo, app, buyer] = [
        makeAddress(),
        await service().createApp(),
        await createFundedBuyer(service(), 5_000n),
      ]
      const requirements = makeRequirements(2, payTo)
      const payload = await sign(buyer, 2, requirements)
      expect((await post('settle', app, [payload, requirements])).body.success).toBe(true)
      const ours = makeRequirements(2, service().running.devnet?.network.payTo ?? '')
      const claimed = structuredClone(payload)
      claimed.accepted.payTo = ours.payTo
      const lifeMs = 2 * 3_600_000
      for (const ms of [0, lifeMs]) {
        service().world.advance(ms)
        const [plain, changed] = [
          await post('settle', app, [payload, ours]),
          await post('settle', app, [claimed, ours]),
        ]
        service().world.advance(-ms)
        expect([plain.body.success, changed.body.success]).toEqual([false, false])
      }
      expect(await readBalance(service(), buyer.address)).toBe(0n)
      expect(await readChainBalance(service(), payTo)).toBe(1_000n)
      await expectBalanced(service())
    })

    test('a key that a wallet granted through an application is none of its keys: others are not settled for it', async () => {
      const app = await service().createApp()
      const path = `/api/apps/${app.appId}/authorizations`
      const body = { grantee: 'an agent', spend_limit: '1' }
      const granted = await askSigned(service(), makeTestWallet(), { method: 'POST', path, body })
      const own = await service().request('POST', path, { body, headers: app.headers })
      const requirements = makeRequirements(2, makeAddress())
      const paid = [await sign(makeBuyer(), 2, requirements), requirements] as const
      for (const [key, status] of [
        [granted.body.user_key, 401],
        [own.body.user_key, 200],
      ] as const)
        for (const ask of ['verify', 'settle']) {
          const by = { ...app, headers: { 'x-user-key': key } }
          expect((await post(ask, by, paid)).status, ask).toBe(status)
        }
    })

    test('the audit finds payments for other servers equal, and names one whose bytes are of another authorization', async () => {
      const [payTo, app, buyer] = [
        makeAddress(),
        await service().createApp(),
        await createFundedBuyer(service(), 5_000n),
      ]
      const requirements = makeRequirements(2, payTo)
      const paid = [await sign(buyer, 2, requirements), requirements] as const
      expect((await post('settle', app, paid)).body.success).toBe(true)
      await service().whileStopped(async (config) => {
        expect(await audit(config, () => undefined)).toMatchObject({ equal: true })
        const rename = (from: string, to: string) =>
          service().database.query<{ id: string }>(sql`
            UPDATE operations.transaction_journal SET id = ${to} || substr(id, ${from.length + 1}::int4)
            WHERE id = (SELECT id FROM operations.transaction_journal WHERE id LIKE ${`${from}%`} ORDER BY nonce DESC LIMIT 1) RETURNING id`)
        const [row] = await rename('facilitated_', 'facilitated_x')
        expect((await audit(config, () => undefined)).difference).toMatchObject({
          ...{ what: 'table operations.transaction_journal', field: 'raw', row: row?.id },
          expected: row?.id,
        })
        await rename('facilitated_x', 'facilitated_')
      })
    })
  },
  { devnet: true, config: { facilitator } },
)
