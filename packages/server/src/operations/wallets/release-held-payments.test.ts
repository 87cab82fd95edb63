import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('releaseHeldPayments', () =>
  withService((service) => {
    test('one payment, one payer, or all are released, and of a payment that is not held it is said', async () => {
      const release = (body: object) =>
        service().request('POST', '/api/platform/held/release', {
          body,
          headers: service().operator,
        })
      const payer = `0x${'1'.repeat(40)}`
      for (const body of [
        {},
        { payer, all: true },
        { all: false },
        { payer: 'me' },
        { payment_id: '\u0000' },
      ])
        expect((await release(body)).status, JSON.stringify(body)).toBe(400)
      for (const body of [{ payer }, { all: true }])
        expect((await release(body)).body).toEqual({ payments: [], next_cursor: null })
      const none = await release({ payment_id: 'pay_1' })
      expect([none.status, none.body.code]).toEqual([404, 'PAYMENT_NOT_FOUND'])
    })
  }))
