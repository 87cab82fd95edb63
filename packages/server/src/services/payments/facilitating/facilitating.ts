import { createHash } from 'node:crypto'
import type { World } from '../../../base/world.ts'
import type { FacilitatorConfig } from '../../../config/facilitator-config.ts'
import type { Refusal, Settlement } from '../../../x402/facilitator.ts'
import type { Requirement, SignedPayment } from '../../../x402/protocol.ts'
import { getPaymentIdentity } from '../claims/stored-payment.ts'
import type { PaymentMethod, PaymentPorts } from '../payment-ports.ts'
import { makeSettler, type Settler } from '../purchase.ts'
import { Allowances, type Taken } from './allowances.ts'
import {
  type ForeignRefusal,
  parseForeignRequirement,
  type SentRequirements,
} from './foreign-requirement.ts'
import {
  deriveSettlementId,
  dropTaker,
  makeSettlementTaker,
  readTaker,
  takePayment,
  takeSettledPayment,
} from './two-uses.ts'

/** The end of a settlement, for metrics; `gas` in the smallest unit of the chain's own coin. */
export type FacilitatedOutcome = {
  readonly outcome: 'settled' | 'failed' | 'pending' | 'refused'
  readonly network: string
  readonly gas: bigint
}

type Ports = Pick<PaymentPorts, 'database' | 'methods' | 'depositSecret'> & {
  readonly world: World
  readonly onOutcome?: ((outcome: FacilitatedOutcome) => void) | undefined
}

type ForeignDue = {
  readonly method: PaymentMethod
  readonly payment: SignedPayment
  readonly requirement: Requirement
}

/** A settlement as it was begun: who asked for what, and the name by which it has its payment. */
type Begun = { readonly asked: string; readonly taker: string; readonly taken?: Taken | undefined }

/** A settlement that is asked for, by whom, and the name of what is asked. */
type Bringing = { readonly caller: string; readonly id: string; readonly asked: string }

/** `taken` where it was taken of its caller's day. */
type Brought = {
  readonly outcome: Settlement | ForeignRefusal
  readonly taken?: Taken | undefined
}

/** The time for which the first to ask for a settlement that nobody could look for comes before all others. */
const firstMs = 600_000
/** Settlements of which it is remembered what was answered; more than that are forgotten, the oldest first. */
const rememberedMax = 10_000

/**
 * Checks and settles payments to others, for other x402 servers. None of that is in our books: a payment goes from its
 * payer to the payee of the other server, and costs us gas alone.
 */
export class Facilitating {
  readonly settings: FacilitatorConfig
  readonly #ports: Ports
  readonly #allowances: Allowances
  readonly #underWay = new Set<string>()
  /** Settlements that were answered as pending: asked again by the same, they are brought to their end. */
  readonly #pending = new Map<string, Begun>()
  /**
   * The same of callers without an allowance: a process that died may have sent them, or somebody else. No limit of a
   * day bounds these, so they take no place of others.
   */
  readonly #doubtful = new Map<string, Begun>()
  /** The first request for each settlement that was answered as pending while nobody could read who had asked before. */
  readonly #unread = new Map<string, { readonly asked: string; readonly atMs: number }>()
  /** Settlements that were told: one of several nodes behind a URL may not know yet that the payment is used. */
  readonly #told = new Set<string>()

  constructor(ports: Ports, settings: FacilitatorConfig) {
    this.#ports = ports
    this.settings = settings
    this.#allowances = new Allowances(settings, ports.world)
  }

  /** The methods whose payments are settled for others: by our own key alone. */
  listMethods(): readonly PaymentMethod[] {
    const { networks } = this.settings
    return this.#ports.methods.filter(
      ({ network, facilitator }) =>
        facilitator.address !== undefined &&
        (networks === undefined ||
          networks.includes(network.id) ||
          networks.includes(network.v1Name)),
    )
  }

  /** Returns true where requirements are of another payee than this service. */
  isForeign({ payTo }: SentRequirements): boolean {
    if (typeof payTo !== 'string') return false
    return this.#ports.methods.every(({ network }) => network.payTo !== payTo.toLowerCase())
  }

  /** Checks a payment to somebody else; undefined where it is good. */
  async verify(
    payment: SignedPayment,
    sent: SentRequirements,
  ): Promise<ForeignRefusal | undefined> {
    const due = this.#findDue(payment, sent)
    if ('refusal' in due) return due
    const verdict = await this.#makeSettler(due).verify()
    return verdict.ok ? undefined : toForeignRefusal(verdict)
  }

  /**
   * Settles a payment to somebody else. One call alone is told that it is made: a second one would let another server
   * deliver twice for it.
   */
  async settle(
    caller: string,
    payment: SignedPayment,
    sent: SentRequirements,
  ): Promise<Settlement | ForeignRefusal> {
    const due = this.#findDue(payment, sent)
    if ('refusal' in due) return this.#report(due, payment.network)
    const { network } = due.requirement
    const id = deriveSettlementId(getPaymentIdentity(network, payment))
    if (this.#underWay.has(id))
      return this.#report({ refusal: 'settlement_under_way' }, payment.network)
    this.#underWay.add(id)
    try {
      return this.#report(await this.#settleOnce(caller, id, due), payment.network)
    } finally {
      this.#underWay.delete(id)
    }
  }

  async #settleOnce(
    caller: string,
    id: string,
    due: ForeignDue,
  ): Promise<Settlement | ForeignRefusal> {
    const { world } = this.#ports
    if (this.#told.has(id)) return { refusal: 'authorization_used' }
    const asked = makeAskedName(caller, due)
    const known = this.#pending.get(id) ?? this.#doubtful.get(id)
    const pending = known ?? (await this.#readBegun(id))
    if (pending === 'unknown') {
      await this.#noteUnread({ id, asked }, due)
      return unreachable
    }
    // On the chain anybody can read it, and would take the one answer that its server waits for.
    if (pending !== undefined && pending.asked !== asked) return { refusal: 'settlement_under_way' }
    const taker = pending?.taker ?? makeSettlementTaker(world.randomBytes(16))
    // A process before this one, or another one, may have sent it.
    if (known === undefined && pending !== undefined) keepNewest(this.#doubtful.set(id, pending))
    const { outcome, taken } = await this.#bring({ caller, id, asked }, due)
    const settlement =
      'refusal' in outcome ? outcome : await this.#judge({ id, asked, taker }, due, outcome)
    for (const begun of [this.#pending, this.#doubtful, this.#unread]) begun.delete(id)
    if (taken !== undefined) this.#count(taken, settlement)
    if (pending !== undefined || taken !== undefined) await this.#forget({ id, asked }, settlement)
    if ('refusal' in settlement || isUnsent(settlement)) return settlement
    // One that is counted already is only looked up.
    const isCounted = taken === undefined || isHidden(settlement)
    const begun = isCounted ? this.#doubtful : this.#pending
    if (settlement.state === 'pending') keepNewest(begun.set(id, { asked, taker, taken }))
    if (settlement.state === 'settled') keepNewest(this.#told.add(id))
    return settlement
  }

  /** A payment that nothing was sent for has cost nothing, and one that was sent in vain costs once. */
  #count(taken: Taken, settlement: Settlement | ForeignRefusal): void {
    if ('refusal' in settlement || isUnsent(settlement)) this.#allowances.end(taken, 'unsent')
    else if (settlement.state === 'settled' || isHidden(settlement))
      this.#allowances.end(taken, 'made')
    else if (settlement.state === 'failed') {
      const { wasInVain, isOnItsWay, gas } = settlement
      const isInVain = wasInVain === true || isOnItsWay === true || gas !== undefined
      this.#allowances.end(taken, isInVain ? 'in vain' : 'unsent')
    }
  }

  /**
   * Reads what was asked of a settlement that this process does not know; undefined where nobody asked. Where that is not
   * known, what is used by now may be what its server waits to be told; and the first one here waits for its end, too.
   */
  async #readBegun(id: string): Promise<Begun | undefined | 'unknown'> {
    const { database, world } = this.#ports
    const read = await readTaker(database, id).catch(() => 'unknown' as const)
    if (read === 'unknown') return read
    const asked = read ?? this.#findUnread(id)
    if (asked === undefined) return undefined
    return { asked, taker: makeSettlementTaker(world.randomBytes(16)) }
  }

  /** Returns what was asked first while nobody could read; its server may never come back, so it is not for long. */
  #findUnread(id: string): string | undefined {
    const first = this.#unread.get(id)
    return first && this.#ports.world.now() < first.atMs + firstMs ? first.asked : undefined
  }

  /** Notes what is asked first while nobody can read, if its payment is good: anybody can make up one that is not. */
  async #noteUnread({ id, asked }: Pick<Bringing, 'id' | 'asked'>, due: ForeignDue): Promise<void> {
    if (this.#findUnread(id) !== undefined) return
    const isGood = await this.#makeSettler(due)
      .verify()
      .then(({ ok }) => ok)
      .catch(() => false)
    if (isGood) keepNewest(this.#unread.set(id, { asked, atMs: this.#ports.world.now() }))
  }

  /** Forgets what was asked of a settlement that has an end, or for which nothing was sent. */
  async #forget(
    { id, asked }: Pick<Bringing, 'id' | 'asked'>,
    settlement: Settlement | ForeignRefusal,
  ): Promise<void> {
    const isUnmade = 'refusal' in settlement || settlement.state === 'failed'
    if (!isUnmade && !isUnsent(settlement)) return
    const forgetting = dropTaker(this.#ports.database, { identity: id, taker: asked })
    await (isUnmade ? forgetting : forgetting.catch(() => undefined))
  }

  /** Brings a payment towards its end; without an allowance for it nothing is sent. */
  async #bring({ caller, id, asked }: Bringing, due: ForeignDue): Promise<Brought> {
    const settler = this.#makeSettler(due)
    if (this.#doubtful.has(id)) {
      const outcome = await settler.lookup(id)
      const isOpen = outcome.state === 'failed' && !outcome.final
      if (!isOpen) return { outcome }
    }
    const taken = this.#pending.get(id)?.taken ?? (await this.#take(caller, id, due))
    if (taken === 'busy') return { outcome: waiting }
    if ('refusal' in taken) return { outcome: await findSent(settler, id, taken) }
    const { database, world } = this.#ports
    const use = { identity: id, taker: asked, nowMs: world.now() }
    // Without its row a settlement is known to this process alone.
    try {
      if (await takePayment(database, use).catch(() => true))
        return { outcome: await settler.settle(id), taken }
      await settler.lookup(id)
    } catch {
      // Whatever became of it was taken of a day, and is found when it is asked for again.
      return { outcome: unreachable, taken }
    }
    return { outcome: { refusal: 'settlement_under_way' }, taken }
  }

  /**
   * Takes a settlement of its caller's day once its turn has come; refuses what is not good, or beyond the bounds of its
   * caller.
   */
  async #take(
    caller: string,
    id: string,
    due: ForeignDue,
  ): Promise<Taken | ForeignRefusal | 'busy'> {
    const verdict = await this.#makeSettler(due).verify()
    if (!verdict.ok) return toForeignRefusal(verdict)
    const { method, payment } = due
    const begun = this.#allowances.begin({ caller, payer: payment.payload.from, id })
    if (typeof begun === 'string') return { refusal: begun }
    // A wallet that moves its money away makes all fail that it has under way.
    const doubt = this.#allowances.isDoubted(begun) ? { unprovenMax: 1 } : {}
    const requirement = { ...due.requirement, ...doubt }
    // A node that does not answer says nothing about its turn.
    const isReady = await method.facilitator.awaitTurn?.(payment, requirement).catch(() => true)
    const taken = isReady === false ? 'busy' : this.#allowances.take(begun)
    if (typeof taken !== 'string') return taken
    this.#allowances.end(begun, 'waited')
    return taken === 'busy' ? taken : { refusal: taken }
  }

  /**
   * A purchase here may have the payment, whose seller's own wallet it pays, or a settlement that another process told.
   * The row of what was asked goes in the same commit: a process that dies before has told nobody, and the next one does.
   */
  async #judge(
    { id, asked, taker }: Begun & Pick<Bringing, 'id'>,
    { payment, requirement }: ForeignDue,
    outcome: Settlement,
  ): Promise<Settlement> {
    if (outcome.state !== 'settled') return outcome
    const { database, world } = this.#ports
    const { gas, transaction } = outcome
    const identity = getPaymentIdentity(requirement.network, payment)
    const use = { identity, taker, nowMs: world.now() }
    const begun = { identity: id, taker: asked }
    const isOurs = await takeSettledPayment(database, use, begun).catch(() => undefined)
    if (isOurs === undefined)
      return { state: 'pending', transaction, reason: 'database_unreachable' }
    if (isOurs) return outcome
    const failed = { state: 'failed', reason: 'authorization_used', final: true } as const
    return gas === undefined ? failed : { ...failed, gas }
  }

  #findDue(payment: SignedPayment, sent: SentRequirements): ForeignDue | ForeignRefusal {
    const method = this.listMethods().find(({ network }) => network.id === payment.network)
    if (method === undefined) return { refusal: 'unsupported_network' }
    const requirement = parseForeignRequirement(sent, { payment, network: method.network })
    if ('refusal' in requirement) return requirement
    const least = this.settings.minimumPayment ?? method.network.minimumPayment
    if (requirement.amount < least)
      return { refusal: 'below_minimum_payment', detail: `must be at least ${least}` }
    return { method, payment, requirement }
  }

  #makeSettler({ method, payment, requirement }: ForeignDue) {
    return makeSettler(this.#ports, method, { payment, requirement })
  }

  #report<T extends Settlement | ForeignRefusal>(answer: T, network: string): T {
    const isRefusal = 'refusal' in answer
    const outcome = isRefusal ? 'refused' : answer.state
    const gas = isRefusal || answer.state === 'pending' ? 0n : (answer.gas ?? 0n)
    this.#ports.onOutcome?.({ outcome, network, gas })
    return answer
  }
}

/** Returns true where nothing was sent, and nothing will be before the payment is brought again. */
function isUnsent(settlement: Settlement): boolean {
  return settlement.state === 'pending' && settlement.isUnsent === true
}

/** Returns true where it was used, and nobody can look at how. */
function isHidden(settlement: Settlement): boolean {
  return settlement.state === 'pending' && settlement.usedIn !== undefined
}

function keepNewest(kept: Map<string, unknown> | Set<string>): void {
  const [oldest] = kept.keys()
  if (kept.size > rememberedMax && oldest !== undefined) kept.delete(oldest)
}

const unreachable: Settlement = { state: 'pending', reason: 'database_unreachable' }
const waiting: Settlement = {
  state: 'pending',
  reason: 'payer_has_others_under_way',
  isUnsent: true,
}

/** Reasons that lie in the payment itself, whoever has sent it. */
const wrongs: readonly string[] = [
  'mismatch',
  'not_yet_valid',
  'invalid_signature',
  'authorization_used',
]

/**
 * Finds a payment that a process sent before it died: while it can still be made, its payer is not asked for another one,
 * whatever would be refused by now.
 */
async function findSent(
  settler: Settler,
  id: string,
  refused: ForeignRefusal,
): Promise<Settlement | ForeignRefusal> {
  if (wrongs.includes(refused.refusal)) return refused
  const found = await settler.lookup(id)
  return found.state === 'pending' ? found : refused
}

/**
 * Names a caller, the very payment that it handed in, and what it asked for: an id says neither whom a payment is to, nor
 * who signed it, and one that is pending is not checked again.
 */
function makeAskedName(caller: string, { payment, requirement }: ForeignDue): string {
  const { to, value, signature } = payment.payload
  const { network, amount } = requirement
  const text = [caller, to, value, signature, network.payTo, amount].join(' ')
  return `asked_${createHash('sha256').update(text).digest('hex').slice(0, 32)}`
}

function toForeignRefusal({ reason, field, detail }: Refusal): ForeignRefusal {
  const text = [field, detail].filter((one) => one !== undefined).join(' ')
  return { refusal: reason, ...(text !== '' && { detail: text }) }
}
