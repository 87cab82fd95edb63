import { limits } from '@tollbase/contract/limits'
import { afterAll, expect, test } from 'vitest'
import type { Database } from '../../packages/server/src/database/database.ts'
import { type SqlStatement, sql } from '../../packages/server/src/database/sql.ts'
import { Facilitating } from '../../packages/server/src/services/payments/facilitating/facilitating.ts'
import type { Settlement } from '../../packages/server/src/x402/facilitator.ts'
import { createFundedBuyer, readBalance } from '../support/buyer.ts'
import { readChainBalance } from '../support/market.ts'
import { withService } from '../support/per-engine.ts'
import type { TestApp } from '../support/service.ts'
import { replaceFacilitators } from './false-facilitators.ts'
import { facilitator, makeAddress, makeOtherServer } from './other-servers.ts'
import { expectAuditEqual } from './reorganize.ts'

withService(
  (service) => {
    const { makeRequirements, sign, signUnfunded, post } = makeOtherServer(service)
    // In the journal, none of what these tests leave is a difference.
    afterAll(() => expectAuditEqual(service()))

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
      const lagging = replaceFacilitators(ports, () => ({ verify: async () => ({ ok: true }) }))
      const buyer = await createFundedBuyer(service(), 5_000n)
      const requirements = makeRequirements(2, makeAddress())
      const paid = [await sign(buyer, 2, requirements), requirements] as const
      Object.assign(running, { facilitating: new Facilitating(lagging, facilitator) })
      const told = []
      for (const by of [app, app, other]) told.push((await post('settle', by, paid)).body.success)
      Object.assign(running, { facilitating: usual })
      expect(told).toEqual([true, false, false])
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

    test('P1: a caller beyond its limit makes nobody forget what others were told is pending, however much it asks', async () => {
      const { ports } = service().running.service.payments
      let isMade = false
      const scripted = replaceFacilitators(ports, () => ({
        verify: async () => (isMade ? { ok: false, reason: 'authorization_used' } : { ok: true }),
        settle: async () =>
          isMade
            ? { state: 'settled', transaction: `0x${'7'.repeat(64)}` }
            : { state: 'pending', reason: 'not_confirmed' },
        lookup: async () => ({ state: 'pending', reason: 'network_unreachable' }),
      }))
      const facilitating = new Facilitating(scripted, { ...facilitator, settlementsPerDay: 1 })
      const { paid, requirements } = await signUnfunded()
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
      const hiding = replaceFacilitators(ports, () => ({
        verify: async () => ({ ok: true }),
        awaitTurn: async (_, { unprovenMax }) => {
          bounds.push(unprovenMax)
          return true
        },
        settle: async () => {
          sent += 1
          return hidden
        },
        lookup: async () => hidden,
      }))
      const settlementsPerDay = limits.facilitatedFailedPayersMax + 5
      const facilitating = new Facilitating(hiding, { ...facilitator, settlementsPerDay })
      const { paid, requirements } = await signUnfunded()
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
      const losing = replaceFacilitators(ports, () => ({
        verify: async () => ({ ok: true }),
        settle: fail,
        lookup: fail,
      }))
      const facilitating = new Facilitating(losing, { ...facilitator, settlementsPerDay: 1 })
      const { paid, requirements } = await signUnfunded()
      const settle = () => facilitating.settle('app:one', paid, requirements)
      const lost = { state: 'pending', reason: 'database_unreachable' }
      for (let round = 0; round < 3; round++) expect(await settle()).toMatchObject(lost)
      isLost = false
      expect(await settle()).toMatchObject({ state: 'settled' })
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
      // As where the block comes later than anybody waits.
      const late = replaceFacilitators(ports, (real) => ({
        settle: async (...given) => {
          const outcome = await real.settle(...given)
          if (seen.has(given[0])) return outcome
          seen.add(given[0])
          return { state: 'pending', reason: 'not_confirmed' }
        },
      }))
      Object.assign(running, { facilitating: new Facilitating(late, facilitator) })
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
        const ending = replaceFacilitators(ports, (real) => ({
          settle: async (...given) => {
            await real.settle(...given)
            if (end === 'was cut off') throw new Error('the process died')
            return { state: 'pending', reason: 'not_confirmed' }
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
        const first = await ask(app, new Facilitating(ending, facilitator))
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
      // As where its transaction is in the journal, and no block has it yet.
      const unmined = replaceFacilitators(ports, () => ({
        lookup: async () => ({ state: 'pending', reason: 'not_confirmed' }),
      }))
      const next = new Facilitating(unmined, facilitator)
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
  },
  { devnet: true, config: { facilitator } },
)
