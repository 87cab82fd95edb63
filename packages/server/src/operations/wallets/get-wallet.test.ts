import { createFundedBuyer, depositing } from '@tollbase/testing/buyer'
import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('getWallet', () =>
  withService(
    (service) => {
      test('a wallet that nobody has paid for has zeros, in whatever case its address is written', async () => {
        for (const address of [`0x${'ab'.repeat(20)}`, `0x${'AB'.repeat(20)}`]) {
          const { status, body } = await service().request('GET', `/api/wallets/${address}`)
          expect(status).toBe(200)
          expect(body).toMatchObject({
            available: '0',
            pending: '0',
            decimals: 6,
            usd: { available: '0.00', pending: '0.00' },
          })
        }
        expect((await service().request('GET', '/api/wallets/0xab')).status).toBe(400)
      })

      test('a wallet that deposited has that as its balance', async () => {
        const buyer = await createFundedBuyer(service())
        await buyer.buy(service(), depositing(buyer.address, '1500000'))
        const { body } = await service().request('GET', `/api/wallets/${buyer.address}`)
        expect(body).toMatchObject({ available: '1500000', usd: { available: '1.50' } })
      })
    },
    { devnet: true },
  ))
