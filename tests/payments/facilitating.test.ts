import type { AddressInfo, Server } from 'node:net'
import { limits } from '@tollbase/contract/limits'
import { x402Client } from '@x402/core/client'
import { HTTPFacilitatorClient } from '@x402/core/server'
import { ExactEvmScheme as ExactEvmClient } from '@x402/evm/exact/client'
import { ExactEvmScheme } from '@x402/evm/exact/server'
import { paymentMiddleware, x402ResourceServer } from '@x402/express'
import { wrapFetchWithPayment } from '@x402/fetch'
import express from 'express'
import { generatePrivateKey, privateKeyToAccount, privateKeyToAddress } from 'viem/accounts'
import { expect, test } from 'vitest'
import { realWorld } from '../../packages/server/src/base/world.ts'
import type { Database } from '../../packages/server/src/database/database.ts'
import { type SqlStatement, sql } from '../../packages/server/src/database/sql.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { Facilitating } from '../../packages/server/src/services/payments/facilitating/facilitating.ts'
import type { Settlement, Verification } from '../../packages/server/src/x402/facilitator.ts'
import { encodeHex } from '../../packages/server/src/x402/hex.ts'
import { readPresented } from '../../packages/server/src/x402/payment-header.ts'
import type { Requirement, SignedPayment } from '../../packages/server/src/x402/protocol.ts'
import { type Buyer, createFundedBuyer, makeBuyer, readBalance } from '../support/buyer.ts'
import { expectBalanced, readChainBalance } from '../support/market.ts'
import { connectDevnet } from '../support/payer.ts'
import { withService } from '../support/per-engine.ts'
import type { Json, TestApp } from '../support/service.ts'
import { askSigned, makeTestWallet } from '../support/wallet.ts'

const facilitator = {
  access: 'key',
  networks: undefined,
  minimumPayment: 500n,
  settlementsPerDay: 10,
  allSettlementsPerDay: 100,
} as const
const makeAddress = () => privateKeyToAddress(generatePrivateKey()).toLowerCase()

withService(
  (service) => {
    const token = () => service().running.devnet?.token ?? ''
    const at = (path: string) => `/api/payments/${path}`
    /** Requirements of another server, in the words of one version. */
    const makeRequirements = (version: 1 | 2, payTo: string, amount = '1000') => ({
      scheme: 'exact',
      asset: token(),
      payTo,
      maxTimeoutSeconds: 60,
      extra: { name: 'USDC', version: '2' },
      ...(version === 2
        ? { network: 'eip155:84532', amount }
        : {
            network: 'base-sepolia',
            maxAmountRequired: amount,
            resource: 'http://x',
            description: '',
            mimeType: '',
          }),
    })
    /** Signs for another server, as its buyers do. */
    const sign = async (buyer: Buyer, version: 1 | 2, requirements: Json) => {
      const entry = { ...requirements, extra: { ...requirements.extra, chainId: 84532 } }
      const header = Buffer.from(JSON.stringify({ accepts: [entry] })).toString('base64')
      const required = {
        body: { accepts: [entry] },
        headers: new Headers({ 'payment-required': header }),
      } as never
      const signed = version === 2 ? await buyer.payV2(required) : await buyer.payV1(required)
      const [text = ''] = Object.values(signed)
      return JSON.parse(Buffer.from(text, 'base64').toString())
    }
    /** Asks as another server does; `paid` is the payload, and the requirements that it is brought for. */
    const post = async (path: string, app: TestApp | undefined, paid: readonly [Json, Json]) => {
      const [paymentPayload, paymentRequirements] = paid
      const body = { x402Version: paymentPayload.x402Version, paymentPayload, paymentRequirements }
      const headers = app?.headers ?? {}
      return service().request('POST', at(path), { body, headers })
    }
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

    test.each([1, 2] as const)(
      'of many calls with one payment of version %s one alone is told that it is settled',
      async (version) => {
        const app = await service().createApp()
        const payTo = makeAddress()
        const buyer = await createFundedBuyer(service(), 5_000n)
        const requirements = makeRequirements(version, payTo)
        const payload = await sign(buyer, version, requirements)
        const checked = await post('verify', app, [payload, requirements])
        expect(checked.body).toEqual({ isValid: true, payer: buyer.address })
        const replies = await Promise.all(
          Array.from({ length: 5 }, () => post('settle', app, [payload, requirements])),
        )
        replies.push(await post('settle', app, [payload, requirements]))
        const settled = replies.filter(({ body }) => body.success)
        expect(settled.map(({ body }) => [body.network, body.payer])).toEqual([
          [requirements.network, buyer.address],
        ])
        expect(replies.at(-1)?.body).toMatchObject({
          success: false,
          errorReason: 'authorization_used',
        })
        expect(await readChainBalance(service(), payTo)).toBe(1_000n)
        expect(await readBalance(service(), buyer.address)).toBe(0n)
      },
    )

    test('P1: a node that lags behind lets nobody be told once more that a payment is settled', async () => {
      const [app, other] = [await service().createApp(), await service().createApp()]
      const { service: running } = service().running
      const { facilitating: usual } = running
      const { ports } = running.payments
      const methods = ports.methods.map((method) => {
        const verify = async () => ({ ok: true }) as const
        return { ...method, facilitator: { ...method.facilitator, verify } }
      })
      const lagging = new Facilitating({ ...ports, methods }, facilitator)
      const buyer = await createFundedBuyer(service(), 5_000n)
      const requirements = makeRequirements(2, makeAddress())
      const paid = [await sign(buyer, 2, requirements), requirements] as const
      Object.assign(running, { facilitating: lagging })
      const told = []
      for (const by of [app, app, other]) told.push((await post('settle', by, paid)).body.success)
      Object.assign(running, { facilitating: usual })
      expect(told).toEqual([true, false, false])
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

    test('each application has so many settlements a day, and others have theirs', async () => {
      const [app, other] = [await service().createApp(), await service().createApp()]
      const payTo = makeAddress()
      const buyer = await createFundedBuyer(service(), 50_000n)
      const requirements = makeRequirements(2, payTo)
      const settle = async (by: TestApp) =>
        (await post('settle', by, [await sign(buyer, 2, requirements), requirements])).body
      for (let n = 0; n < facilitator.settlementsPerDay; n++)
        expect((await settle(app)).success).toBe(true)
      expect(await settle(app)).toMatchObject({
        success: false,
        errorReason: 'caller_limit_reached',
      })
      expect((await settle(other)).success).toBe(true)
    })

    test('P1: payments of one wallet that wait for their turn take nothing of the day of the server that they pay before they are sent', async () => {
      const app = await service().createApp()
      const requirements = makeRequirements(2, makeAddress())
      const [rich, other] = [
        await createFundedBuyer(service(), 50_000n),
        await createFundedBuyer(service(), 5_000n),
      ]
      const settle = async (buyer: Buyer) =>
        (await post('settle', app, [await sign(buyer, 2, requirements), requirements])).body
      const { database } = service()
      const countTaken = async () => {
        const [row] = await database.query<{ count: string }>(
          sql`SELECT count(*)::text AS count FROM operations.payment_taker WHERE taker LIKE 'asked%'`,
        )
        return Number(row?.count)
      }
      const before = await countTaken()
      const many: Promise<Json>[] = []
      // While none is signed, eight of one wallet are under way.
      await database.transaction(async (tx) => {
        await tx.execute(sql`LOCK TABLE operations.transaction_journal IN EXCLUSIVE MODE`)
        for (let n = 0; n < 2 * facilitator.settlementsPerDay; n++) many.push(settle(rich))
        await expect.poll(countTaken, { timeout: 20_000 }).toBe(before + 8)
        await realWorld.sleep(1_000)
        expect(await countTaken()).toBe(before + 8)
        many.push(settle(other))
        await expect.poll(countTaken, { timeout: 20_000 }).toBe(before + 9)
      })
      const replies = await Promise.all(many)
      expect(replies.at(-1)).toMatchObject({ success: true })
      expect(replies.filter(({ success }) => success)).toHaveLength(facilitator.settlementsPerDay)
      const reasons = replies.filter(({ success }) => !success).map((one) => one.errorReason)
      expect([...new Set(reasons)]).toEqual(['caller_limit_reached'])
      // Nothing of what was refused is still counted as its wallet's.
      const paid = [await sign(rich, 2, requirements), requirements] as const
      const elsewhere = await post('settle', await service().createApp(), paid)
      expect(elsewhere.body).toMatchObject({ success: true })
    })

    test('P1: a network that cannot be reached gives nobody a settlement beyond the limit of a day, nor one that another caller was told is pending', async () => {
      const [app, other] = [await service().createApp(), await service().createApp()]
      const payTo = makeAddress()
      const buyer = await createFundedBuyer(service(), 5_000n)
      const requirements = makeRequirements(2, payTo)
      const paid = [await sign(buyer, 2, requirements), requirements] as const
      const { service: running } = service().running
      const { facilitating: usual } = running
      const { ports } = running.payments
      let isReached = false
      const methods = ports.methods.map((method) => ({
        ...method,
        facilitator: {
          ...method.facilitator,
          // As where the node is lost between the check of a payment and the look for what became of it.
          lookup: async (...given: Parameters<typeof method.facilitator.lookup>) =>
            isReached
              ? method.facilitator.lookup(...given)
              : ({ state: 'pending', reason: 'network_unreachable' } as const),
        },
      }))
      const bounds = { ...facilitator, settlementsPerDay: 0 }
      Object.assign(running, { facilitating: new Facilitating({ ...ports, methods }, bounds) })
      const answers = [await post('settle', app, paid)]
      isReached = true
      for (const by of [other, app]) answers.push(await post('settle', by, paid))
      Object.assign(running, { facilitating: usual })
      expect(answers.map(({ body }) => body.errorReason)).toEqual([
        'settlement_pending',
        'settlement_under_way',
        'caller_limit_reached',
      ])
      expect(await readChainBalance(service(), payTo)).toBe(0n)
    })

    test('P1: what was called pending while the database could not be read is settled for nobody but who asked first', async () => {
      const [app, other] = [await service().createApp(), await service().createApp()]
      const payTo = makeAddress()
      const buyer = await createFundedBuyer(service(), 5_000n)
      const requirements = makeRequirements(2, payTo)
      const paid = [await sign(buyer, 2, requirements), requirements] as const
      const { service: running } = service().running
      const { facilitating: usual } = running
      const { ports } = running.payments
      let isReached = false
      const database: Database = Object.create(ports.database, {
        query: {
          value: async (statement: SqlStatement) => {
            if (!isReached) throw new Error('the connection is lost')
            return ports.database.query(statement)
          },
        },
      })
      Object.assign(running, {
        facilitating: new Facilitating({ ...ports, database }, facilitator),
      })
      // Nobody signed it, so it comes before nobody.
      const thief = makeAddress()
      const stolen = makeRequirements(2, thief)
      const { payload } = paid[0]
      const authorization = { ...payload.authorization, to: thief }
      const forged = { ...paid[0], accepted: stolen, payload: { ...payload, authorization } }
      const answers = [await post('settle', other, [forged, stolen])]
      answers.push(await post('settle', app, paid), await post('settle', other, paid))
      isReached = true
      for (const by of [other, app, other]) answers.push(await post('settle', by, paid))
      Object.assign(running, { facilitating: usual })
      expect(answers.map(({ body }) => body.errorReason ?? body.success)).toEqual([
        'settlement_pending',
        'settlement_pending',
        'settlement_pending',
        'settlement_under_way',
        true,
        'authorization_used',
      ])
      expect(await readChainBalance(service(), payTo)).toBe(1_000n)
    })

    test('P1: a payment that somebody else has sent is sent for no caller beyond its limit, where a reorganisation takes it back, and is told where it stays', async () => {
      const { ports } = service().running.service.payments
      const found = { state: 'pending', transaction: `0x${'7'.repeat(64)}` } as const
      const states = [
        { ...found, reason: 'not_confirmed' },
        { state: 'failed', reason: 'not_sent', final: false },
        { ...found, state: 'settled' },
      ] as const
      let at = 0
      let sent = 0
      const methods = ports.methods.map((method) => ({
        ...method,
        facilitator: {
          ...method.facilitator,
          verify: async () => ({ ok: true }) as const,
          settle: async () => {
            sent += 1
            return { state: 'pending', reason: 'not_confirmed' } as const
          },
          lookup: async () => states[at] ?? states[0],
        },
      }))
      const bounds = { ...facilitator, settlementsPerDay: 0 }
      const facilitating = new Facilitating({ ...ports, methods }, bounds)
      const requirements = makeRequirements(2, makeAddress())
      const paid = readPresented(await sign(makeBuyer(), 2, requirements), 2)
      if ('transaction' in paid) throw new Error('it is signed')
      const answers = []
      for (at of [0, 1, 0, 2])
        answers.push(await facilitating.settle('app:one', paid, requirements))
      expect(answers).toMatchObject([
        { state: 'pending' },
        { refusal: 'caller_limit_reached' },
        { state: 'pending' },
        { state: 'settled' },
      ])
      expect(sent).toBe(0)
    })

    test('what nothing was sent for is no failure of its caller, whatever became of it', async () => {
      const { ports } = service().running.service.payments
      let verdict: Verification = { ok: false, reason: 'expired' }
      let found: Settlement = { state: 'pending', reason: 'network_unreachable' }
      const methods = ports.methods.map((method) => ({
        ...method,
        facilitator: {
          ...method.facilitator,
          verify: async () => verdict,
          settle: async () => ({ state: 'pending', reason: 'not_confirmed' }) as const,
          lookup: async () => found,
        },
      }))
      const facilitating = new Facilitating({ ...ports, methods }, facilitator)
      const requirements = makeRequirements(2, makeAddress())
      const paid = readPresented(await sign(makeBuyer(), 2, requirements), 2)
      if ('transaction' in paid) throw new Error('it is signed')
      const settle = (n: number) => {
        const nonce = `0x${n.toString(16).padStart(64, '0')}`
        const payload = { ...paid.payload, nonce }
        return facilitating.settle('app:one', { ...paid, payload }, requirements)
      }
      const many = Array.from({ length: limits.facilitatedFailedPayersMax }, (_, n) => n)
      for (const n of many) expect(await settle(n)).toMatchObject({ state: 'pending' })
      found = { state: 'failed', reason: 'expired', final: true }
      for (const n of many) expect(await settle(n)).toMatchObject({ state: 'failed' })
      verdict = { ok: true }
      expect(await settle(many.length)).toMatchObject({ state: 'pending' })
    })

    /** A facilitator for other servers by the outcomes that the test says, and payments of so many wallets by number. */
    const openScripted = async (settle: () => Settlement, isReady = () => true) => {
      const { ports } = service().running.service.payments
      const asked: Requirement[] = []
      const methods = ports.methods.map((method) => ({
        ...method,
        facilitator: {
          ...method.facilitator,
          verify: async () => ({ ok: true }) as const,
          awaitTurn: async (_: SignedPayment, requirement: Requirement) => {
            asked.push(requirement)
            return isReady()
          },
          settle: async () => settle(),
          lookup: async () => ({ state: 'failed', reason: 'not_sent', final: false }) as const,
        },
      }))
      const { world } = service()
      const bounds = { ...facilitator, settlementsPerDay: 200, allSettlementsPerDay: 200 }
      const facilitating = new Facilitating({ ...ports, methods, world }, bounds)
      const requirements = makeRequirements(2, makeAddress())
      const paid = readPresented(await sign(makeBuyer(), 2, requirements), 2)
      if ('transaction' in paid) throw new Error('it is signed')
      const random = realWorld.randomBytes(12)
      const bring = async (n: number, { caller = 'app:one', wallet = 0 } = {}) => {
        const nonce = `0x${n.toString(16).padStart(64, '0')}`
        const from = `0x${encodeHex(random).slice(2)}${wallet.toString(16).padStart(16, '0')}`
        const payload = { ...paid.payload, nonce, from }
        const outcome = await facilitating.settle(caller, { ...paid, payload }, requirements)
        return 'refusal' in outcome ? outcome.refusal : outcome.state
      }
      return { bring, asked }
    }
    const inVain: Settlement = {
      state: 'failed',
      reason: 'transaction_reverted',
      final: false,
      wasInVain: true,
    }
    const made = { state: 'settled', transaction: `0x${'7'.repeat(64)}` } as const

    test('P1: wallets that move their money away while payments are under way shut nobody out; after 20 of them, and one more for each ten that were settled, each new one has one payment under way', async () => {
      let outcome: Settlement = inVain
      const { bring, asked } = await openScripted(() => outcome)
      let n = 0
      const bringBy = (wallet: number) => bring(n++, { wallet })
      // Three wallets, each with so many as one has under way before any of them is seen to fail.
      for (let at = 0; at < 24; at++) expect(await bringBy(at % 3)).toBe('failed')
      outcome = made
      for (let at = 0; at < 10; at++) expect(await bringBy(100 + at)).toBe('settled')
      outcome = inVain
      for (let wallet = 3; wallet < limits.facilitatedFailedPayersMax + 1; wallet++)
        expect(await bringBy(wallet)).toBe('failed')
      // A wallet that failed once here has one at a time from then on.
      const listed = asked.map(({ unprovenMax }) => unprovenMax)
      expect(listed.slice(0, 24)).toEqual(
        Array.from({ length: 24 }, (_, at) => (at < 3 ? undefined : 1)),
      )
      expect(listed.slice(24)).toEqual(listed.slice(24).map(() => undefined))
      outcome = made
      expect(await bringBy(200)).toBe('settled')
      expect(asked.at(-1)?.unprovenMax).toBe(1)
      expect(await bring(n++, { wallet: 200, caller: 'app:other' })).toBe('settled')
      expect(asked.at(-1)?.unprovenMax).toBe(undefined)
    })

    test.each(['before', 'after'])(
      'P1: a settlement that waits in vain for others of its payer takes nothing of the day, and leaves no row: it waits %s it is handed over',
      async (when) => {
        let outcome: Settlement = { state: 'pending', reason: 'busy', isUnsent: true }
        const isReady = () => when === 'after' || outcome !== busy
        const busy = outcome
        const { bring } = await openScripted(() => outcome, isReady)
        const readRows = () =>
          service().database.query(
            sql`SELECT identity FROM operations.payment_taker WHERE taker LIKE 'asked%'`,
          )
        const before = await readRows()
        for (let n = 0; n < 250; n++) expect(await bring(n)).toBe('pending')
        expect(await readRows()).toEqual(before)
        // The next process that is asked by somebody else owes it to nobody.
        expect(await bring(0, { caller: 'app:other' })).toBe('pending')
        outcome = made
        expect(await bring(1)).toBe('settled')
      },
    )

    test('a settlement that is given back after midnight gives nothing to the new day', async () => {
      let outcome: Settlement = { state: 'pending', reason: 'not_confirmed' }
      const { bring } = await openScripted(() => outcome)
      const { world } = service()
      const dayMs = 24 * 3_600_000
      for (let n = 0; n < 100; n++) await bring(n)
      const leftMs = dayMs - (world.now() % dayMs)
      world.advance(leftMs)
      outcome = made
      for (let n = 100; n < 300; n++) expect(await bring(n)).toBe('settled')
      outcome = { state: 'failed', reason: 'expired', final: true }
      for (let n = 0; n < 100; n++) expect(await bring(n)).toBe('failed')
      const late = await bring(300)
      world.advance(-leftMs)
      expect(late).toBe('caller_limit_reached')
    })

    test('P1: a caller beyond its limit makes nobody forget what others were told is pending, however much it asks', async () => {
      const { ports } = service().running.service.payments
      let isMade = false
      const methods = ports.methods.map((method) => ({
        ...method,
        facilitator: {
          ...method.facilitator,
          verify: async () =>
            isMade
              ? ({ ok: false, reason: 'authorization_used' } as const)
              : ({ ok: true } as const),
          settle: async () =>
            isMade
              ? ({ state: 'settled', transaction: `0x${'7'.repeat(64)}` } as const)
              : ({ state: 'pending', reason: 'not_confirmed' } as const),
          lookup: async () => ({ state: 'pending', reason: 'network_unreachable' }) as const,
        },
      }))
      const facilitating = new Facilitating(
        { ...ports, methods },
        { ...facilitator, settlementsPerDay: 1 },
      )
      const requirements = makeRequirements(2, makeAddress())
      const paid = readPresented(await sign(makeBuyer(), 2, requirements), 2)
      if ('transaction' in paid) throw new Error('it is signed')
      const settle = (caller: string, n = 0) => {
        const nonce = `0x${n.toString(16).padStart(64, '0')}`
        const payload = { ...paid.payload, nonce }
        return facilitating.settle(caller, { ...paid, payload }, requirements)
      }
      expect(await settle('app:one')).toMatchObject({ state: 'pending' })
      for (let n = 1; n <= 10_002; n += 50)
        await Promise.all(Array.from({ length: 50 }, (_, at) => settle('app:other', n + at)))
      isMade = true
      expect(await settle('app:one')).toMatchObject({ state: 'settled' })
    })

    test('a payment that somebody used among more events than are ever read stays pending, is sent once, and makes no payer doubted', async () => {
      const { ports } = service().running.service.payments
      const transaction = `0x${'7'.repeat(64)}`
      const hidden = {
        state: 'pending',
        reason: 'hidden',
        transaction,
        usedIn: transaction,
      } as const
      let sent = 0
      const bounds: (number | undefined)[] = []
      const methods = ports.methods.map((method) => ({
        ...method,
        facilitator: {
          ...method.facilitator,
          verify: async () => ({ ok: true }) as const,
          awaitTurn: async (_: SignedPayment, { unprovenMax }: Requirement) => {
            bounds.push(unprovenMax)
            return true
          },
          settle: async () => {
            sent += 1
            return hidden
          },
          lookup: async () => hidden,
        },
      }))
      const settlementsPerDay = limits.facilitatedFailedPayersMax + 5
      const facilitating = new Facilitating(
        { ...ports, methods },
        { ...facilitator, settlementsPerDay },
      )
      const requirements = makeRequirements(2, makeAddress())
      const paid = readPresented(await sign(makeBuyer(), 2, requirements), 2)
      if ('transaction' in paid) throw new Error('it is signed')
      for (let n = 0; n < settlementsPerDay; n++) {
        const payload = { ...paid.payload, from: makeAddress() }
        for (let again = 0; again < 2; again++)
          expect(
            await facilitating.settle('app:one', { ...paid, payload }, requirements),
          ).toMatchObject(hidden)
      }
      // Each counted as one of the day.
      await facilitating.settle('app:one', paid, requirements)
      expect(sent).toBe(settlementsPerDay)
      expect(new Set(bounds)).toEqual(new Set([undefined]))
    })

    test('a settlement whose outcome the database did not tell is pending, and takes one of its caller’s day', async () => {
      const { ports } = service().running.service.payments
      let isLost = true
      const fail = async (): Promise<Settlement> => {
        if (isLost) throw new Error('the database is not there')
        return { state: 'settled', transaction: `0x${'7'.repeat(64)}` }
      }
      const methods = ports.methods.map((method) => ({
        ...method,
        facilitator: {
          ...method.facilitator,
          verify: async () => ({ ok: true }) as const,
          settle: fail,
          lookup: fail,
        },
      }))
      const bounds = { ...facilitator, settlementsPerDay: 1 }
      const facilitating = new Facilitating({ ...ports, methods }, bounds)
      const requirements = makeRequirements(2, makeAddress())
      const paid = readPresented(await sign(makeBuyer(), 2, requirements), 2)
      if ('transaction' in paid) throw new Error('it is signed')
      const settle = () => facilitating.settle('app:one', paid, requirements)
      const lost = { state: 'pending', reason: 'database_unreachable' }
      for (let round = 0; round < 3; round++) expect(await settle()).toMatchObject(lost)
      isLost = false
      expect(await settle()).toMatchObject({ state: 'settled' })
    })

    test('a wallet that signs more than it has takes nothing of the day of the server that it pays, nor does one payment in vain, however often it is handed in', async () => {
      const app = await service().createApp()
      const requirements = makeRequirements(2, makeAddress())
      const poor = await createFundedBuyer(service(), 1_000n)
      const many = limits.facilitatedFailedPayersMax + 4
      const bounds = { ...facilitator, settlementsPerDay: many }
      const signed = await Promise.all(
        Array.from({ length: many }, () => sign(poor, 2, requirements)),
      )
      const { service: running } = service().running
      const { facilitating: usual } = running
      const { ports } = running.payments
      let verified = 0
      const methods = ports.methods.map((method) => ({
        ...method,
        facilitator: {
          ...method.facilitator,
          // All are checked before one of them is sent.
          verify: async (...given: Parameters<typeof method.facilitator.verify>) => {
            const verdict = await method.facilitator.verify(...given)
            verified += 1
            await expect.poll(() => verified, { timeout: 20_000 }).toBeGreaterThanOrEqual(many)
            return verdict
          },
        },
      }))
      Object.assign(running, { facilitating: new Facilitating({ ...ports, methods }, bounds) })
      const replies = await Promise.all(
        signed.map((one) => post('settle', app, [one, requirements])),
      )
      expect(replies.filter(({ body }) => body.success)).toHaveLength(1)
      const settleOne = async () => {
        const buyer = await createFundedBuyer(service(), 5_000n)
        const paid = [await sign(buyer, 2, requirements), requirements] as const
        return (await post('settle', app, paid)).body
      }
      expect(await settleOne()).toMatchObject({ success: true })
      // GASPRICE ISZERO: valid where it is simulated, invalid in a transaction.
      const bytecode = '0x3a15600657fe5b631626ba7e60e01b60005260206000f3'
      const stubborn = await createFundedBuyer(service(), 50_000n)
      const { address } = stubborn.account
      await connectDevnet(service()).setCode({ address, bytecode })
      const paid = [await sign(stubborn, 2, requirements), requirements] as const
      for (let n = 0; n < many; n++)
        expect((await post('settle', app, paid)).body).toMatchObject({
          errorReason: 'transaction_reverted',
        })
      const last = await settleOne()
      Object.assign(running, { facilitating: usual })
      expect(last).toMatchObject({ success: true })
    })

    test('a settlement that no block has yet is pending, and asked for again by the same caller it is told once', async () => {
      const [app, other] = [await service().createApp(), await service().createApp()]
      const payTo = makeAddress()
      const buyer = await createFundedBuyer(service(), 5_000n)
      const requirements = makeRequirements(2, payTo)
      const payload = await sign(buyer, 2, requirements)
      const { service: running } = service().running
      const { facilitating: usual } = running
      const { ports } = running.payments
      const seen = new Set<string>()
      const methods = ports.methods.map((method) => ({
        ...method,
        facilitator: {
          ...method.facilitator,
          // As where the block comes later than anybody waits.
          settle: async (...given: Parameters<typeof method.facilitator.settle>) => {
            const outcome = await method.facilitator.settle(...given)
            if (seen.has(given[0])) return outcome
            seen.add(given[0])
            return { state: 'pending', reason: 'not_confirmed' } as const
          },
        },
      }))
      const late = new Facilitating({ ...ports, methods }, facilitator)
      Object.assign(running, { facilitating: late })
      const { body } = await post('settle', app, [payload, requirements])
      expect(body).toMatchObject({ success: false, errorReason: 'settlement_pending' })
      // Anybody reads it on the chain meanwhile, and may say that it is to another one.
      const elsewhere = makeAddress()
      const forged = structuredClone(payload)
      forged.accepted.payTo = elsewhere
      forged.payload.authorization.to = elsewhere
      for (const [by, paid] of [
        [other, [payload, requirements]],
        [other, [forged, makeRequirements(2, elsewhere)]],
        [app, [forged, makeRequirements(2, elsewhere)]],
        // Nor does it pay for more than was signed, or to somebody else.
        [app, [payload, makeRequirements(2, payTo, '50000')]],
        [app, [payload, makeRequirements(2, elsewhere)]],
      ] as const)
        expect((await post('settle', by, paid)).body).toMatchObject({
          success: false,
          errorReason: 'settlement_under_way',
        })
      const again = await Promise.all(
        [1, 2].map(() => post('settle', app, [payload, requirements])),
      )
      expect(again.filter((one) => one.body.success).length).toBe(1)
      expect((await post('settle', app, [payload, requirements])).body.success).toBe(false)
      expect(await readChainBalance(service(), payTo)).toBe(1_000n)
      Object.assign(running, { facilitating: usual })
    })

    test.each(['was pending', 'was cut off'])(
      'P1: a settlement that %s is told by the next process to the caller who asked for it, once, and to nobody else',
      async (end) => {
        const [app, other] = [await service().createApp(), await service().createApp()]
        const payTo = makeAddress()
        const buyer = await createFundedBuyer(service(), 5_000n)
        const requirements = makeRequirements(2, payTo)
        const paid = [await sign(buyer, 2, requirements), requirements] as const
        const { service: running } = service().running
        const { facilitating: usual } = running
        const { ports } = running.payments
        const methods = ports.methods.map((method) => ({
          ...method,
          facilitator: {
            ...method.facilitator,
            settle: async (...given: Parameters<typeof method.facilitator.settle>) => {
              await method.facilitator.settle(...given)
              if (end === 'was cut off') throw new Error('the process died')
              return { state: 'pending', reason: 'not_confirmed' } as const
            },
          },
        }))
        const ask = async (by: TestApp, process: Facilitating) => {
          Object.assign(running, { facilitating: process })
          const { status, body } = await post('settle', by, paid)
          return status === 200 ? (body.errorReason ?? body.success) : status
        }
        const readRows = () =>
          service().database.query(
            sql`SELECT identity FROM operations.payment_taker WHERE taker LIKE 'asked%'`,
          )
        const before = await readRows()
        const first = await ask(app, new Facilitating({ ...ports, methods }, facilitator))
        const next = new Facilitating(ports, facilitator)
        const third = new Facilitating(ports, facilitator)
        const told = []
        for (const by of [other, app, app, other]) told.push(await ask(by, next))
        told.push(await ask(app, third))
        Object.assign(running, { facilitating: usual })
        expect(first).toBe('settlement_pending')
        const used = 'authorization_used'
        expect(told).toEqual(['settlement_under_way', true, used, used, used])
        expect(await readChainBalance(service(), payTo)).toBe(1_000n)
        expect(await readRows()).toEqual(before)
      },
    )

    test('a payment that is over and not settled is refused, and is pending where a process that died has sent it', async () => {
      const app = await service().createApp()
      const buyer = await createFundedBuyer(service(), 5_000n)
      const requirements = makeRequirements(2, makeAddress())
      const payload = await sign(buyer, 2, requirements)
      const { service: running } = service().running
      const { facilitating: usual } = running
      const { ports } = running.payments
      const methods = ports.methods.map((method) => ({
        ...method,
        facilitator: {
          ...method.facilitator,
          // As where its transaction is in the journal, and no block has it yet.
          lookup: async () => ({ state: 'pending', reason: 'not_confirmed' }) as const,
        },
      }))
      const next = new Facilitating({ ...ports, methods }, facilitator)
      const endsMs = Number(payload.payload.authorization.validBefore) * 1000
      const lastSecondsMs = endsMs - 3_000 - service().world.now()
      service().world.advance(lastSecondsMs)
      const refused = await post('settle', app, [payload, requirements])
      Object.assign(running, { facilitating: next })
      const forged = structuredClone(payload)
      forged.payload.signature = (await sign(buyer, 2, requirements)).payload.signature
      const unsigned = await post('settle', app, [forged, requirements])
      const pending = await post('settle', app, [payload, requirements])
      Object.assign(running, { facilitating: usual })
      service().world.advance(-lastSecondsMs)
      const reasons = [refused, unsigned, pending].map(({ body }) => body.errorReason)
      expect(reasons).toEqual(['expired', 'invalid_signature', 'settlement_pending'])
    })

    test('a wallet whose code answers a simulation otherwise than a block makes three payments fail on our gas, and no more', async () => {
      const [app, other] = [await service().createApp(), await service().createApp()]
      const payTo = makeAddress()
      const buyer = await createFundedBuyer(service(), 50_000n)
      const chain = connectDevnet(service())
      // GASPRICE ISZERO: valid where it is simulated, invalid in a transaction.
      const bytecode = '0x3a15600657fe5b631626ba7e60e01b60005260206000f3'
      await chain.setCode({ address: buyer.account.address, bytecode })
      const requirements = makeRequirements(2, payTo)
      const key = `0x${service().running.devnet?.keys.gas.toString('hex')}` as const
      const sent = () => chain.getTransactionCount({ address: privateKeyToAddress(key) })
      const readStates = async () =>
        (
          await service().database.query<{ state: string }>(
            sql`SELECT DISTINCT state FROM operations.transaction_journal WHERE id LIKE 'facilitated%'`,
          )
        ).map(({ state }) => state)
      const before = await sent()
      const payments = await Promise.all(
        Array.from({ length: 8 }, () => sign(buyer, 2, requirements)),
      )
      const replies = await Promise.all(
        payments.map((one, n) => post('settle', n < 4 ? app : other, [one, requirements])),
      )
      const reasons = replies.map(({ body }) => body.errorReason).toSorted()
      expect(reasons).toEqual([
        ...Array.from({ length: 5 }, () => 'failed_before'),
        ...Array.from({ length: 3 }, () => 'transaction_reverted'),
      ])
      expect((await sent()) - before).toBe(3)
      const late = await post('verify', app, [payments[0], requirements])
      expect(late.body).toMatchObject({ isValid: false, invalidReason: 'failed_before' })
      // A wallet that hands in again what failed has no more tries for that.
      const stubborn = await createFundedBuyer(service(), 50_000n)
      await chain.setCode({ address: stubborn.account.address, bytecode })
      const ends: string[] = []
      for (let n = 0; n < 4; n++) {
        const paid = [await sign(stubborn, 2, requirements), requirements] as const
        ends.push((await post('settle', other, paid)).body.errorReason)
        // Its end is in the journal, so that nobody waits for its block again.
        await expect.poll(readStates).not.toContain('signed')
        await post('settle', other, paid)
      }
      expect(ends).toEqual([...Array(3).fill('transaction_reverted'), 'failed_before'])
      expect((await sent()) - before).toBe(6)
      // A wallet without code is served as ever.
      const honest = await createFundedBuyer(service(), 5_000n)
      const { body } = await post('settle', app, [
        await sign(honest, 2, requirements),
        requirements,
      ])
      expect(body.success).toBe(true)
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
