import type { Mutant } from './mutant.ts'

const market = { scene: 'market', subject: 'restores' } as const

/** Bugs in what becomes of money from before a restore. */
export const restoreMutants: readonly Mutant[] = [
  {
    name: 'held-money-is-released-twice',
    ...{ ...market, file: 'projections/count-entries-once.ts' },
    find: "if (isRelease(booking)) return held.delete(findHeldOn(booking.body) ?? '')",
    put: 'if (isRelease(booking)) return true',
  },
  {
    name: 'held-money-is-released-to-somebody-else',
    ...{ ...market, file: 'services/payments/deposits/release-held.ts' },
    find: '[account, BigInt(amount)],',
    put: "[account === '' ? account : 'platform', BigInt(amount)],",
  },
  {
    name: 'held-money-is-a-balance-at-once',
    ...{ ...market, file: 'services/payments/deposits/claim-deposit.ts' },
    find: '[isWithheld ? toHeldAccount(account, paymentId) : account, amount],',
    put: "[isWithheld && paymentId === '' ? toHeldAccount(account, paymentId) : account, amount],",
  },
  {
    name: 'payment-of-a-lost-life-buys-again',
    ...{ ...market, file: 'services/payments/deposits/deposit-book.ts' },
    find: 'const isWithheld = await this.isWithheld(claim, settledBy)',
    put: 'const isWithheld = claim.operation === depositOperation && (await this.isWithheld(claim, settledBy))',
  },
]
