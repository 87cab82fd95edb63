import type { Movement } from '../../projections/ledger.ts'

/** Describes a movement on a balance as its owner sees it. */
export function describeMovement(one: Movement) {
  return {
    id: `${one.leaf}.${one.line}`,
    time: new Date(Number(one.time_ms)).toISOString(),
    kind: one.kind,
    amount: one.amount,
    balance_after: one.balance_after,
    reference: one.reference,
    height: Number(one.height),
    sequence: one.sequence,
  }
}
