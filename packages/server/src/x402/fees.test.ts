import { expect, test } from 'vitest'
import { computeHigherOffer, computeOffer } from './fees.ts'

const gwei = 10n ** 9n
const offer = (fee: bigint, tip: bigint) => ({ maxFeePerGas: fee, maxPriorityFeePerGas: tip })

test('an offer is four times the base fee and the tip, up to the most that is paid for both together', () => {
  const fees = { baseFee: 2n * gwei, priorityFee: gwei }
  expect(computeOffer(fees, undefined)).toEqual(offer(9n * gwei, gwei))
  expect(computeOffer(fees, 9n * gwei)).toEqual(offer(9n * gwei, gwei))
  expect(computeOffer(fees, 9n * gwei - 1n)).toEqual(offer(9n * gwei - 1n, gwei))
})

test('a node that asks for any tip gets no more than the most that is paid', () => {
  const fees = { baseFee: gwei, priorityFee: 10n ** 24n }
  expect(computeOffer(fees, 5n * gwei)).toEqual(offer(5n * gwei, 5n * gwei))
  const last = offer(2n * gwei, gwei)
  expect(computeHigherOffer(last, fees, 5n * gwei)).toEqual(offer(5n * gwei, 5n * gwei))
})

test('a replacement is an eighth higher in both, and there is none where that is above the most that is paid', () => {
  const fees = { baseFee: gwei / 10n, priorityFee: 1n }
  const last = offer(80n, 8n)
  const low = { baseFee: 1n, priorityFee: 1n }
  expect(computeHigherOffer(last, low, undefined)).toEqual(offer(91n, 10n))
  expect(computeHigherOffer(last, low, 91n)).toEqual(offer(91n, 10n))
  expect(computeHigherOffer(last, low, 90n)).toBeUndefined()
  expect(computeHigherOffer(last, fees, 100n)).toEqual(offer(100n, 10n))
})
