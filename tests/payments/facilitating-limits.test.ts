import { limits } from '@tollbase/contract/limits'
import { privateKeyToAddress } from 'viem/accounts'
import { afterAll, expect, test } from 'vitest'
import { realWorld } from '../../packages/server/src/base/world.ts'
import { sql } from '../../packages/server/src/database/sql.ts'
import { Facilitating } from '../../packages/server/src/services/payments/facilitating/facilitating.ts'
import type { Settlement, Verification } from '../../packages/server/src/x402/facilitator.ts'
import { encodeHex } from '../../packages/server/src/x402/hex.ts'
import type { Requirement } from '../../packages/server/src/x402/protocol.ts'
import { type Buyer, createFundedBuyer } from '../support/buyer.ts'
import { readChainBalance } from '../support/market.ts'
import { connectDevnet } from '../support/payer.ts'
import { withService } from '../support/per-engine.ts'
import type { Json, TestApp } from '../support/service.ts'
import { replaceFacilitators } from './false-facilitators.ts'
import { facilitator, makeAddress, makeOtherServer } from './other-servers.ts'
import { expectAuditEqual } from './reorganize.ts'

withService(
  (service) => {
    const { makeRequirements, sign, signUnfunded, post } = makeOtherServer(service)
    // In the journal, none of what these tests leave is a difference.
    afterAll(() => expectAuditEqual(service()))

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
      // As where the node is lost between the check of a payment and the look for what became of it.
      const unreached = replaceFacilitators(ports, (real) => ({
        lookup: async (...given) =>
          isReached ? real.lookup(...given) : { state: 'pending', reason: 'network_unreachable' },
      }))
      const bounds = { ...facilitator, settlementsPerDay: 0 }
      Object.assign(running, { facilitating: new Facilitating(unreached, bounds) })
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
      const moving = replaceFacilitators(ports, () => ({
        verify: async () => ({ ok: true }),
        settle: async () => {
          sent += 1
          return { state: 'pending', reason: 'not_confirmed' }
        },
        lookup: async () => states[at] ?? states[0],
      }))
      const bounds = { ...facilitator, settlementsPerDay: 0 }
      const facilitating = new Facilitating(moving, bounds)
      const { paid, requirements } = await signUnfunded()
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
      const scripted = replaceFacilitators(ports, () => ({
        verify: async () => verdict,
        settle: async () => ({ state: 'pending', reason: 'not_confirmed' }),
        lookup: async () => found,
      }))
      const facilitating = new Facilitating(scripted, facilitator)
      const { paid, requirements } = await signUnfunded()
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
      const scripted = replaceFacilitators(ports, () => ({
        verify: async () => ({ ok: true }),
        awaitTurn: async (_, requirement) => {
          asked.push(requirement)
          return isReady()
        },
        settle: async () => settle(),
        lookup: async () => ({ state: 'failed', reason: 'not_sent', final: false }),
      }))
      const { world } = service()
      const bounds = { ...facilitator, settlementsPerDay: 200, allSettlementsPerDay: 200 }
      const facilitating = new Facilitating({ ...scripted, world }, bounds)
      const { paid, requirements } = await signUnfunded()
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
      // All are checked before one of them is sent.
      const joined = replaceFacilitators(ports, (real) => ({
        verify: async (...given) => {
          const verdict = await real.verify(...given)
          verified += 1
          await expect.poll(() => verified, { timeout: 20_000 }).toBeGreaterThanOrEqual(many)
          return verdict
        },
      }))
      Object.assign(running, { facilitating: new Facilitating(joined, bounds) })
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
  },
  { devnet: true, config: { facilitator } },
)
