import type { Books } from './books.ts'
import { library } from './library.ts'
import type { Market } from './market.ts'
import { plates } from './plates.ts'
import { storageFees } from './shop.ts'

const dayMs = 24 * 3_600_000
/** The price is for so many bytes and days. */
const pricedBytes = 2n ** 30n
const pricedDays = 30n

/**
 * Checks that the library pays once for each day that ended while the service ran, what its files cost on that day; and
 * that what its balance did not cover is owed, and no more.
 */
export function checkFees(market: Market, { fees }: Books): string[] {
  if (!market.subjects.has('storage'))
    return fees.map(({ app, day }) => `${app} was charged for ${day}`)
  const bytes = plates.reduce((sum, one) => sum + BigInt(one.bytes.length), 0n)
  const computeTotal = (days: number) =>
    (BigInt(days) * bytes * storageFees.price) / (pricedBytes * pricedDays)
  const wrong = fees.flatMap(({ app, day, amount, paid, owed }, at) => {
    const due = computeTotal(at + 1) - computeTotal(at)
    const before = BigInt(fees[at - 1]?.owed ?? 0)
    const isRight = app === library && BigInt(amount) === due && BigInt(paid) >= 0n
    return isRight && BigInt(owed) >= 0n && BigInt(paid) + BigInt(owed) === due + before
      ? []
      : [`${app} paid ${paid} of ${amount} and ${before} for ${day}, and owes ${owed}`]
  })
  const last = new Date(market.scheduler.now - dayMs).toISOString().slice(0, 10)
  // A process that stood still over midnight may have begun the fee of the day before, which is booked after it then.
  const isCharged = fees.some(({ day }) => day === last)
  return isCharged ? wrong : [...wrong, `nobody was charged for ${last}`]
}
