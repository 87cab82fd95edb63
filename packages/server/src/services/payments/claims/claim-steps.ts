import { requirePresent } from '../../../base/assert.ts'
import type { Queryable } from '../../../database/database.ts'
import { isUniqueViolation } from '../../../database/errors.ts'
import type { Settlement } from '../../../x402/facilitator.ts'
import { makePendingFault } from '../payment-faults.ts'
import type { PaymentPorts } from '../payment-ports.ts'
import {
  type Claim,
  type ClaimFacts,
  type ClaimUse,
  findClaim,
  isSameUse,
  updateStates,
} from './claim-store.ts'
import {
  type ClaimState,
  canHappen,
  decideStep,
  isHeld,
  type PaymentEvent,
  type PaymentState,
  type Step,
} from './payment-states.ts'
import type { KeepOrder, KeptReply, ReplyToKeep } from './reply-store.ts'

type StepPorts = Pick<PaymentPorts, 'onStep'> & { readonly database: Queryable }
type Known = Pick<Claim, 'id' | 'state'>

/** A claim changes its state a few times in its life, so nobody is overtaken more often. */
const triesMax = 10

/**
 * Takes the step by which the table of payments (payment-states.ts) answers an event, and tells who listens. The row is
 * not moved here.
 */
export function takeStep<E extends PaymentEvent>(
  ports: Pick<StepPorts, 'onStep'>,
  state: ClaimState,
  event: E,
): Step<ClaimState, E>
export function takeStep<E extends PaymentEvent>(
  ports: Pick<StepPorts, 'onStep'>,
  state: PaymentState,
  event: E,
): Step<PaymentState, E>
export function takeStep<E extends PaymentEvent>(
  { onStep }: Pick<StepPorts, 'onStep'>,
  state: PaymentState,
  event: E,
): Step<PaymentState, E> {
  onStep?.(state, event)
  return decideStep(state, event)
}

/** The event that the network's answer about a payment is. */
export function toEvent(outcome: Settlement): PaymentEvent {
  if (outcome.state === 'settled') return 'arrived'
  if (outcome.state === 'failed') return outcome.final ? 'voided' : 'failed'
  return outcome.isUnsent === true ? 'unsent' : 'pending'
}

/**
 * Moves a claim for who was told its state by reading it; false where somebody else was first. PAYMENT_PENDING where
 * another payment takes its name in this moment.
 */
export async function tryEvent(
  { database }: { readonly database: Queryable },
  { id, state }: Known,
  change: ClaimFacts & {
    readonly event: PaymentEvent
    readonly writeForm?: string | null
    readonly version?: string
  },
): Promise<boolean> {
  const { event, writeForm, version } = change
  const tried = { ...(writeForm !== undefined && { writeForm }), ...(version && { version }) }
  const known = { ids: [id], state, event, ...tried }
  try {
    return (await updateStates(database, known, change)).length === 1
  } catch (error) {
    // Whoever asks again gets what that payment buys. A transaction that this is a part of must not go on.
    if (isUniqueViolation(error)) throw makePendingFault(id, 'another payment took its name')
    throw error
  }
}

/** Moves a claim by an event that is true whatever somebody else made of the claim meanwhile. */
export function applyEvent<E extends PaymentEvent>(
  ports: StepPorts,
  claim: Known,
  change: ClaimFacts & { readonly event: E },
): Promise<Step<ClaimState, E>> {
  return attemptFromState(ports, { claim, event: change.event }, async ({ state }) => {
    const step = takeStep(ports, state, change.event)
    // Own money that comes while a balance is held is noted: the hold must not end as if none had.
    const isNoted = change.settledBy === undefined || !isHeld(state)
    const isThere =
      (step.to === state && isNoted) || (await tryEvent(ports, { ...claim, state }, change))
    return isThere ? step : undefined
  })
}

/** The same for many claims, by one statement for those whose state is as known. */
export async function applyEventToAll(
  ports: StepPorts,
  claims: readonly Known[],
  event: PaymentEvent,
): Promise<void> {
  for (const state of new Set(claims.map((claim) => claim.state))) {
    const known = claims.filter((claim) => claim.state === state)
    const isNow = canHappen(state, event)
    if (isNow && takeStep(ports, state, event).to === state) continue
    const ids = known.map(({ id }) => id)
    const moved = new Set(isNow ? await updateStates(ports.database, { ids, state, event }) : [])
    for (const claim of known.filter(({ id }) => !moved.has(id)))
      await applyEvent(ports, await readClaim(ports, claim), { event })
  }
}

/**
 * Keeps an answer for a claim. If the result has no `kept`, the claim was delivered and its answer kept before. 503 where
 * another process has taken its money for the payer's balance meanwhile, or has held it anew for another use: the same
 * request may try again.
 */
export function keepAnswer(
  ports: StepPorts & { readonly keep: (order: KeepOrder) => Promise<KeptReply | undefined> },
  claim: Known & ClaimUse,
  keeping: ReplyToKeep,
): Promise<{ readonly state: ClaimState; readonly kept?: KeptReply }> {
  const event = claim.state === 'held' ? 'served' : 'kept'
  return attemptFromState(ports, { claim, event }, async (now) => {
    const { state } = now
    const { to, effects } = takeStep(ports, state, event)
    if (effects.includes('give kept answer')) return { state }
    if (!effects.includes('book sale'))
      throw makePendingFault(claim.id, 'another process gave it up')
    if (!isSameUse(now, claim)) throw makePendingFault(claim.id, 'it is for another use by now')
    const kept = await ports.keep({ claim: { ...claim, state }, event, keeping })
    return kept && { state: to, kept }
  })
}

/**
 * Tries by the state that the claim is known to have, then by the one that it has, until it was that one. An event that
 * cannot happen to the known state happened to a later one, to which another process has brought the claim.
 */
async function attemptFromState<K extends Known, T>(
  ports: StepPorts,
  { claim, event }: { readonly claim: K; readonly event: PaymentEvent },
  attempt: (now: K | Claim) => Promise<T | undefined>,
): Promise<T> {
  let now = canHappen(claim.state, event) ? claim : await readClaim(ports, claim)
  for (let n = 0; n < triesMax; n++) {
    const done = await attempt(now)
    if (done !== undefined) return done
    now = await readClaim(ports, claim)
  }
  throw new Error(`the claim ${claim.id} is moved by others all the time`)
}

async function readClaim({ database }: StepPorts, { id }: Known): Promise<Claim> {
  return requirePresent(await findClaim(database, { id }), `the claim ${id}`)
}
