import { limits } from '@tollbase/contract/limits'
import { Fault } from '../../../base/fault.ts'
import type { World } from '../../../base/world.ts'
import type { Database, Queryable } from '../../../database/database.ts'
import { sql } from '../../../database/sql.ts'
import type { SignedPayment } from '../../../x402/protocol.ts'
import { getNowSeconds } from '../../../x402/validity.ts'
import { formatRefusal } from '../payment-faults.ts'
import type { PaymentPorts } from '../payment-ports.ts'
import { type Claim, claims } from './claim-store.ts'
import { replies } from './reply-store.ts'

/** The room of an answer beside its body: its claim, and the entry of its sale. */
const rowBytes = 8 * 1024
/** The time for which the sums of all answers are remembered. */
const lookMs = 1_000

export type UnpaidBounds = {
  /** Bytes of the answers of one payer, and of all together. */
  readonly own: number
  readonly all: number
  /** The part of all that is kept for payers without any. */
  readonly forNew: number
}

/** A payment whose answer is to be kept, and the application that is paid. */
type UnpaidClaim = Pick<Claim, 'identity' | 'app'>

/** An answer that was let in, and which the next look may not find yet. */
type Addition = { readonly app: string; readonly bytes: number; readonly atMs: number }

/**
 * Bounds the answers that are kept before their money is asked for. That may never come, and each is kept until its
 * payment can not be made any more: somebody with one dollar could have a disk filled with answers that nobody pays for.
 * Those of one seller take half of the room at most, and the more others have, the smaller a part of the rest: sellers that
 * take all they can leave 1 GiB divided by their number and one, so it takes many of them to shut out the next one.
 */
export class UnpaidAnswers {
  readonly #ports: { readonly database: Database } & Pick<PaymentPorts, 'world'>
  readonly #bounds: UnpaidBounds
  /** The bytes by application: as they were last read, and what was let in since. */
  #sums = new Map<string, number>()
  #additions: Addition[] = []
  #readMs = Number.NEGATIVE_INFINITY

  constructor(
    ports: { readonly database: Database } & Pick<PaymentPorts, 'world'>,
    bounds: UnpaidBounds = {
      own: limits.unpaidAnswersBytesMax,
      all: limits.allUnpaidAnswersBytesMax,
      forNew: limits.allUnpaidAnswersBytesMax / 4,
    },
  ) {
    this.#ports = ports
    this.#bounds = bounds
  }

  /** Throws where no other answer is kept for this payment: asked before it is made. */
  refuseFull(claim: UnpaidClaim): Promise<void> {
    return this.refuse(this.#ports.database, claim, 0)
  }

  /** The same for an answer of so many bytes, which counts from now on; asked under the lock of its payer. */
  async refuse(database: Queryable, claim: UnpaidClaim, bytes: number): Promise<void> {
    const { app } = claim
    const { all, forNew } = this.#bounds
    const room = bytes + rowBytes
    const own = await sumOwn(database, readPayerPrefix(claim))
    if (own + room > this.#bounds.own) throw makeOwnFault(this.#bounds)
    await this.#readAll(database)
    const open = own > 0 ? all - forNew : all
    const taken = this.#sums.get(app) ?? 0
    const others = [...this.#sums.values()].reduce((sum, one) => sum + one, 0) - taken
    if (taken + room > computeShare(open, others)) throw makeAllFault()
    if (bytes === 0) return
    const added = { app, bytes: room, atMs: this.#ports.world.now() }
    this.#count(added)
    this.#additions.push(added)
  }

  #count({ app, bytes }: Addition): void {
    this.#sums.set(app, (this.#sums.get(app) ?? 0) + bytes)
  }

  /** One look a second is enough: those of this process are counted as they come, and few others come meanwhile. */
  async #readAll(database: Queryable): Promise<void> {
    const nowMs = this.#ports.world.now()
    if (nowMs < this.#readMs + lookMs) return
    // Others that come meanwhile look by themselves: who waits for a connection is not waited for by who has one.
    const sums = await sumByApplication(database)
    if (nowMs < this.#readMs) return
    this.#sums = sums
    this.#readMs = nowMs
    // One that was let in shortly before may be yet to be committed, so it counts until the next look, twice at most.
    this.#additions = this.#additions.filter(({ atMs }) => atMs > nowMs - lookMs)
    for (const one of this.#additions) this.#count(one)
  }
}

/**
 * Finds what is wrong with a payment that would keep the room of its answer, or a share of its seller, for too long: nobody
 * can give up an answer whose payment may still be made.
 */
export function findLateness(world: World, { payload, upto }: SignedPayment): string | undefined {
  const seconds = limits.directAuthorizationSecondsMax
  const latest = getNowSeconds(world) + BigInt(seconds)
  if (payload.validBefore <= latest) return undefined
  const field =
    upto === undefined
      ? 'payload.authorization.validBefore'
      : 'payload.permit2Authorization.deadline'
  return formatRefusal({
    reason: 'valid_too_long',
    field,
    detail: `must be at most ${seconds} seconds from now, ${latest}`,
  })
}

/** The start of the identities of all payments that a payer makes with this token on this network. */
export function readPayerPrefix({ identity }: Pick<Claim, 'identity'>): string {
  return identity.slice(0, identity.lastIndexOf('/') + 1)
}

/**
 * Computes what one may have of a room in which others have so much: half of an empty one. Those that take all they can one
 * after the other get 1/2, 1/6, 1/12 and so on of it, which leaves 1/2, 1/3, 1/4 of it.
 */
function computeShare(room: number, others: number): number {
  const left = Math.max(room - others, 0)
  return (left * left) / (room + left)
}

async function sumOwn(database: Queryable, payer: string): Promise<number> {
  const [row] = await database.query<{ bytes: bigint }>(sql`
    SELECT ${sumBytes} AS bytes ${unpaid} AND claim.identity > ${payer} AND claim.identity < ${`${payer}~`}`)
  return Number(row?.bytes ?? 0)
}

async function sumByApplication(database: Queryable): Promise<Map<string, number>> {
  const rows = await database.query<{ app: string; bytes: bigint }>(
    sql`SELECT claim.app, ${sumBytes} AS bytes ${unpaid} GROUP BY claim.app`,
  )
  return new Map(rows.map(({ app, bytes }) => [app, Number(bytes)]))
}

const sumBytes = sql`coalesce(sum(octet_length(kept.body) + ${rowBytes}::int4), 0)::int8`
const unpaid = sql`FROM ${claims} AS claim JOIN ${replies} AS kept ON kept.payment_id = claim.id WHERE claim.state = 'ready'`

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
