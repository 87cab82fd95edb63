import { createData } from '@tollbase/testing/data'
import { readChainBalance } from '@tollbase/testing/market'
import { withService } from '@tollbase/testing/per-engine'
import { openSeller } from '@tollbase/testing/sellers'
import { describe, expect, test } from 'vitest'

describe('withdrawFromApplication', () =>
  withService((service) => {
    test('a key withdraws to the destination of payouts alone, and to nobody while there is none', async () => {
      const app = await createData(service())
      const [owner, thief] = [`0x${'3'.repeat(40)}`, `0x${'4'.repeat(40)}`]
      const withdraw = async (more: object) => {
        const body = { amount: '1000', network: 'eip155:84532', ...more }
        return (await app.call('POST', '/wallet/withdraw', body)).body.code
      }
      expect(await withdraw({})).toBe('PAYOUT_NOT_POSSIBLE')
      await service().request('PATCH', `/api/apps/${app.appId}`, {
        ...{ body: { owner_address: owner }, headers: service().operator },
      })
      expect(await withdraw({ destination: thief })).toBe('PAYOUT_NOT_POSSIBLE')
      // No network is there for what may leave.
      for (const more of [{}, { destination: owner }])
        expect(await withdraw(more)).toBe('TRANSFERS_NOT_CONFIGURED')
    })
  }))

describe('withdrawFromApplication on a network', () =>
  withService(
    (service) => {
      test('a key withdraws to the owner, and no more than there is', async () => {
        const owner = `0x${'7'.repeat(40)}`
        const market = await openSeller(service(), owner)
        const withdraw = (amount: string) =>
          service().request('POST', `/api/apps/${market.appId}/wallet/withdraw`, {
            ...{ body: { amount }, headers: market.headers },
          })
        expect((await withdraw('4001')).body.code).toBe('BALANCE_TOO_LOW')
        expect((await withdraw('4000')).status).toBe(202)
        await expect.poll(() => readChainBalance(service(), owner)).toBe(4_000n)
      })
    },
    { devnet: true },
  ))
