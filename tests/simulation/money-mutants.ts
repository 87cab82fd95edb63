import type { Mutant } from './mutant.ts'

const market = { scene: 'market' } as const

/** Bugs in transfers that payers make themselves, in sweeps, and in payments that somebody else brings. */
export const moneyMutants: readonly Mutant[] = [
  {
    name: 'sweep-counts-as-a-payment',
    ...{ ...market, subject: 'natives', file: 'services/payments/purchase.ts' },
    find: 'isSweep(depositSecret, payment.payload)',
    put: "isSweep(depositSecret, { ...payment.payload, from: '0x00' })",
  },
  {
    name: 'sweep-is-done-by-its-own-block',
    ...{ ...market, subject: 'natives,reversals', file: 'services/payments/settling/sweeper.ts' },
    find: 'if (height <= look.final) await',
    put: 'if (height <= look.head) await',
  },
  {
    name: 'transfer-is-known-before-it-is-confirmed',
    ...{ ...market, subject: 'natives', file: 'x402/native-transfer.ts' },
    find: '  const waiting = { count: 0 }',
    put: '  options = { ...options, confirmations: 1 }; const waiting = { count: 0 }',
  },
  {
    name: 'transfer-of-too-little-buys',
    ...{ ...market, subject: 'natives', file: 'services/payments/quotes/quoting.ts' },
    from: 4,
    find: 'if (value < least(quote.cap))',
    put: 'if (value < 0n)',
  },
  {
    name: 'used-authorization-is-sent',
    ...{ ...market, subject: 'rivals', file: 'x402/evm-facilitator.ts' },
    find: '  if (used) return usedBefore',
    put: '  if (used && !simulation.ok) return usedBefore',
  },
  {
    name: 'used-money-is-not-adopted',
    ...{ ...market, subject: 'rivals', file: 'services/payments/payments.ts' },
    find: "'isUsedBefore' in asked ? await this.#claims.adopt(paid, purpose) : asked",
    put: "'isUsedBefore' in asked ? { refusal: 'it was used' } : asked",
  },
]
