import { describe, expect, test } from 'vitest'
import { makePaymentNetwork } from '../../../x402/networks.ts'
import { depositOperation } from '../purchase.ts'
import { isOfLostLife } from './held-money.ts'

const network = makePaymentNetwork({ chainId: 84532, payTo: `0x${'11'.repeat(20)}` })
const restoredAt = 1_000n
const [before, then, after] = [restoredAt - 1n, restoredAt, restoredAt + 1n]
/** There is no node to ask. */
const unknown = undefined

/** The second of the claim, that of the block, and whether its money is of a lost life: of a purchase, of a deposit. */
const cases = [
  [before, before, true, true],
  [before, then, true, true],
  [before, after, false, false],
  [before, unknown, true, true],
  [then, then, true, true],
  [then, unknown, true, true],
  [after, before, false, true],
  [after, after, false, false],
  [after, unknown, false, false],
] as const

describe('isOfLostLife', () => {
  test.each(cases)(
    'money of a claim at %s whose block is at %s, after a restore at 1000',
    async (claimedAt, movedAt, ...isLost) => {
      const ask = (operation: string) =>
        isOfLostLife(
          {
            methods: [{ network, restoredAt, ...(movedAt && { readTime: async () => movedAt }) }],
          },
          {
            ...{ identity: `${network.id}/0xa/0xb/0xc`, operation },
            created_at_ms: claimedAt * 1_000n + 999n,
          },
          '0xd',
        )
      expect([await ask('listRecords'), await ask(depositOperation)]).toEqual(isLost)
    },
  )

  test('nothing is of a lost life where no database was restored, or without its network', async () => {
    const claim = {
      ...{ identity: `${network.id}/0xa/0xb/0xc`, operation: depositOperation },
      created_at_ms: 0n,
    }
    const readTime = async () => 0n
    expect(await isOfLostLife({ methods: [{ network, readTime }] }, claim, '0xd')).toBe(false)
    expect(await isOfLostLife({ methods: [] }, claim, '0xd')).toBe(false)
  })
})
