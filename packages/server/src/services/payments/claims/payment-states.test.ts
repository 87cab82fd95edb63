import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  decideStep,
  type Effect,
  hasArrived,
  isHeld,
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
const byMoney: readonly PaymentEvent[] = [
  'arrived',
  'reserved',
  'kept',
  'booked',
  'freed',
  'charged',
]
/** The events by which a balance pays. */
const byBalance: readonly PaymentEvent[] = ['served', 'charged']

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
      if (hasArrived(to) && !hasArrived(from))
        expect(from === 'held' ? [...byMoney, ...byBalance] : byMoney).toContain(event)
      if (from === 'deposited') expect(['deposited', 'held', 'delivered']).toContain(to)
      else if (hasArrived(from)) expect(hasArrived(to), `${from} + ${event}`).toBe(true)
    }
  })

  test('the table holds a cap where a balance covers it, or of money that came, and gives it back or charges it', () => {
    for (const { from, event, to } of steps) {
      if (isHeld(to) && !isHeld(from)) expect(['covered', 'reserved']).toContain(event)
      if (isHeld(from) && !isHeld(to))
        expect(from === 'owed' ? ['charged'] : ['charged', 'freed', 'released']).toContain(event)
    }
  })

  test('the table lets nothing that is free on a balance be charged without a hold', () => {
    for (const { from, event, effects } of steps)
      if (from === 'deposited') expect(effects, event).not.toContain('book sale')
  })

  test('the table asks nobody for another payment, and moves no money, once the money is here', () => {
    for (const { event, to, effects } of steps.filter(({ to }) => hasArrived(to))) {
      expect(effects, to).not.toContain('submit')
      // That it is on a balance, and spent, only the lock of the account tells.
      if (event !== 'short') expect(effects, to).not.toContain('say refused')
      // That of others is not here.
      if (to !== 'sold') expect(effects, to).not.toContain('look up')
    }
  })

  test('the table gives a payment up for good only by the word that no money can come, as late money is looked for until then', () => {
    for (const { from, event, to } of steps)
      if (to === 'void' && from !== 'void') expect(event, from).toBe('voided')
  })

  test('the table lets money move only for a claim, which is there before', () => {
    for (const { to, effects } of steps)
      if (effects.includes('submit')) expect(['claimed', 'ready']).toContain(to)
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
      expect(
        [isUntried(state), ['claimed', 'ready', 'held'].includes(state), hasArrived(state)].filter(
          Boolean,
        ),
      ).toEqual([true])
  })
})

/** The most that may be charged on a walk, and what the payment moves. */
const cap = 100n

/** The money that an answer is made for: its own, which came, or what is held of the balance. */
type Means = 'money' | 'hold'
/** The table's effects, and what somebody does who has the money of a claim, or finds it. */
type Work = {
  readonly effect: Effect | 'make answer'
  readonly by: Means
  /** The claim names the transaction of its own money to who works on it. */
  readonly isNamed: boolean
}

/**
 * One payment, its payer's balance, the world around it, and the work that its processes have before them: any of it
 * may be cut off. The ledger takes each entry once, as the real one does; it must never be told of one that is not true.
 */
type Walk = {
  state: PaymentState
  /** The network has moved the money. */
  isMoved: boolean
  /** It can move it no more. */
  isOver: boolean
  /** The request can be answered. */
  isSellable: boolean
  /** The request writes. */
  readonly isWrite: boolean
  /** Its answer is kept before its money is asked for, as where that goes to the seller. */
  readonly isFirst: boolean
  hasWritten: boolean
  /** The claim names the transaction of its own money. */
  isNamed: boolean
  /** It was used before it came here: its claim is for a deposit, and whoever presents it is refused. */
  isUsedBefore: boolean
  kept: Means | undefined
  isDeposited: boolean
  charges: bigint[]
  /** The payer's balance in the ledger. */
  balance: bigint
  work: Work[]
}

const begin = (isWrite: boolean, isFirst: boolean, balance: bigint): Walk => ({
  state: 'none',
  isMoved: false,
  isOver: false,
  isSellable: true,
  isWrite,
  isFirst: isFirst && !isWrite,
  hasWritten: false,
  isNamed: false,
  isUsedBefore: false,
  kept: undefined,
  isDeposited: false,
  charges: [],
  balance,
  work: [],
})

function happen(walk: Walk, event: PaymentEvent): readonly Effect[] {
  const from = walk.state
  const { to, effects } = decideStep(from, event)
  if (event === 'reserved' && to !== from) walk.isNamed = true
  walk.state = to
  const by: Means = event !== 'arrived' && isHeld(to) ? 'hold' : 'money'
  const { isNamed } = walk
  const all = [...effects, ...listNext(from, event, to)]
  walk.work.push(...all.map((effect) => ({ effect, by, isNamed })))
  return effects
}

/** Lists what is done by who knows that the money of the payment is here, or held for it. */
function listNext(
  from: PaymentState,
  event: PaymentEvent,
  to: PaymentState,
): readonly Work['effect'][] {
  if (event === 'covered') return ['make answer']
  if (event !== 'arrived' && (event !== 'presented' || !(isHeld(to) || hasArrived(to)))) return []
  if (to === 'owed' || to === 'answered') return ['book sale']
  if (to === 'delivered') return []
  if (event === 'presented') return to === 'held' ? ['make answer'] : []
  if (to === 'ready') return ['make answer']
  if (to === 'deposited') return ['hold']
  return from === 'none' || to === 'sold' ? ['book deposit'] : ['make answer']
}

/** Reads what others may take: all that is not held, as long as its sale is not in the ledger. */
function readFree({ balance, state, charges }: Walk): bigint {
  return balance - (isHeld(state) && charges.length === 0 ? cap : 0n)
}

/** Somebody brings the payment, who may want it to be paid from the balance. */
function present(walk: Walk, chance: number): void {
  if (walk.isUsedBefore) return
  const isOpen = walk.state === 'none' || walk.state === 'failed'
  const isCovered = readFree(walk) >= cap && !walk.isMoved && !walk.isOver
  if (isOpen && isCovered && chance % 3 > 0) happen(walk, 'covered')
  else if (!isUntried(walk.state)) happen(walk, 'presented')
  else if (isOpen && walk.isFirst && walk.isSellable && !walk.isMoved && !walk.isOver) {
    walk.kept = 'money'
    happen(walk, 'prepared')
  } else if (walk.isMoved) happen(walk, 'used')
  else happen(walk, walk.isOver ? 'refused' : 'presented')
}

/** Asks the network, which answers late or not at all, as the number has it, but tells no lie. */
function ask(walk: Walk, { effect }: Work, chance: number): void {
  if (effect === 'submit' && !walk.isOver && chance % 3 > 0) walk.isMoved = true
  if (chance % 5 === 0) happen(walk, 'pending')
  else if (walk.isMoved) {
    if (walk.state === 'none') walk.isUsedBefore = true
    happen(walk, 'arrived')
  } else if (walk.isOver) happen(walk, 'voided')
  else if (walk.state !== 'sold')
    happen(walk, effect === 'submit' && chance % 2 === 0 ? 'unsent' : 'failed')
}

function deposit(walk: Walk): void {
  expect(walk.isMoved, 'what is booked has come').toBe(true)
  if (!walk.isDeposited) walk.balance += cap
  walk.isDeposited = true
}

/** Gives back what is held where nothing was written; a write that was made is answered from the log. */
function endHold(walk: Walk): void {
  if (walk.state !== 'held') return
  if (walk.isNamed) deposit(walk)
  if (!walk.hasWritten) happen(walk, walk.isNamed ? 'freed' : 'released')
  else if (happen(walk, 'served').includes('book sale'))
    walk.kept ??= walk.isNamed ? 'money' : 'hold'
}

/** Makes an answer; a write notes itself first, which it can only while its money is kept for it. */
function makeAnswer(walk: Walk, { by, isNamed }: Work, chance: number): void {
  // Own money stays kept when it becomes a hold; a hold that was given back is not kept by a claim of own money.
  const mayWrite = walk.state === 'held' || (walk.state === 'claimed' && by === 'money')
  if (walk.kept === undefined && (!walk.isSellable || (walk.isWrite && !mayWrite))) {
    if (by === 'hold') endHold(walk)
    else happen(walk, 'reserved')
    return
  }
  if (walk.isWrite && walk.kept === undefined) {
    walk.hasWritten = true
    // It dies before the answer is kept.
    if (chance % 4 === 0) return
  }
  if (!happen(walk, by === 'hold' ? 'served' : 'kept').includes('book sale')) return
  if (walk.kept !== undefined) return
  walk.kept = isNamed ? 'money' : by
  if (by === 'money') walk.isNamed = true
}

const doers: {
  readonly [effect in Work['effect']]?: (walk: Walk, work: Work, chance: number) => void
} = {
  submit: ask,
  'look up': ask,
  'find use': ask,
  'check ledger': (walk) => {
    if (walk.isDeposited) happen(walk, 'booked')
    if (walk.charges.length > 0) happen(walk, 'charged')
  },
  hold: (walk) => {
    if (walk.state !== 'deposited') happen(walk, 'overtaken')
    else happen(walk, readFree(walk) >= cap ? 'covered' : 'short')
  },
  'end hold': endHold,
  'make answer': makeAnswer,
  'book deposit': (walk) => {
    // It goes into the ledger together with the sale.
    if (walk.state === 'answered') return
    if (walk.kept === 'hold' && !walk.isMoved) return
    deposit(walk)
    if (walk.state !== 'held') happen(walk, 'booked')
  },
  'book sale': (walk, _, chance) => {
    expect(walk.kept, 'what is charged is kept').toBeDefined()
    if (walk.kept === 'money') deposit(walk)
    if (walk.charges.length === 0) {
      const charge = BigInt(chance) % (cap + 1n)
      walk.charges.push(charge)
      walk.balance -= charge
    }
    happen(walk, 'charged')
  },
}

/** Does the work that is next, or any other, as processes overtake each other. */
function work(walk: Walk, chance: number): void {
  const [one] = walk.work.splice(chance % walk.work.length, 1)
  if (one !== undefined) doers[one.effect]?.(walk, one, chance)
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
  // The payer buys something else with what is free, or deposits.
  (walk, chance) => {
    const free = readFree(walk)
    if (chance % 2 === 0) walk.balance += BigInt(chance % 150)
    else if (free > 0n) walk.balance -= chance % 3 === 0 ? free : BigInt(chance) % free
  },
]

const walks = fc.record({
  isWrite: fc.boolean(),
  isFirst: fc.boolean(),
  balance: fc.constantFrom(0n, 60n, 100n, 250n),
  given: fc.array(fc.tuple(fc.nat(moves.length - 1), fc.nat(10_000)), { maxLength: 60 }),
})

test('a payment is booked once if its money came, charged at most once, never above its cap and never more than its payer has, and comes to an end, whatever happens in whatever order', () => {
  fc.assert(
    fc.property(walks, ({ isWrite, isFirst, balance, given }) => {
      const walk = begin(isWrite, isFirst, balance)
      let ended: PaymentState | undefined
      for (const [which, chance] of given) {
        moves[which]?.(walk, chance)
        if (ended === 'delivered') expect(walk.state).toBe('delivered')
        expect(walk.charges.length).toBeLessThanOrEqual(1)
        expect(walk.balance, 'nobody is in debt').toBeGreaterThanOrEqual(0n)
        ended = walk.state
      }
      // In the end it can be executed no more, and nothing but reconciliation comes by.
      walk.isOver = true
      walk.work = []
      const isClaimed = walk.state !== 'none'
      for (let round = 0; round < 20 && isClaimed; round++) {
        if (walk.work.length === 0) happen(walk, 'revisited')
        else work(walk, 1)
        expect(walk.balance, 'nobody is in debt').toBeGreaterThanOrEqual(0n)
      }
      for (const charge of walk.charges) expect(charge).toBeLessThanOrEqual(cap)
      if (!isClaimed) {
        expect(walk.isDeposited).toBe(false)
        return
      }
      if (walk.hasWritten) expect(walk.charges).toHaveLength(1)
      expect(walk.state).not.toBe('held')
      expect(walk.isDeposited).toBe(walk.isMoved)
      const unmoved = walk.charges.length > 0 ? 'delivered' : 'void'
      expect(walk.isMoved ? ['deposited', 'delivered'] : [unmoved]).toContain(walk.state)
      expect(walk.state === 'delivered' ? walk.kept : 'kept').toBeDefined()
    }),
    { numRuns: Number(process.env.PAYMENT_WALKS ?? 5_000) },
  )
})
