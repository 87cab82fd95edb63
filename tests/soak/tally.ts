import type { Asked, PaymentHeader } from '../support/buyer.ts'
import type { TestReply } from '../support/service.ts'

/** One payment for one request. It is noted before it is sent. */
export type Purchase = {
  readonly app: string
  readonly buyer: string
  readonly asked: Asked
  readonly header: PaymentHeader
  /** The mark in every record that it writes; undefined where it reads. */
  readonly marker: string | undefined
  /** The amount of the payment in atomic units, which is the cost here. */
  readonly amount: bigint
  readonly madeAtMs: number
  /** The text of the answer, once there was one. */
  answer: string | undefined
}

/** The clients' knowledge of a run: all that was acknowledged, and all that was wrong. */
export class Tally {
  /** The records by application: the acknowledged ones by key, and all that were ever sent. */
  readonly acknowledged = new Map<string, Map<string, number>>()
  readonly sent = new Map<string, Set<string>>()
  readonly purchases: Purchase[] = []
  readonly violations: string[] = []
  readonly counts = {
    stores: 0,
    acknowledged: 0,
    lists: 0,
    paidReads: 0,
    paidWrites: 0,
    repeated: 0,
    hungUp: 0,
    indexes: 0,
    passedOn: 0,
    unanswered: 0,
    busy: 0,
    serviceKills: 0,
    databaseKills: 0,
    bothKills: 0,
    fullDisks: 0,
    restarts: 0,
    audits: 0,
    lost: 0,
    double: 0,
  }

  /** The buyers of whose payments one bought something else, because its own request failed. */
  readonly passedOn = new Set<string>()

  wrong(what: string): void {
    this.violations.push(what)
    console.error(`VIOLATION: ${what}`)
  }

  /**
   * Returns the reply of a request that succeeded; a cut connection or an order to wait is part of the run,
   * anything else is wrong.
   */
  good(what: string, reply: TestReply | undefined): TestReply | undefined {
    if (reply !== undefined && reply.status < 300) return reply
    if (reply === undefined) this.counts.unanswered += 1
    else if (reply.status === 503) this.counts.busy += 1
    else this.wrong(`${what} answered ${reply.status}: ${reply.text.slice(0, 300)}`)
    return undefined
  }

  /** A payment whose request failed is on its payer's balance, which another request may have spent meanwhile. */
  notePassedOn({ buyer }: Purchase): void {
    this.counts.passedOn += 1
    this.passedOn.add(buyer)
  }

  noteSent(app: string, ids: readonly string[]): void {
    const sent = this.sent.get(app) ?? new Set()
    this.sent.set(app, sent)
    for (const id of ids) sent.add(id)
  }

  noteAcknowledged(app: string, records: readonly { id: string; n: number }[]): void {
    const acknowledged = this.acknowledged.get(app) ?? new Map<string, number>()
    this.acknowledged.set(app, acknowledged)
    for (const { id, n } of records) acknowledged.set(id, n)
    this.counts.acknowledged += records.length
  }

  answered(purchase: Purchase, text: string): void {
    if (purchase.answer === undefined) {
      purchase.answer = text
      this.counts[purchase.marker === undefined ? 'paidReads' : 'paidWrites'] += 1
    } else if (purchase.answer !== text) {
      this.counts.double += 1
      this.wrong(`a repeated payment got another answer: ${purchase.answer} and ${text}`)
    }
  }
}
