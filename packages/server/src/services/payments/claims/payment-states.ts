/**
 * The states of a payment. `none` has no row; all others are in the column `state` of its claim. A read that the
 * payment's own money pays goes from none by `presented` to claimed, by `kept` to answered, and by `charged` to delivered.
 * - none: nobody has claimed it.
 * - claimed: bound to one request; its money is asked for, and no row says yet that it came.
 * - ready: the same, and its answer is kept already.
 * - held: the cap is held on the payer's balance.
 * - owed: the cap is held, and the answer is kept.
 * - answered: its own money is here and the answer is kept; the ledger has nothing of it yet.
 * - deposited: its money is the payer's balance in the ledger, free for anything.
 * - sold: charged to the balance and answered; its own money was not asked for, and may still come.
 * - delivered: charged and answered, and the ledger has all its money.
 * - failed: it moved no money when it was tried, and still may.
 * - void: it can never move money.
 */
export const paymentStates = [
  'none',
  'claimed',
  'ready',
  'held',
  'owed',
  'answered',
  'deposited',
  'sold',
  'delivered',
  'failed',
  'void',
] as const

export type PaymentState = (typeof paymentStates)[number]
export type ClaimState = Exclude<PaymentState, 'none'>

/**
 * The events of a payment.
 *
 * When somebody brings it:
 * - presented: its settler accepts it.
 * - used: its authorization was used before.
 * - refused: its settler refuses it.
 * - overtaken: another process was first.
 * - prepared: its answer is kept, before its money is asked for.
 *
 * Under the lock of the payer's account:
 * - covered: the balance has the cap, which is held from now on.
 * - short: a deposited payment comes again, and the balance has less than the cap. A new payment that no balance covers
 *   is presented.
 *
 * By the reconciler:
 * - revisited: it looks at the payment again.
 *
 * After asking the network:
 * - pending: the outcome is not certain.
 * - unsent: nothing was sent, and nothing will be.
 * - failed: no money came.
 * - voided: no money ever can.
 * - arrived: its money is here.
 * - reserved: its money is here, is not in the ledger yet, and the cap is held of it.
 *
 * Durable facts:
 * - kept: its answer is kept.
 * - served: its answer is kept, and the held cap pays for it.
 * - booked: its deposit is in the ledger.
 * - freed: the hold has ended, and its own money is on the balance.
 * - released: the hold has ended, and no money of its own came.
 * - charged: its sale is in the ledger.
 */
export const paymentEvents = [
  'presented',
  'used',
  'refused',
  'overtaken',
  'prepared',
  'covered',
  'short',
  'revisited',
  'pending',
  'unsent',
  'failed',
  'voided',
  'arrived',
  'reserved',
  'kept',
  'served',
  'booked',
  'freed',
  'released',
  'charged',
] as const

export type PaymentEvent = (typeof paymentEvents)[number]

/**
 * The work that may follow each event, in order. The code does this work where the table says so, and no other work
 * exists. If nothing follows, whoever brings the payment continues with its money, or is told that the outcome is not
 * known yet.
 */
type EffectOf = {
  readonly presented: 'submit' | 'look up' | 'hold'
  readonly used: 'find use' | 'look up'
  readonly overtaken: 'say used'
  readonly prepared: 'submit'
  readonly revisited: 'check ledger' | 'end hold' | 'book sale' | 'look up'
  readonly failed: 'say refused'
  readonly voided: 'say refused'
  readonly reserved: 'book deposit' | 'end hold'
  readonly kept: 'book sale' | 'give kept answer'
  readonly served: 'book sale' | 'give kept answer'
}

export type Effect<E extends PaymentEvent = PaymentEvent> = E extends keyof EffectOf
  ? EffectOf[E]
  : never

export type Step<To extends PaymentState, E extends PaymentEvent = PaymentEvent> = {
  readonly to: To
  readonly effects: readonly Effect<E>[]
}
export type Rule<To extends PaymentState, E extends PaymentEvent = PaymentEvent> =
  | Step<To, E>
  | { readonly impossible: string }
type Rules<To extends PaymentState> = { readonly [E in PaymentEvent]: Rule<To, E> }

const unclaimed = impossible('only a claim is asked about, and no claim is ever deleted')
const unasked = impossible(
  'its settler is not asked again while it is under way or its money is here',
)
const unkept = impossible(
  'an answer is kept before it is charged for, and what has one never fails',
)
const unheld = impossible('nothing is held for it that could be given back')
const uncounted = impossible('only money on a balance is asked whether it is still there')
const unbooked = impossible('its money and its sale are booked once it is answered')
const underWay = impossible('it is on its way over the network, or over, and takes no other one')

/**
 * The one table that decides what happens to a payment. Once its money is known to be here, no later event takes that
 * back. A payment is paid in one of two ways: its own money is asked for (`claimed`), or the payer's balance covers it
 * (`held`). One row decides, so it is never both at once. Every charge to a balance was held on it before, under the
 * lock of the account. A deposit and the sale that it pays for, written in one block, need no hold.
 */
export const paymentTable: { readonly none: Rules<'none' | 'claimed' | 'ready' | 'held'> } & {
  readonly [state in ClaimState]: Rules<ClaimState>
} = {
  none: {
    presented: go('claimed', 'submit'),
    used: go('none', 'find use'),
    refused: go('none'),
    // Its claim is lost, and its deposit is in the ledger: the database was restored.
    overtaken: go('none', 'say used'),
    prepared: go('ready', 'submit'),
    covered: go('held'),
    short: uncounted,
    revisited: unclaimed,
    pending: go('none'),
    unsent: unclaimed,
    failed: go('none', 'say refused'),
    voided: go('none', 'say refused'),
    arrived: go('claimed'),
    reserved: unclaimed,
    kept: unclaimed,
    served: unclaimed,
    booked: unclaimed,
    freed: unclaimed,
    released: unclaimed,
    charged: unclaimed,
  },
  claimed: {
    // The same claim is the same transaction, however often it is submitted.
    presented: go('claimed', 'submit'),
    used: unasked,
    refused: unasked,
    overtaken: go('claimed'),
    prepared: underWay,
    covered: underWay,
    short: uncounted,
    revisited: go('claimed', 'check ledger', 'look up'),
    pending: go('claimed'),
    // A payer who never comes back must not leave it open: an authorization may be valid for long.
    unsent: go('failed'),
    failed: go('failed', 'say refused'),
    voided: go('void', 'say refused'),
    arrived: go('claimed'),
    // Its request may be about to write: nobody else gets the money before that is certain.
    reserved: go('held', 'book deposit', 'end hold'),
    kept: go('answered', 'book sale'),
    served: go('claimed'),
    booked: go('deposited'),
    freed: unheld,
    released: unheld,
    charged: unkept,
  },
  // Whatever fails, its answer waits for its money until that can never come: nobody could give it back.
  ready: {
    presented: go('ready', 'submit'),
    used: unasked,
    refused: unasked,
    overtaken: go('ready'),
    prepared: underWay,
    covered: underWay,
    short: uncounted,
    revisited: go('ready', 'check ledger', 'look up'),
    pending: go('ready'),
    unsent: go('ready'),
    failed: go('ready', 'say refused'),
    voided: go('void', 'say refused'),
    arrived: go('ready'),
    reserved: go('ready'),
    kept: go('answered', 'book sale'),
    served: go('ready'),
    booked: unbooked,
    freed: unheld,
    released: unheld,
    charged: unbooked,
  },
  held: {
    presented: go('held'),
    used: unasked,
    refused: unasked,
    overtaken: go('held'),
    prepared: underWay,
    covered: underWay,
    short: uncounted,
    revisited: go('held', 'end hold'),
    // A process that asked before it was held hears it late.
    pending: go('held'),
    unsent: go('held'),
    failed: go('held'),
    voided: go('held'),
    arrived: go('held'),
    reserved: go('held', 'book deposit', 'end hold'),
    kept: go('owed', 'book sale'),
    served: go('owed', 'book sale'),
    // Its request may have written, which must be charged for.
    booked: go('held'),
    freed: go('deposited'),
    released: go('failed'),
    charged: go('sold'),
  },
  owed: {
    ...stayWithMoney('owed'),
    presented: go('owed'),
    revisited: go('owed', 'check ledger', 'book sale'),
    arrived: go('owed'),
    reserved: go('owed', 'book deposit'),
    kept: go('owed', 'book sale'),
    served: go('owed', 'book sale'),
    booked: go('owed'),
    charged: go('sold'),
  },
  answered: {
    ...stayWithMoney('answered'),
    presented: go('answered'),
    revisited: go('answered', 'check ledger', 'book sale'),
    arrived: go('answered'),
    // Its deposit and its sale go into the ledger together.
    reserved: go('answered'),
    kept: go('answered', 'book sale'),
    served: go('answered'),
    booked: go('deposited'),
    charged: go('delivered'),
  },
  deposited: {
    ...stayWithMoney('deposited'),
    // Its money may be spent by now.
    presented: go('deposited', 'hold'),
    covered: go('held'),
    short: go('deposited'),
    revisited: go('deposited'),
    arrived: go('deposited'),
    reserved: go('deposited', 'book deposit'),
    kept: go('deposited'),
    served: go('deposited'),
    booked: go('deposited'),
    charged: go('delivered'),
  },
  // Its authorization was never handed in by us; who saw it may do so until its end.
  sold: {
    ...stayWithMoney('sold'),
    presented: go('sold'),
    revisited: go('sold', 'check ledger', 'look up'),
    pending: go('sold'),
    failed: go('sold'),
    voided: go('delivered'),
    arrived: go('sold'),
    reserved: go('sold', 'book deposit'),
    kept: go('sold', 'give kept answer'),
    served: go('sold', 'give kept answer'),
    booked: go('delivered'),
    charged: go('sold'),
  },
  delivered: {
    ...stayWithMoney('delivered'),
    presented: go('delivered'),
    revisited: go('delivered'),
    arrived: go('delivered'),
    reserved: go('delivered', 'book deposit'),
    kept: go('delivered', 'give kept answer'),
    served: go('delivered', 'give kept answer'),
    booked: go('delivered'),
    charged: go('delivered'),
  },
  failed: {
    presented: go('claimed', 'submit'),
    // Submitted before, it may have been handed in by a third party; sent again it could only fail.
    used: go('claimed', 'look up'),
    refused: go('failed'),
    overtaken: go('failed'),
    prepared: go('ready', 'submit'),
    covered: go('held'),
    short: uncounted,
    revisited: go('failed', 'check ledger', 'look up'),
    pending: go('failed'),
    unsent: go('failed'),
    failed: go('failed', 'say refused'),
    voided: go('void', 'say refused'),
    arrived: go('failed'),
    reserved: go('held', 'book deposit', 'end hold'),
    kept: go('answered', 'book sale'),
    served: go('failed'),
    booked: go('deposited'),
    freed: unheld,
    released: unheld,
    charged: unkept,
  },
  // Nothing leads out but money: a chain that was reorganized, or a clock that was wrong, may show it after all.
  void: {
    presented: go('void', 'look up'),
    used: go('void', 'look up'),
    refused: go('void'),
    overtaken: go('void'),
    prepared: impossible('nothing is kept for what can never be made'),
    covered: impossible('what can never be made pays for nothing'),
    short: uncounted,
    revisited: go('void'),
    pending: go('void'),
    unsent: go('void'),
    failed: go('void', 'say refused'),
    voided: go('void', 'say refused'),
    arrived: go('claimed'),
    reserved: go('held', 'book deposit', 'end hold'),
    kept: go('answered', 'book sale'),
    served: go('void'),
    booked: go('deposited'),
    freed: unheld,
    released: unheld,
    charged: unkept,
  },
}

/** Decides what an event does to a payment; throws where the table says that it cannot happen. */
export function decideStep<E extends PaymentEvent>(state: ClaimState, event: E): Step<ClaimState, E>
export function decideStep<E extends PaymentEvent>(
  state: PaymentState,
  event: E,
): Step<PaymentState, E>
export function decideStep<E extends PaymentEvent>(
  state: PaymentState,
  event: E,
): Step<PaymentState, E> {
  const rules: Rules<PaymentState> = paymentTable[state]
  const rule: Rule<PaymentState, E> = rules[event]
  if ('to' in rule) return rule
  throw new Error(
    `assertion failed: a payment that is ${state} is not ${event}: ${rule.impossible}`,
  )
}

/** Returns false where the table says that the event cannot happen to a payment of this state. */
export function canHappen(state: PaymentState, event: PaymentEvent): boolean {
  return 'to' in paymentTable[state][event]
}

/** Returns true while nothing of the payment is under way: it may be tried anew, under the terms of then. */
export function isUntried(state: PaymentState): state is 'none' | 'failed' | 'void' {
  return state === 'none' || state === 'failed' || state === 'void'
}

/** Returns true once the payment is paid, or its money is here: its own, or what the balance was charged. */
export function hasArrived(
  state: PaymentState,
): state is 'owed' | 'answered' | 'deposited' | 'sold' | 'delivered' {
  return state !== 'claimed' && state !== 'ready' && state !== 'held' && !isUntried(state)
}

/** Returns true while a part of the payer's balance is held for the payment. */
export function isHeld(state: PaymentState): state is 'held' | 'owed' {
  return state === 'held' || state === 'owed'
}

/** Says whether a claim of this state names the transaction that moved its own money; undefined where some do. */
export function hasTransaction(state: ClaimState): boolean | undefined {
  if (state === 'answered' || state === 'deposited') return true
  return state === 'claimed' || state === 'ready' || isUntried(state) ? false : undefined
}

/** The same for all states whose money is here: another process may have asked before it came, and hears it late. */
function stayWithMoney<S extends ClaimState>(state: S) {
  const say = go(state)
  return {
    used: unasked,
    refused: unasked,
    overtaken: say,
    prepared: underWay,
    covered: underWay,
    short: uncounted,
    freed: unheld,
    released: unheld,
    pending: say,
    unsent: say,
    failed: say,
    voided: say,
  }
}

function go<To extends PaymentState, W extends Effect = never>(
  to: To,
  ...effects: readonly W[]
): { readonly to: To; readonly effects: readonly W[] } {
  return { to, effects }
}

function impossible(why: string): { readonly impossible: string } {
  return { impossible: why }
}
