import { Fault } from '../../../base/fault.ts'
import type { Queryable } from '../../../database/database.ts'
import { Gatherer } from '../../../database/gatherer.ts'
import { sql } from '../../../database/sql.ts'
import { refuseHeld } from '../deposits/held-money.ts'
import { makePendingFault, makeUsedFault } from '../payment-faults.ts'
import type { PaymentPorts } from '../payment-ports.ts'
import { depositOperation, type Paid } from '../purchase.ts'
import { takeStep } from './claim-steps.ts'
import {
  type Claim,
  type ClaimRow,
  claimColumns,
  claims,
  findClaims,
  toClaim,
} from './claim-store.ts'
import { isUntried } from './payment-states.ts'
import { findPaymentName, isRepetition, type PaymentName } from './stored-payment.ts'

/** A payment for a request, which may have been sent before. */
export type Repeatable = Pick<Paid, 'identity' | 'requestHash' | 'payment' | 'isPayer'>

/** Payments that are remembered to have no claim. */
const absentMax = 10_000
/** The most claims that a search by bounds looks at: channels have many where their answers cost nothing. */
const foundMax = 1_000
/** Those whose payments are read, to prefer one of them. */
const comparedMax = 100

/**
 * Finds the claims of payments, those of all that ask at once by one statement. A request is looked up when it comes, and
 * again when it buys. If the first look finds nothing, the second one is spared: this process works on one payment at a
 * time, and a claim that another process makes in between is found when this one claims.
 */
export class ClaimFinder {
  readonly #ports: Pick<PaymentPorts, 'database' | 'tenants' | 'onStep'>
  readonly #finds: Gatherer<string, Claim | undefined>
  readonly #absent = new Set<string>()

  constructor(ports: Pick<PaymentPorts, 'database' | 'tenants' | 'onStep'>) {
    const { database } = ports
    this.#ports = ports
    this.#finds = new Gatherer((identities) => findClaims(database, identities))
  }

  /** Finds the claim of a payment whose request has just come. */
  async lookUpFirst(identity: string): Promise<Claim | undefined> {
    const found = await this.#finds.add(identity)
    if (found === undefined) this.#absent.add(identity)
    const [oldest] = this.#absent
    if (this.#absent.size > absentMax && oldest !== undefined) this.#absent.delete(oldest)
    return found
  }

  /**
   * Finds the payment's claim; 409 where it was made for another request, or is not repeated exactly. A payment that
   * could not buy its request may become a deposit: its money may be here after all, and nobody else asks for it.
   */
  async findOrRefuse(paid: Repeatable): Promise<Claim | undefined> {
    const found = await this.#find(paid.identity)
    if (found === undefined) return undefined
    const isTakenOver = isUntried(found.state) && paid.requestHash === depositOperation
    if (found.request_hash !== paid.requestHash && !isTakenOver) {
      if (found.state === 'deposited') await refuseHeld(this.#ports, found)
      throw makeUsedFault(found)
    }
    if (!isRepetition(found.payment, paid)) {
      throw new Fault('PAYMENT_ALREADY_USED', {
        message:
          "This payment was sent before. Repeat it exactly as it was sent. Without a quoteId, also repeat it from the same address, with the same key, or with the payer's wallet signature.",
      })
    }
    // A process may have died after it booked money as held, before the claim said so.
    if (isOpen(found)) await refuseHeld(this.#ports, found)
    return found
  }

  /**
   * Another process was first, with this payment or with another one of its name. The same request may continue with the
   * state that process left; any other request is refused.
   */
  async refuseOvertaken(paid: Paid): Promise<never> {
    this.forget(paid.identity)
    const other = await this.findOrRefuse(paid)
    if (isUntried(other?.state ?? 'none')) await refuseNamesake(this.#ports.database, paid)
    const { effects } = takeStep(this.#ports, other?.state ?? 'none', 'overtaken')
    if (other === undefined || effects.includes('say used')) throw new Fault('PAYMENT_ALREADY_USED')
    throw makePendingFault(other.id, 'another process settles it')
  }

  /** Notes that the payment may have a claim from now on. */
  forget(identity: string): void {
    this.#absent.delete(identity)
  }

  async #find(identity: string): Promise<Claim | undefined> {
    return this.#absent.delete(identity) ? undefined : this.#finds.add(identity)
  }
}

/** Returns true where the payment's own money may be here already, and has bought nothing yet. */
function isOpen({ state, settled_by: settledBy }: Claim): boolean {
  return state === 'claimed' || (state === 'held' && settledBy !== null)
}

/** Finds the claim of a payer's that has this name, unless it is the one of this payment. */
export async function findNamedClaim(
  database: Queryable,
  {
    name: [payer, identifier],
    besides,
  }: {
    readonly name: PaymentName
    readonly besides: string
  },
): Promise<Claim | undefined> {
  const [row] = await database.query<ClaimRow>(sql`
    SELECT ${claimColumns} FROM ${claims}
    WHERE payment_identifier = ${identifier} AND split_part(identity, '/', 3) = ${payer}
      AND identity <> ${besides}`)
  return row && toClaim(row)
}

type ClaimBounds = {
  readonly payer: string
  readonly start: string
  readonly end: string
  /** A text that the stored payment of the one that is looked for has, rather than the last one. */
  readonly mark?: string
  /** Claims that the search looks at. */
  readonly most?: number
}

/**
 * Finds the last of a payer's claims whose identities begin and end so, by the number between the two: the clocks of the
 * processes that made them do not decide. The one that has the mark is preferred, if it is among the last ones. Where more
 * begin so than one search looks at, it looks at the payer's newest ones, since who asks again for an answer that was lost
 * does so soon.
 */
export async function findLastClaimBetween(
  database: Queryable,
  { payer, start, end, mark = '', most = foundMax }: ClaimBounds,
): Promise<Claim | undefined> {
  const uses = sql`substr(identity, ${start.length + 1}::int4, length(identity) - ${start.length + end.length}::int4)::int8`
  const between = sql`identity > ${start} AND identity < ${`${start}~`}`
  const [row] = await database.query<ClaimRow>(sql`
    WITH begun AS MATERIALIZED (SELECT identity FROM ${claims} WHERE ${between} LIMIT ${most}::int4),
    late AS (SELECT identity FROM ${claims}
      WHERE split_part(identity, '/', 3) = ${payer} AND (SELECT count(*) FROM begun) = ${most}::int4
      ORDER BY created_at_ms DESC, id DESC LIMIT ${most}::int4),
    last AS MATERIALIZED (SELECT identity FROM (SELECT identity FROM begun UNION ALL SELECT identity FROM late) AS one
      WHERE ${between} AND right(identity, ${end.length}::int4) = ${end}
      ORDER BY ${uses} DESC LIMIT ${comparedMax}::int4)
    SELECT ${claimColumns} FROM ${claims} WHERE identity IN (SELECT identity FROM last)
    ORDER BY strpos(payment, ${mark}) > 0 DESC, ${uses} DESC LIMIT 1`)
  return row && toClaim(row)
}

/** Refuses a payment that was not claimed because another one has its name: who asks again gets what that one buys. */
async function refuseNamesake(
  database: Queryable,
  { identity: besides, payment }: Pick<Paid, 'identity' | 'payment'>,
): Promise<void> {
  const name = findPaymentName(payment)
  const claim = name && (await findNamedClaim(database, { name, besides }))
  if (claim !== undefined) throw makePendingFault(claim.id, 'another process took its name')
}
