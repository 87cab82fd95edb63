import { expect, test } from 'vitest'
import { noLog as log } from '../base/log.ts'
import { realWorld as world } from '../base/world.ts'
import { makeNativeTransfers } from './native-transfer.ts'
import { makePaymentNetwork } from './networks.ts'
import type { Rpc } from './rpc.ts'

test('a bounded number of callers who name transactions that are never mined is waited with', async () => {
  const network = makePaymentNetwork({ chainId: 84532, payTo: `0x${'11'.repeat(20)}` })
  // A node that knows every transaction, and has none in a block.
  const rpc: Rpc = {
    call: async (method) => (method === 'eth_getTransactionByHash' ? {} : null),
    close: () => undefined,
  }
  const native = makeNativeTransfers({
    ...{ network, rpc, world, log, confirmations: 1, pollMs: 5, returnSeconds: 60n },
    ...{ waitMs: 1_000, waitersMax: 2 },
  })
  const order: number[] = []
  const finds = [1, 2, 3].map((n) =>
    native.find({ transaction: `0x${`0${n}`.repeat(32)}`, to: network.payTo }).catch((error) => {
      order.push(n)
      throw error
    }),
  )
  const pending = { reason: { code: 'PAYMENT_PENDING', retryAfterSeconds: 2 } }
  expect(await Promise.allSettled(finds)).toMatchObject([pending, pending, pending])
  expect(order[0]).toBe(3)
  expect(order).toHaveLength(3)
})
