import { withService } from '@tollbase/testing/per-engine'
import { askSigned, makeTestWallet } from '@tollbase/testing/wallet'
import { describe, expect, test } from 'vitest'

describe('withdrawFromWallet', () =>
  withService((service) => {
    test('a service that can send no transfers says so to the wallet itself, and nothing of it to others', async () => {
      const [own, other] = [makeTestWallet(), makeTestWallet()]
      const path = `/api/wallets/${own.address}/withdraw`
      const asked = { method: 'POST', path, body: { amount: '1000' } }
      expect((await askSigned(service(), own, asked)).body.code).toBe('TRANSFERS_NOT_CONFIGURED')
      expect((await askSigned(service(), other, asked)).body.code).toBe('FORBIDDEN')
    })
  }))
