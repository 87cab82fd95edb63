import { createFundedBuyer, depositing } from '@tollbase/testing/buyer'
import { readChainBalance } from '@tollbase/testing/market'
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

describe('withdrawFromWallet on a network', () =>
  withService(
    (service) => {
      test('a wallet takes its balance back by its signature, and no more than it has', async () => {
        const buyer = await createFundedBuyer(service(), 10_000n)
        await buyer.buy(service(), depositing(buyer.address, '10000'))
        const path = `/api/wallets/${buyer.address}/withdraw`
        const withdraw = (amount: string) =>
          askSigned(service(), makeTestWallet(buyer.account), {
            ...{ method: 'POST', path, body: { amount } },
          })
        expect((await withdraw('10001')).body.code).toBe('BALANCE_TOO_LOW')
        const { status, text } = await withdraw('10000')
        expect(status, text).toBe(202)
        await expect.poll(() => readChainBalance(service(), buyer.address)).toBe(10_000n)
      })
    },
    { devnet: true },
  ))
