import { limits } from '@tollbase/contract/limits'
import { Fault } from '../../../base/fault.ts'
import type { Database, Queryable } from '../../../database/database.ts'
import { sql } from '../../../database/sql.ts'
import type { PaymentPorts } from '../payment-ports.ts'
import { type Claim, claims } from './claim-store.ts'
import { replies } from './reply-store.ts'

/** The room of an answer beside its body: its claim, and the entry of its sale. */
const rowBytes = 8 * 1024
/** The time for which the sum of all answers is remembered. */
const lookMs = 1_000

export type UnpaidBounds = {
  /** Bytes of the answers of one payer, and of all together. */
  readonly own: number
  readonly all: number
}

/**
 * Bounds the answers that are kept before their money is asked for. That may never come, and each is kept until its
 * payment can not be made any more: somebody with one dollar could have a disk filled with answers that nobody pays for.
 */
export class UnpaidAnswers {
  readonly #ports: { readonly database: Database } & Pick<PaymentPorts, 'world'>
  readonly #bounds: UnpaidBounds
  /** All answers as they were last read, and those that were let in since. */
  #all = 0
  #readMs = Number.NEGATIVE_INFINITY

  constructor(
    ports: { readonly database: Database } & Pick<PaymentPorts, 'world'>,
    bounds: UnpaidBounds = {
      own: limits.unpaidAnswersBytesMax,
      all: limits.allUnpaidAnswersBytesMax,
    },
  ) {
    this.#ports = ports
    this.#bounds = bounds
  }

  /** Throws where no other answer is kept for this payment: asked before it is made. */
  refuseFull(claim: Pick<Claim, 'identity'>): Promise<void> {
    return this.refuse(this.#ports.database, claim, 0)
  }

  /** The same for an answer of so many bytes, which counts from now on; asked under the lock of its payer. */
  async refuse(database: Queryable, claim: Pick<Claim, 'identity'>, bytes: number): Promise<void> {
    const room = bytes + rowBytes
    const own = await sumUnpaid(database, readPayerPrefix(claim))
    if (own + room > this.#bounds.own) throw makeOwnFault(this.#bounds)
    await this.#readAll(database)
    if (this.#all + room > this.#bounds.all) throw makeAllFault()
    if (bytes > 0) this.#all += room
  }

  /** One look a second is enough: those of this process are counted as they come, and few others come meanwhile. */
  async #readAll(database: Queryable): Promise<void> {
    const nowMs = this.#ports.world.now()
    if (nowMs < this.#readMs + lookMs) return
    this.#readMs = nowMs
    const before = this.#all
    this.#all += (await sumUnpaid(database, '')) - before
  }
}

/** The start of the identities of all payments that a payer makes with this token on this network. */
export function readPayerPrefix({ identity }: Pick<Claim, 'identity'>): string {
  return identity.slice(0, identity.lastIndexOf('/') + 1)
}

async function sumUnpaid(database: Queryable, start: string): Promise<number> {
  const [row] = await database.query<{ bytes: bigint }>(sql`
    SELECT coalesce(sum(octet_length(kept.body) + ${rowBytes}::int4), 0)::int8 AS bytes
    FROM ${claims} AS claim JOIN ${replies} AS kept ON kept.payment_id = claim.id
    WHERE claim.state = 'ready' AND claim.identity > ${start} AND claim.identity < ${`${start}~`}`)
  return Number(row?.bytes ?? 0)
}

/** Nothing is claimed. */
function makeOwnFault({ own }: UnpaidBounds): Fault {
  return new Fault('PAYMENT_PENDING', {
    message: `Answers to other payments of this wallet, which are not made yet, take ${own / 1024 ** 2} MiB. Nothing was taken; repeat those requests with the same payments, so that they are made, and this one after them, or pay by another scheme`,
    retryAfterSeconds: 10,
    details: { status: 'pending' },
  })
}

function makeAllFault(): Fault {
  return new Fault('UNAVAILABLE', {
    message:
      'Too many answers wait for payments that are not made yet. Nothing was taken; pay from a balance or by another entry of accepts, or repeat the same request with the same payment later',
    retryAfterSeconds: 60,
  })
}
