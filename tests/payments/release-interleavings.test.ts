import { setTimeout } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { takeFromAccount } from '../../packages/server/src/services/payments/accounts/account-lock.ts'
import { insertHold } from '../../packages/server/src/services/payments/accounts/holds.ts'
import type { Claim } from '../../packages/server/src/services/payments/claims/claim-store.ts'
import { makeDepositEntry } from '../../packages/server/src/services/payments/deposits/claim-deposit.ts'
import { releaseHeld } from '../../packages/server/src/services/payments/deposits/release-held.ts'
import type { TakenBack } from '../../packages/server/src/services/payments/reversals/taken-back.ts'
import {
  endGone,
  keepGone,
  writeReversal,
} from '../../packages/server/src/services/payments/reversals/write-reversal.ts'
import { Chance } from '../simulation/chance.ts'
import { withService } from '../support/per-engine.ts'
import type { TestService } from '../support/service.ts'

const seeds = Array.from(
  { length: 6 },
  (_, at) => `${process.env.TOLLBASE_SEED ?? 'release'} ${at}`,
)
const rounds = 5
const network = 'eip155:84532'
const asset = `0x${'a'.repeat(40)}`
/** The money of each payment, in atomic units. */
const value = 1_000n

/** A payment from before a restore; `note` while its chain is known not to have it. */
type Payment = { readonly claim: Claim; note: TakenBack | undefined; isOver: boolean }
type Act = () => Promise<unknown>

/** A payer whose payments are held, released, missed, found, reversed and spent at once. */
class Life {
  readonly #service: TestService
  readonly #chance: Chance
  readonly #payer: string
  readonly #account: string
  readonly #payments: Payment[] = []
  readonly #spends: { readonly began: number; readonly amount: bigint }[] = []
  #clock = 0
  #lastMissed = 0

  constructor(service: TestService, chance: Chance) {
    this.#service = service
    this.#chance = chance
    this.#payer = `0x${chance.bytes('payer', 20).toString('hex')}`
    this.#account = `wallet:${this.#payer}`
  }

  async begin(): Promise<void> {
    const { chain } = this.#service.running.service.tenants.system
    const payer = this.#payer
    for (let n = 0; n < 3; n++) {
      const nonce = `0x${this.#chance.bytes('nonce', 32).toString('hex')}`
      const id = `pay_${this.#chance.bytes('id', 16).toString('hex')}`
      const identity = `${network}/${asset}/${payer}/${nonce}`
      const paid = { paymentId: id, identity, payer, amount: value, network, asset }
      await chain.append([makeDepositEntry({ ...paid, transaction: nonce, isWithheld: true })])
      const claim = { id, identity, amount: value, operation: 'deposit', terms: null } as Claim
      this.#payments.push({ claim, note: undefined, isOver: false })
    }
    await chain.whenApplied(chain.head().height)
  }

  /** Lets some things happen at once. */
  async live(): Promise<void> {
    const chance = this.#chance
    const acts = this.#payments.flatMap((payment) => this.#drawActs(payment))
    for (let n = chance.between('spends', 0, 2); n > 0; n--) {
      const amount = BigInt(chance.between('spent', 1, 1_500))
      const id = `spent_${chance.bytes('spent', 16).toString('hex')}`
      acts.push(() => this.#spend(id, amount))
    }
    if (chance.happens('all are released', 100)) acts.push(() => this.#release({}))
    const pauses = acts.map(() => chance.between('pause', 0, 6))
    await Promise.all(acts.map((act, at) => setTimeout(pauses[at]).then(act)))
  }

  async end(): Promise<void> {
    for (const payment of this.#payments) if (payment.note !== undefined) await this.#find(payment)
    await this.#release({})
  }

  /** Draws what happens to a payment. It is found again, or reversed, by one process alone. */
  #drawActs(payment: Payment): Act[] {
    const chance = this.#chance
    const { claim, note, isOver } = payment
    const { id: paymentId } = claim
    const isReleased = chance.happens('released', 300)
    const releases = isReleased ? chance.between('releases', 1, 2) : 0
    const acts: Act[] = Array.from({ length: releases }, () => () => this.#release({ paymentId }))
    if (isOver) return acts
    const fate = chance.pick('fate', ['missed', 'missed', 'found', 'found', 'reversed', 'nothing'])
    if (fate === 'missed') acts.push(() => this.#miss(payment))
    if (fate === 'found' && note !== undefined) acts.push(() => this.#find(payment))
    if (fate === 'reversed' && note !== undefined) acts.push(() => this.#reverse(payment))
    return acts
  }

  async #release(filter: { paymentId?: string }): Promise<void> {
    await releaseHeld(this.#service.running.service, { payer: this.#payer, ...filter })
  }

  async #miss(payment: Payment): Promise<void> {
    payment.note = (await keepGone(this.#ports, payment.claim)).note
    this.#lastMissed = this.#tick()
  }

  async #find(payment: Payment): Promise<void> {
    const by = { other: null, ...(payment.note && { note: payment.note }) }
    expect(await endGone(this.#ports, payment.claim.id, by)).toBe(true)
    payment.note = undefined
  }

  async #reverse(payment: Payment): Promise<void> {
    const lost = await writeReversal(this.#ports, payment.claim, 'gone')
    this.#lastMissed = this.#tick()
    // Its money was released meanwhile: it is not where the reversal looked.
    if (lost === undefined) return this.#miss(payment)
    payment.isOver = true
    payment.note = undefined
  }

  /** Takes from what is available, as a purchase does. */
  async #spend(id: string, amount: bigint): Promise<void> {
    const began = this.#tick()
    const account = this.#account
    const isTaken = await takeFromAccount(
      this.#service.database,
      account,
      async (tx, available) =>
        available >= amount && (await insertHold(tx, { id, account, amount })),
    )
    if (isTaken) this.#spends.push({ began, amount })
  }

  get #ports() {
    return this.#service.running.service.payments.ports
  }

  #tick(): number {
    this.#clock += 1
    return this.#clock
  }

  /** Checks the books while nothing is under way. */
  async check(): Promise<void> {
    const found = await Promise.all(this.#payments.map((payment) => this.#read(payment)))
    const sum = (amounts: readonly bigint[]) => amounts.reduce((all, one) => all + one, 0n)
    for (const { payment, waiting, hold, reversed } of found) {
      expect([0n, value]).toContain(waiting)
      if (payment.note === undefined) expect(hold).toBeUndefined()
      if (waiting > 0n && payment.note !== undefined) expect(hold).toBe(value)
      if (reversed !== undefined) expect(reversed.moved + reversed.lost).toBe(value)
      expect(reversed !== undefined).toBe(payment.isOver)
    }
    const there = found.filter(({ waiting }) => waiting === 0n)
    const balance = sum(there.map(({ reversed }) => value - (reversed?.moved ?? 0n)))
    expect(await this.#readAccount(this.#account)).toBe(balance)
    const missed = there.filter(({ payment }) => payment.note !== undefined)
    const held = sum(missed.map(({ hold = 0n }) => hold))
    const free = balance - held - sum(this.#spends.map(({ amount }) => amount))
    expect(free).toBeGreaterThanOrEqual(0n)
    const reply = await this.#service.request('GET', `/api/wallets/${this.#payer}`)
    expect(reply.body.available).toBe(String(free))
    // Only what was spent before it was missed is not held, or lost.
    const lacking = sum(missed.map(({ hold = 0n }) => value - hold))
    const lost = sum(found.map(({ reversed }) => reversed?.lost ?? 0n))
    const before = this.#spends.filter(({ began }) => began < this.#lastMissed)
    expect(lacking + lost).toBeLessThanOrEqual(sum(before.map(({ amount }) => amount)))
  }

  async #read(payment: Payment) {
    const { database } = this.#service
    const { id } = payment.claim
    const [hold] = await database.query<{ amount: string }>(
      sql`SELECT amount::text AS amount FROM operations.account_hold WHERE id = ${`reversal_${id}`}`,
    )
    const [reversed] = await database.query<{ moved: string; lost: string }>(
      sql`SELECT moved::text AS moved, lost::text AS lost FROM system.reversal WHERE payment_id = ${id}`,
    )
    return {
      payment,
      waiting: await this.#readAccount(`held:${this.#account}:${id}`),
      hold: hold && BigInt(hold.amount),
      reversed: reversed && { moved: BigInt(reversed.moved), lost: BigInt(reversed.lost) },
    }
  }

  async #readAccount(account: string): Promise<bigint> {
    const { chain } = this.#service.running.service.tenants.system
    await chain.whenApplied(chain.head().height)
    const [row] = await this.#service.database.query<{ balance: string }>(
      sql`SELECT balance::text AS balance FROM system.account WHERE account = ${account}`,
    )
    return BigInt(row?.balance ?? 0)
  }
}

withService((service) => {
  test.each(seeds)(
    'P12: in any order of releases, looks at the chain, reversals and purchases nobody spends what the chain does not have (%s)',
    async (seed) => {
      const life = new Life(service(), new Chance(seed))
      await life.begin()
      for (let round = 0; round < rounds; round++) {
        await life.live()
        await life.check()
      }
      await life.end()
      await life.check()
    },
  )
})
