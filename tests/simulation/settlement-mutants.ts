import type { Mutant } from './mutant.ts'

const market = { scene: 'market', subject: 'settlements' } as const
const facilitating = 'services/payments/facilitating/facilitating.ts'

/** Bugs in what the service settles for other servers. */
export const settlementMutants: readonly Mutant[] = [
  {
    name: 'settlement-is-sent-twice',
    ...{ ...market, file: facilitating },
    find: 'const id = deriveSettlementId(getPaymentIdentity(network, payment))',
    put: 'const id = deriveSettlementId(getPaymentIdentity(network, payment)) + this.#underWay.size',
  },
  {
    name: 'settlement-is-told-twice-at-once',
    ...{ ...market, file: facilitating },
    find: 'if (this.#underWay.has(id))',
    put: "if (this.#underWay.has(id) && caller === '')",
  },
  {
    name: 'used-authorization-is-settled-for-others',
    ...{ ...market, file: facilitating },
    find: 'if (!verdict.ok) return toForeignRefusal(verdict)',
    put: "if (!verdict.ok && verdict.reason !== 'authorization_used') return toForeignRefusal(verdict)",
  },
  {
    name: 'pending-settlement-is-told-to-anybody',
    ...{ ...market, file: facilitating },
    find: 'pending !== undefined && pending.asked !== asked',
    put: "pending?.asked === ''",
  },
  {
    name: 'pending-settlement-is-told-for-any-amount',
    ...{ ...market, file: facilitating },
    find: 'signature, network.payTo, amount].join',
    put: 'signature, network.id].join',
  },
  {
    name: 'pending-settlement-is-told-for-ever',
    ...{ ...market, file: facilitating },
    find: "for (const begun of [this.#pending, this.#doubtful, this.#unread]) begun.delete(id)\n    if (taken !== undefined) this.#count(taken, settlement)\n    if (pending !== undefined || taken !== undefined) await this.#forget({ id, asked }, settlement)\n    if ('refusal' in settlement || isUnsent(settlement)) return settlement\n    // One that is counted already is only looked up.\n    const isCounted = taken === undefined || isHidden(settlement)\n    const begun = isCounted ? this.#doubtful : this.#pending\n    if (settlement.state === 'pending') keepNewest(begun.set(id, { asked, taker, taken }))\n    if (settlement.state === 'settled') keepNewest(this.#told.add(id))",
    put: "if ('refusal' in settlement) return settlement\n    if (settlement.state === 'pending') keepNewest(this.#pending.set(id, { asked, taker, taken }))",
  },
  {
    name: 'failed-settlement-is-called-settled',
    ...{ ...market, file: 'operations/payments/facilitate.ts' },
    find: "if (outcome.state === 'settled')\n    return { success: true, transaction: outcome.transaction, ...about }",
    put: "if (outcome.state !== 'pending')\n    return { success: true, transaction: String(Object.values(outcome)[1]), ...about }",
  },
  {
    name: 'payment-to-others-becomes-a-balance',
    ...{ ...market, file: 'x402/check-exact-payment.ts' },
    find: "['payload.authorization.to', payload.to, network.payTo],",
    put: '',
  },
  {
    name: 'callers-have-no-allowance',
    ...{ ...market, file: 'services/payments/facilitating/allowances.ts' },
    find: 'if (used.settlements >= this.#bounds.settlementsPerDay) return',
    put: 'if (used.settlements < 0) return',
  },
]
