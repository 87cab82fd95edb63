/**
 * The states of a payment. `none` has no row; all others are in the column `state` of its claim.
 * none: nobody has claimed it. claimed: bound to one request; nobody knows yet whether its money came. answered: its
 * money is here and its answer is kept; nothing is booked. settled: its money is booked as the payer's balance.
 * delivered: booked, charged and answered. failed: moved no money when it was tried, and may still. void: never can.
 */
export const paymentStates = [
  'none',
  'claimed',
  'answered',
  'settled',
  'delivered',
  'failed',
  'void',
] as const

export type PaymentState = (typeof paymentStates)[number]
export type ClaimState = Exclude<PaymentState, 'none'>

/**
 * The events of a payment; the first four are of somebody who brings it. presented: its settler does not refuse it.
 * used: its authorization was used before. refused: its settler refuses it. overtaken: another process was first.
 * revisited: the reconciler comes by. Outcomes of asking the network: pending: not certain. unsent: nothing was sent,
 * nor will be. failed, voided: no money came; none ever can. arrived: its money is here. Durable facts: kept: its
 * answer is. booked: its deposit is in the ledger. charged: its sale is.
 */
export const paymentEvents = [
  'presented',
  'used',
  'refused',
  'overtaken',
  'revisited',
  'pending',
  'unsent',
  'failed',
  'voided',
  'arrived',
  'kept',
  'booked',
  'charged',
] as const

export type PaymentEvent = (typeof paymentEvents)[number]

/** The work that follows an event, in order. `make answer` books the deposit where nothing can be, or is to be, sold. */
export type Effect =
  | 'submit'
  | 'look up'
  | 'find use'
  | 'check ledger'
  | 'make answer'
  | 'give kept answer'
  | 'book deposit'
  | 'book sale'
  | 'say refused'
  | 'say pending'
  | 'say used'

export type Step<To extends PaymentState> = { readonly to: To; readonly effects: readonly Effect[] }
export type Rule<To extends PaymentState> = Step<To> | { readonly impossible: string }
type Rules<To extends PaymentState> = Readonly<Record<PaymentEvent, Rule<To>>>

const unclaimed = impossible('only a claim is asked about, and no claim is ever deleted')
const unasked = impossible(
  'its settler is not asked again while it is under way or its money is here',
)
const unkept = impossible(
  'an answer is kept before it is charged for, and what has one never fails',
)

/**
 * The one place that says what becomes of a payment. Money that is known to be here outlives every later word
 * against it. A door without a transfer of its own (a balance, a prepaid key, a channel) begins with an event of its
 * own in `none`, under the lock of its account, and joins where its money is: the rows `settled` and `delivered` do not
 * ask how it came.
 */
export const paymentTable: { readonly none: Rules<'none' | 'claimed'> } & {
  readonly [state in ClaimState]: Rules<ClaimState>
} = {
  none: {
    presented: go('claimed', 'submit'),
    used: go('none', 'find use'),
    refused: go('none', 'say refused'),
    // Its claim is lost, and its deposit is in the ledger: the database was restored.
    overtaken: go('none', 'say used'),
    revisited: unclaimed,
    pending: go('none', 'say pending'),
    unsent: unclaimed,
    failed: go('none', 'say refused'),
    voided: go('none', 'say refused'),
    arrived: go('claimed', 'book deposit'),
    kept: unclaimed,
    booked: unclaimed,
    charged: unclaimed,
  },
  claimed: {
    // The same claim is the same transaction, however often it is submitted.
    presented: go('claimed', 'submit'),
    used: unasked,
    refused: unasked,
    overtaken: go('claimed', 'say pending'),
    revisited: go('claimed', 'check ledger', 'look up'),
    pending: go('claimed', 'say pending'),
    // A payer who never comes back must not leave it open: an authorization may be valid for long.
    unsent: go('failed', 'say pending'),
    failed: go('failed', 'say refused'),
    voided: go('void', 'say refused'),
    arrived: go('claimed', 'make answer'),
    kept: go('answered', 'book deposit', 'book sale'),
    booked: go('settled'),
    charged: unkept,
  },
  answered: {
    ...stayWithMoney('answered'),
    presented: go('answered', 'give kept answer', 'book deposit', 'book sale'),
    revisited: go('answered', 'check ledger', 'book deposit'),
    arrived: go('answered', 'give kept answer', 'book deposit', 'book sale'),
    kept: go('answered', 'book deposit', 'book sale'),
    booked: go('settled'),
    charged: go('delivered'),
  },
  settled: {
    ...stayWithMoney('settled'),
    presented: go('settled', 'make answer'),
    revisited: go('settled'),
    arrived: go('settled', 'make answer'),
    kept: go('settled', 'book sale'),
    booked: go('settled'),
    charged: go('delivered'),
  },
  delivered: {
    ...stayWithMoney('delivered'),
    presented: go('delivered', 'give kept answer'),
    revisited: go('delivered'),
    arrived: go('delivered', 'give kept answer'),
    kept: go('delivered', 'give kept answer'),
    booked: go('delivered'),
    charged: go('delivered'),
  },
  failed: {
    presented: go('claimed', 'submit'),
    // Submitted before, it may have been handed in by a third party; sent again it could only fail.
    used: go('claimed', 'look up'),
    refused: go('failed', 'say refused'),
    overtaken: go('failed', 'say pending'),
    revisited: go('failed', 'check ledger', 'look up'),
    pending: go('failed', 'say pending'),
    unsent: go('failed', 'say pending'),
    failed: go('failed', 'say refused'),
    voided: go('void', 'say refused'),
    arrived: go('failed', 'make answer'),
    kept: go('answered', 'book deposit', 'book sale'),
    booked: go('settled'),
    charged: unkept,
  },
  // Nothing leads out but money: a chain that was reorganized, or a clock that was wrong, may show it after all.
  void: {
    presented: go('void', 'look up'),
    used: go('void', 'look up'),
    refused: go('void', 'say refused'),
    overtaken: go('void', 'say pending'),
    revisited: go('void'),
    pending: go('void', 'say pending'),
    unsent: go('void', 'say pending'),
    failed: go('void', 'say refused'),
    voided: go('void', 'say refused'),
    arrived: go('claimed', 'make answer'),
    kept: go('answered', 'book deposit', 'book sale'),
    booked: go('settled'),
    charged: unkept,
  },
}

/** Decides what an event does to a payment; throws where the table says that it cannot happen. */
export function decideStep(state: ClaimState, event: PaymentEvent): Step<ClaimState>
export function decideStep(state: PaymentState, event: PaymentEvent): Step<PaymentState>
export function decideStep(state: PaymentState, event: PaymentEvent): Step<PaymentState> {
  const rule: Rule<PaymentState> = paymentTable[state][event]
  if ('to' in rule) return rule
  throw new Error(
    `assertion failed: a payment that is ${state} is not ${event}: ${rule.impossible}`,
  )
}

/** Returns true while nothing of the payment is under way: it may be tried anew, under the terms of then. */
export function isUntried(state: PaymentState): state is 'none' | 'failed' | 'void' {
  return state === 'none' || state === 'failed' || state === 'void'
}

/** Returns true once the payment's money is known to be here; its claim names the transaction from then on. */
export function hasArrived(state: PaymentState): state is 'answered' | 'settled' | 'delivered' {
  return state === 'answered' || state === 'settled' || state === 'delivered'
}

/** The same for all states whose money is here: another process may have asked before it came, and hears it late. */
function stayWithMoney<S extends ClaimState>(state: S) {
  const say = go(state, 'say pending')
  return {
    used: unasked,
    refused: unasked,
    overtaken: say,
    pending: say,
    unsent: say,
    failed: say,
    voided: say,
  }
}

function go<To extends PaymentState>(to: To, ...effects: readonly Effect[]): Step<To> {
  return { to, effects }
}

function impossible(why: string): { readonly impossible: string } {
  return { impossible: why }
}
