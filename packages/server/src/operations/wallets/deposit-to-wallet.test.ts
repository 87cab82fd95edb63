import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('depositToWallet', () =>
  withService((service) => {
    test('a deposit of nothing is refused by name, also where no payment network is configured', async () => {
      const path = `/api/wallets/0x${'1'.repeat(40)}/deposit`
      const ask = (amount: string) => service().request('POST', path, { body: { amount } })
      expect((await ask('0')).body).toMatchObject({ code: 'VALIDATION_FAILED' })
      expect((await ask('999')).status).toBe(400)
      expect((await ask('1000')).status).toBe(503)
    })
  }))
