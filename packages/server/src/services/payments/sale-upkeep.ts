import { limits } from '@tollbase/contract/limits'
import { dropBlockHolds, dropFees } from './accounts/holds.ts'
import { applyEventToAll } from './claims/claim-steps.ts'
import type { Claim } from './claims/claim-store.ts'
import { dropReplies } from './claims/reply-store.ts'
import { dropTakers } from './facilitating/two-uses.ts'
import { dropUses } from './meters/use-store.ts'
import type { PaymentPorts } from './payment-ports.ts'

const tidyIntervalMs = 60_000
const markIntervalMs = 100
const dropIntervalMs = 1_000
/** The time that a look at all kept answers may take: where it was cut off each time, they would never be bounded. */
const tidyMsMax = 25_000

/** The work that sales leave behind: none of it changes what anybody owns, so it is done later, and together. */
export class SaleUpkeep {
  readonly #ports: PaymentPorts
  #charged: Pick<Claim, 'id' | 'state'>[] = []
  /** A sale that was paid directly to its seller has taken the platform's share, which was held. */
  #hasFees = false
  /** True if blocks may have left holds that the tables have by now. */
  #hasBlockHolds = true

  constructor(ports: PaymentPorts) {
    this.#ports = ports
  }

  /** Notes a claim whose sale is in the log. */
  noteCharged(claim: Pick<Claim, 'id' | 'state'>, { hasFee = false } = {}): void {
    this.#charged.push(claim)
    this.#hasFees ||= hasFee
  }

  noteBlockHolds(): void {
    this.#hasBlockHolds = true
  }

  /** Starts the periodic work; the returned function ends it. */
  start(): () => Promise<void> {
    const { world, database } = this.#ports
    const stopMarks = world.every(markIntervalMs, () => void this.#mark())
    const stopDropping = world.every(dropIntervalMs, () => {
      if (!this.#hasBlockHolds) return
      this.#hasBlockHolds = false
      dropBlockHolds(database).catch(() => undefined)
    })
    const stopTidying = world.every(tidyIntervalMs, () => {
      const bounds = { nowMs: world.now(), bytesMax: limits.keptRepliesBytesMax }
      database
        .transaction((tx) => dropReplies(tx, bounds), { statementTimeoutMs: tidyMsMax })
        .catch(() => undefined)
      dropUses(database, world.now()).catch(() => undefined)
      dropFees(database).catch(() => undefined)
      dropTakers(database, world.now()).catch(() => undefined)
      this.#hasBlockHolds = true
    })
    return async () => {
      stopMarks()
      stopDropping()
      stopTidying()
      await this.#mark()
      await dropBlockHolds(database).catch(() => undefined)
    }
  }

  /** The state `delivered` only saves work: the ledger says the same, so it may be written late and together. */
  async #mark(): Promise<void> {
    if (this.#charged.length === 0) return
    const claims = this.#charged
    this.#charged = []
    const { chain } = this.#ports.tenants.system
    try {
      // The money that is held counts until the tables have its sale: it is not let go sooner, nor where they stop.
      await chain.whenApplied(chain.head().height)
      await applyEventToAll(this.#ports, claims, 'charged')
      if (this.#hasFees) await dropFees(this.#ports.database)
      this.#hasFees = false
    } catch {
      // A claim that is not marked is found in the ledger by reconciliation, or by who asks again.
    }
    this.#ports.world.failpoint?.('payment.marked')
  }
}
