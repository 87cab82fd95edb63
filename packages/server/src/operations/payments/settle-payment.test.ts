import { idleNetwork } from '@tollbase/testing/idle-network'
import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('settlePayment', () =>
  withService(
    (service) => {
      test('a payment of another version, or without a signature, is malformed and is not settled', async () => {
        const requirements = { scheme: 'exact', network: 'base-sepolia', payTo: idleNetwork.pay_to }
        const settle = (x402Version: number, paymentPayload: object) =>
          service().request('POST', '/api/payments/settle', {
            body: { x402Version, paymentPayload, paymentRequirements: requirements },
          })
        const other = await settle(3, {})
        expect([other.status, other.body.code]).toEqual([400, 'PAYMENT_MALFORMED'])
        expect(other.body.details).toEqual({ field: '/x402Version' })
        const { network, scheme } = requirements
        const unsigned = await settle(1, { x402Version: 1, scheme, network, payload: {} })
        expect([unsigned.status, unsigned.body.code]).toEqual([400, 'PAYMENT_MALFORMED'])
      })
    },
    { config: { networks: [idleNetwork] } },
  ))
