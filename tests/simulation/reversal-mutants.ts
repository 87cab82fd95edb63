import type { Mutant } from './mutant.ts'

const market = { scene: 'market', subject: 'reversals' } as const
const watch = 'services/payments/reversals/watch-moves.ts'
const write = 'services/payments/reversals/write-reversal.ts'

/** Bugs in what becomes of money that its chain takes back. */
export const reversalMutants: readonly Mutant[] = [
  {
    name: 'gone-money-is-not-held',
    ...{ ...market, file: write },
    find: 'await insertHold(tx, { id, account, amount })',
    put: '',
  },
  {
    name: 'money-that-is-back-stays-held',
    ...{ ...market, file: write },
    find: 'await deleteHold(tx, formatReversalHold(id))',
    put: '',
  },
  {
    name: 'other-transaction-is-not-noted',
    ...{ ...market, file: write },
    find: 'if (other === null) await deleteTakenBack',
    put: "if (other !== '') await deleteTakenBack",
  },
  {
    name: 'reversal-is-not-known-again',
    ...{ ...market, file: write },
    find: 'if (reversal === undefined) return false',
    put: "if (reversal === undefined || id !== '') return false",
  },
  {
    name: 'more-is-lost-than-the-account-lacks',
    ...{ ...market, file: write },
    find: 'moved: (await keepGone(ports, claim)).held }',
    put: 'moved: (await keepGone(ports, claim)).held / 2n }',
  },
  {
    name: 'loss-is-the-whole-payment',
    ...{ ...market, file: write },
    find: 'const lost = amount - moved',
    put: 'const lost = amount',
  },
  {
    name: 'reversed-transfer-stays-paid',
    ...{ ...market, subject: 'reversals,transfers', file: write },
    find: "if (transfer?.state === 'paid')",
    put: "if (transfer?.state === 'asked')",
  },
  {
    name: 'final-leaf-passes-what-is-open',
    ...{ ...market, file: watch },
    find: 'for (const move of seen.open) memory.open.set(move.leaf, move)',
    put: '',
  },
  {
    name: 'reversed-while-it-may-come',
    ...{ ...market, file: watch },
    from: 69,
    find: "if (outcome.state === 'pending' || !outcome.final) {",
    put: "if (outcome.state === 'pending') {",
  },
  {
    name: 'replaced-blocks-are-not-noticed',
    ...{ ...market, file: watch },
    find: 'memory.heights.clear()',
    put: '',
  },
  {
    name: 'transaction-that-moved-nothing-is-the-move',
    ...{ ...market, file: 'services/payments/reversals/booked-move.ts' },
    find: 'return hasPayment(receipt.logs, network, use)',
    put: 'return true',
  },
]
