import { expect, test } from 'vitest'
import { putLocksInForce } from '../../packages/server/src/services/payments/payouts/locks.ts'
import { type Market, openMarket } from '../support/market.ts'
import { withService } from '../support/per-engine.ts'
import { openSeller } from '../support/sellers.ts'
import type { Json, TestReply } from '../support/service.ts'
import { askSigned, makeTestWallet } from '../support/wallet.ts'

const dayMs = 24 * 3_600_000

withService(
  (service) => {
    const post = (
      { appId, headers }: Pick<Market, 'appId' | 'headers'>,
      what: string,
      body: object,
    ) => service().request('POST', `/api/apps/${appId}/payout/${what}`, { body, headers })
    const readInfo = async (market: Market): Promise<Json> => (await post(market, 'info', {})).body
    const openOwned = async () => {
      const owner = makeTestWallet()
      const market = await openSeller(service(), owner.address)
      const lockSigned = (locked_balance: string): Promise<TestReply> => {
        const path = `/api/apps/${market.appId}/payout/settings`
        return askSigned(service(), owner, { method: 'POST', path, body: { locked_balance } })
      }
      return { market, lockSigned }
    }
    const sweep = () =>
      putLocksInForce(service().running.service, (app, error) => {
        throw new Error(`${app}: ${String(error)}`)
      })
    /** Works so much later. */
    const later = async (ms: number, work: () => Promise<void>) => {
      service().world.advance(ms)
      await work().finally(() => service().world.advance(-ms))
    }
    const all = '1000000000000000'
    const none = { locked_balance: '0', pending_locked_balance: null }

    test('a stolen key locks nothing for a day, and the owner, or a key that sets the former amount, ends it', async () => {
      const { market, lockSigned } = await openOwned()
      const stolen = await post(market, 'settings', { locked_balance: all })
      expect(stolen.body, stolen.text).toMatchObject({
        locked_balance: '0',
        pending_locked_balance: { amount: all, from: expect.any(String) },
        message: expect.stringContaining(`${all} is locked from `),
      })
      expect((await readInfo(market)).available_balance).toBe('4000')
      const undone = await post(market, 'settings', { locked_balance: '0' })
      expect(undone.body, undone.text).toMatchObject({
        ...none,
        message: 'The settings are in force',
      })
      await post(market, 'settings', { locked_balance: all })
      const signed = await lockSigned('1000')
      const own = { locked_balance: '1000', pending_locked_balance: null }
      expect(signed.body, signed.text).toMatchObject(own)
      await later(2 * dayMs, async () => {
        await sweep()
        expect(await readInfo(market)).toMatchObject({ ...own, available_balance: '3000' })
      })
      const paid = await post(market, 'request', {})
      expect([paid.status, paid.body.amount], paid.text).toEqual([202, '3000'])
    })

    test('an amount that a key has locked counts after a day, however often it is set again, and only grows from then on', async () => {
      const { market, lockSigned } = await openOwned()
      const first = await post(market, 'settings', { locked_balance: '1500' })
      const { from } = first.body.pending_locked_balance
      await later(dayMs - 60_000, async () => {
        // A change of another setting, and the same amount once more, begin no new day.
        await post(market, 'settings', { min_payout: '1' })
        const again = await post(market, 'settings', { locked_balance: '1500' })
        expect(again.body.pending_locked_balance).toEqual({ amount: '1500', from })
        await sweep()
        expect(await readInfo(market)).toMatchObject({ locked_balance: '0' })
      })
      await later(dayMs, async () => {
        await sweep()
        const inForce = { locked_balance: '1500', pending_locked_balance: null }
        expect(await readInfo(market)).toMatchObject({ ...inForce, available_balance: '2500' })
        for (const less of [
          await post(market, 'settings', { locked_balance: '0' }),
          await lockSigned('1499'),
        ])
          expect([less.status, less.body.details?.field], less.text).toEqual([
            400,
            '/locked_balance',
          ])
      })
    })

    test('an amount that is due counts before anything else that is set, and what the operator locks counts at once, against all', async () => {
      const { market, lockSigned } = await openOwned()
      await post(market, 'settings', { locked_balance: '700' })
      await later(dayMs, async () => {
        expect((await lockSigned('699')).body.details?.field).toBe('/locked_balance')
        const raised = await post(market, 'settings', { locked_balance: '900' })
        expect(raised.body).toMatchObject({
          ...{ locked_balance: '700', pending_locked_balance: { amount: '900' } },
        })
        const byOperator = { appId: market.appId, headers: service().operator }
        const locked = await post(byOperator, 'settings', { locked_balance: '2000' })
        expect(locked.body).toMatchObject({ locked_balance: '2000', pending_locked_balance: null })
        expect((await readInfo(market)).available_balance).toBe('2000')
        expect((await lockSigned('1999')).status).toBe(400)
      })
    })

    test('an application without an owner waits for its own key as well', async () => {
      const market = await openMarket(service(), {})
      const locked = await post(market, 'settings', { locked_balance: '5' })
      expect(locked.body).toMatchObject({
        ...{ locked_balance: '0', pending_locked_balance: { amount: '5' } },
      })
      await later(dayMs, async () => {
        await sweep()
        expect((await readInfo(market)).locked_balance).toBe('5')
      })
    })
  },
  { devnet: true },
)
