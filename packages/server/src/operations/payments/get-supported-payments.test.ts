import { idleNetwork } from '@tollbase/testing/idle-network'
import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('getSupportedPayments', () =>
  withService(
    (service) => {
      test('each network is named in both versions of the protocol, with the address that is paid', async () => {
        const { body } = await service().request('GET', '/api/payments/supported')
        expect(body).toEqual({
          kinds: [
            { x402Version: 2, scheme: 'exact', network: 'eip155:84532' },
            { x402Version: 1, scheme: 'exact', network: 'base-sepolia' },
          ],
          extensions: [],
          signers: { 'eip155:84532': [idleNetwork.pay_to] },
        })
      })
    },
    { config: { networks: [idleNetwork] } },
  ))
