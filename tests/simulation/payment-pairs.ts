import {
  type PaymentEvent,
  type PaymentState,
  paymentEvents,
  paymentStates,
  paymentTable,
} from '../../packages/server/src/services/payments/claims/payment-states.ts'

/** Formats the pair of a payment's state and an event. */
export function formatPair(state: PaymentState, event: PaymentEvent): string {
  return `${state} + ${event}`
}

/** Lists the pairs that can happen, or those that cannot. */
export function listPairs({ possible }: { readonly possible: boolean }): string[] {
  return paymentStates.flatMap((state) =>
    paymentEvents
      .filter((event) => 'to' in paymentTable[state][event] === possible)
      .map((event) => formatPair(state, event)),
  )
}
