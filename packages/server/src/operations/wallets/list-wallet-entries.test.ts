import { createFundedBuyer, depositing } from '@tollbase/testing/buyer'
import { withService } from '@tollbase/testing/per-engine'
import { askSigned, makeTestWallet } from '@tollbase/testing/wallet'
import { describe, expect, test } from 'vitest'

describe('listWalletEntries', () =>
  withService(
    (service) => {
      test('the movements of a wallet are for its own signature: no other wallet, and nobody without one, sees them', async () => {
        const [own, other] = [makeTestWallet(), makeTestWallet()]
        const path = `/api/wallets/${own.address}/entries`
        const read = (query = '') =>
          askSigned(service(), own, { method: 'GET', path: `${path}${query}` })
        expect((await read()).body).toEqual({ entries: [], next_cursor: null })
        for (const cursor of ['1', '1.', 'x.1', '1.2.3']) {
          const wrong = await read(`?cursor=${cursor}`)
          expect([wrong.status, wrong.body.details?.field], cursor).toEqual([400, '/query/cursor'])
        }
        expect((await askSigned(service(), other, { method: 'GET', path })).status).toBe(403)
        expect((await service().request('GET', path)).status).toBe(401)
      })

      test('each movement stands with its kind, amount and the balance after it, newest first', async () => {
        const buyer = await createFundedBuyer(service())
        for (const amount of ['5000', '7000'])
          await buyer.buy(service(), depositing(buyer.address, amount))
        const asked = { method: 'GET', path: `/api/wallets/${buyer.address}/entries` }
        const { body } = await askSigned(service(), makeTestWallet(buyer.account), asked)
        expect(body.entries).toMatchObject([
          { kind: 'deposit', amount: '7000', balance_after: '12000' },
          { kind: 'deposit', amount: '5000', balance_after: '5000' },
        ])
      })
    },
    { devnet: true },
  ))
