import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  decideStep,
  type Effect,
  hasArrived,
  isUntried,
  type PaymentEvent,
  type PaymentState,
  paymentEvents,
  paymentStates,
  paymentTable,
  type Rule,
} from './payment-states.ts'

type Pair = {
  readonly state: PaymentState
  readonly event: PaymentEvent
  readonly rule: Rule<PaymentState>
}

const pairs: readonly Pair[] = paymentStates.flatMap((state) =>
  paymentEvents.map((event) => ({ state, event, rule: paymentTable[state][event] })),
)
const steps = pairs.flatMap(({ state, event, rule }) =>
  'to' in rule ? [{ from: state, event, ...rule }] : [],
)
/** The events that carry money: its arrival, and what follows only from that. */
const byMoney: readonly PaymentEvent[] = ['arrived', 'kept', 'booked', 'charged']

describe('the table of payments', () => {
  test('the table says of every pair what follows, or why it cannot happen', () => {
    expect(pairs).toHaveLength(paymentStates.length * paymentEvents.length)
    for (const { state, event, rule } of pairs) {
      if ('to' in rule) expect(decideStep(state, event)).toBe(rule)
      else {
        expect(rule.impossible).toMatch(/\w{3,} \w+/)
        expect(() => decideStep(state, event)).toThrow(rule.impossible)
      }
    }
  })

  test('the table leads nowhere from delivered, and leaves void only where money came after all', () => {
    const leaving = steps.filter(({ from, to }) => from !== to)
    expect(leaving.filter(({ from }) => from === 'delivered')).toEqual([])
    for (const { event } of leaving.filter(({ from }) => from === 'void'))
      expect(byMoney).toContain(event)
  })

  test('the table lets only money lead to a state with money, and lets nothing lead out of these states', () => {
    for (const { from, event, to } of steps) {
      if (hasArrived(to) && !hasArrived(from)) expect(byMoney).toContain(event)
      if (hasArrived(from)) expect(hasArrived(to), `${from} + ${event}`).toBe(true)
      if (from === 'settled') expect(['settled', 'delivered']).toContain(to)
    }
  })

  test('the table asks nobody for another payment, and moves no money, once the money is here', () => {
    for (const { to, effects } of steps.filter(({ to }) => hasArrived(to))) {
      for (const each of ['submit', 'look up', 'say refused'] as const)
        expect(effects, to).not.toContain(each)
    }
  })

  test('the table gives a payment up for good only by the word that no money can come, as late money is looked for until then', () => {
    for (const { from, event, to } of steps)
      if (to === 'void' && from !== 'void') expect(event, from).toBe('voided')
  })

  test('the table lets money move only for a claim, which is there before', () => {
    for (const { to, effects } of steps) if (effects.includes('submit')) expect(to).toBe('claimed')
  })

  test('the table leads from every state to an end', () => {
    for (const state of paymentStates) {
      const reached = new Set<PaymentState>([state])
      for (const one of reached) for (const { from, to } of steps) if (from === one) reached.add(to)
      expect(reached.has('delivered') || reached.has('void'), state).toBe(true)
    }
  })

  test('the table names every state either untried, or under way, or with money', () => {
    for (const state of paymentStates)
      expect([isUntried(state), state === 'claimed', hasArrived(state)].filter(Boolean)).toEqual([
        true,
      ])
  })
})

/** The most that may be charged on a walk. */
const cap = 100n

/**
 * One payment, the world around it, and the work that its processes have before them: any of it may be cut off. The
 * ledger takes each entry once, as the real one does; it must never be told of one that is not true.
 */
type Walk = {
  state: PaymentState
  /** The network has moved the money. */
  isMoved: boolean
  /** It can move it no more. */
  isOver: boolean
  /** The request can be answered. */
  isSellable: boolean
  isKept: boolean
  isDeposited: boolean
  charges: bigint[]
  work: Effect[]
}

const begin = (): Walk => ({
  state: 'none',
  isMoved: false,
  isOver: false,
  isSellable: true,
  isKept: false,
  isDeposited: false,
  charges: [],
  work: [],
})

function happen(walk: Walk, event: PaymentEvent): void {
  const { to, effects } = decideStep(walk.state, event)
  walk.state = to
  walk.work.push(...effects)
}

/** Somebody brings the payment. */
function present(walk: Walk): void {
  if (!isUntried(walk.state)) happen(walk, 'presented')
  else if (walk.isMoved) happen(walk, 'used')
  else happen(walk, walk.isOver ? 'refused' : 'presented')
}

/** Asks the network, which answers late or not at all, as the number has it, but tells no lie. */
function ask(walk: Walk, effect: Effect, chance: number): void {
  if (effect === 'submit' && !walk.isOver && chance % 3 > 0) walk.isMoved = true
  if (chance % 5 === 0) happen(walk, 'pending')
  else if (walk.isMoved) happen(walk, 'arrived')
  else if (walk.isOver) happen(walk, 'voided')
  else happen(walk, effect === 'submit' && chance % 2 === 0 ? 'unsent' : 'failed')
}

const doers: {
  readonly [effect in Effect]?: (walk: Walk, effect: Effect, chance: number) => void
} = {
  submit: ask,
  'look up': ask,
  'find use': ask,
  'check ledger': (walk) => {
    if (walk.isDeposited) happen(walk, 'booked')
    if (walk.isDeposited && walk.charges.length > 0) happen(walk, 'charged')
  },
  'make answer': (walk) => {
    if (!walk.isSellable && !walk.isKept) return walk.work.push('book deposit')
    walk.isKept = true
    return happen(walk, 'kept')
  },
  'book deposit': (walk) => {
    expect(walk.isMoved, 'what is booked has come').toBe(true)
    walk.isDeposited = true
    happen(walk, 'booked')
  },
  'book sale': (walk, _, chance) => {
    // The two entries go into one block; where the deposit was cut off, so is the sale.
    if (!walk.isDeposited) return
    expect(walk.isKept, 'what is charged is kept').toBe(true)
    if (walk.charges.length === 0) walk.charges.push(BigInt(chance) % (cap + 1n))
    happen(walk, 'charged')
  },
}

/** Does the work that is next, or any other, as processes overtake each other. */
function work(walk: Walk, chance: number): void {
  const [effect] = walk.work.splice(chance % walk.work.length, 1)
  if (effect !== undefined) doers[effect]?.(walk, effect, chance)
}

const moves: readonly ((walk: Walk, chance: number) => void)[] = [
  present,
  work,
  work,
  work,
  (walk) => {
    if (walk.state !== 'none') happen(walk, 'revisited')
  },
  (walk) => happen(walk, 'overtaken'),
  // All processes die.
  (walk) => {
    walk.work = []
  },
  // A third party hands it in, and nobody tells us.
  (walk) => {
    if (!walk.isOver) walk.isMoved = true
  },
  (walk) => {
    walk.isOver = true
  },
  (walk) => {
    walk.isSellable = !walk.isSellable
  },
]

const walks = fc.array(fc.tuple(fc.nat(moves.length - 1), fc.nat(10_000)), { maxLength: 60 })

test('a payment is booked once if its money came, charged at most once and never above its cap, and comes to an end, whatever happens in whatever order', () => {
  fc.assert(
    fc.property(walks, (given) => {
      const walk = begin()
      let ended: PaymentState | undefined
      for (const [which, chance] of given) {
        moves[which]?.(walk, chance)
        if (ended === 'delivered') expect(walk.state).toBe('delivered')
        expect(walk.charges.length).toBeLessThanOrEqual(1)
        ended = walk.state
      }
      // In the end it can be executed no more, and nothing but reconciliation comes by.
      walk.isOver = true
      walk.work = []
      const isClaimed = walk.state !== 'none'
      for (let round = 0; round < 20 && isClaimed; round++) {
        if (walk.work.length === 0) happen(walk, 'revisited')
        else work(walk, 1)
      }
      for (const charge of walk.charges) expect(charge).toBeLessThanOrEqual(cap)
      if (!isClaimed) {
        expect(walk.isDeposited).toBe(false)
        return
      }
      expect(walk.isDeposited).toBe(walk.isMoved)
      expect(walk.isMoved ? ['settled', 'delivered'] : ['void']).toContain(walk.state)
      expect(walk.state === 'delivered' ? walk.isKept : true).toBe(true)
    }),
    { numRuns: 5_000 },
  )
})
