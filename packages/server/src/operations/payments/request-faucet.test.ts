import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('requestFaucet', () =>
  withService(
    (service) => {
      const ask = (body: object) => service().request('POST', '/devnet/faucet', { body })
      const address = `0x${'5'.repeat(40)}`

      test('the faucet gives 100 dollars, or as many as are asked for up to 1,000', async () => {
        expect((await ask({ address })).body).toMatchObject({ balance: '100000000' })
        const most = await ask({ address, amount: '1000000000' })
        expect(most.body).toMatchObject({ balance: '1100000000' })
        for (const amount of ['0', '1000000001']) {
          const { status, body } = await ask({ address, amount })
          expect([status, body.details?.field], amount).toEqual([400, '/amount'])
        }
        const nobody = await ask({ address: `0x${'0'.repeat(40)}` })
        expect([nobody.status, nobody.body.details?.field]).toEqual([400, '/address'])
      })
    },
    { devnet: true },
  ))
