import type { World } from '../../base/world.ts'
import type { BlobStore } from '../../blobs/blob-store.ts'
import type { Database } from '../../database/database.ts'
import type { RateLimits } from '../../http/rate-limits.ts'
import type { HttpReply } from '../../http/reply.ts'
import type { BlockWatch } from '../../x402/block-watch.ts'
import type { Escrow } from '../../x402/channels/escrow.ts'
import type { Facilitator } from '../../x402/facilitator.ts'
import type { NativeTransfers } from '../../x402/native-transfer.ts'
import type { PaymentNetwork } from '../../x402/networks.ts'
import type { Treasury } from '../../x402/treasury.ts'
import type { UptoFacilitator } from '../../x402/upto/upto-facilitator.ts'
import type { Tenant, Tenants } from '../applications/tenants.ts'
import type { StoredGroup } from '../records/stored-records.ts'
import type { PaymentEvent, PaymentState } from './claims/payment-states.ts'
import type { WriteForm } from './quotes/write-answer-form.ts'

/** An accepted network, with its facilitator. */
export type PaymentMethod = {
  readonly network: PaymentNetwork
  readonly facilitator: Facilitator
  /** Where payers may also make the transfer themselves. */
  readonly native?: NativeTransfers
  /** Where the service holds the key of its own address, and so can send money out. */
  readonly treasury?: Treasury
  /** Where the scheme `upto` is taken. */
  readonly upto?: UptoFacilitator
  /** There where the service asks a node of its own: the watch over what the chain may take back. */
  readonly blocks?: BlockWatch
  /** Where payment channels are taken. */
  readonly escrow?: Escrow
  /**
   * When the database was restored from a backup, in seconds since 1970: transfers made until then may have been used
   * in the life that is lost.
   */
  readonly restoredAt?: bigint
  /** Reads the time of a transaction's block, in seconds since 1970; there where the service asks a node. */
  readonly readTime?: (transaction: string) => Promise<bigint>
}

/** States as metrics count them. */
type CountedState = 'claimed' | 'settled' | 'delivered' | 'failed'

/** Answers a write that is in this place of the log. */
export type AnswerPaidWrite = (
  tenant: Tenant,
  form: WriteForm,
  group: StoredGroup,
) => Promise<HttpReply>

/** Basis points of a charge that the platform keeps; the rest is the seller's. */
export type Split = { readonly platformBasisPoints: bigint }

export type PaymentPorts = {
  /** The files that can be sold; where there are none, nobody offers any. */
  readonly files?: Pick<BlobStore, 'find'>
  readonly database: Database
  readonly tenants: Tenants
  readonly world: World
  /** 32 bytes that sign quotes. */
  readonly quoteSecret: Buffer
  /**
   * 32 bytes that the keys of deposit addresses are derived from: without them the money that came in there is
   * lost.
   */
  readonly depositSecret: Buffer
  readonly methods: readonly PaymentMethod[]
  /** Where buyers reach this service, without a trailing slash. */
  readonly publicUrl: () => string
  readonly split: Split
  readonly answerPaidWrite: AnswerPaidWrite
  /** Throws where nothing new may be taken in (the disk is full); asked before a payment is taken. */
  readonly refuseFullDisk?: (() => void) | undefined
  /** The rate `payment`, which sales out of an account count in that do not pay for their entries. */
  readonly rates?: Pick<RateLimits, 'isUsedUp' | 'refuseUsedUp' | 'charge'>
  /** Called when a payment has come into a state, for metrics. */
  readonly onState?: (state: CountedState) => void
  /** Called when a claim from channels was made, or failed, or the chain does not take a channel's row of it. */
  readonly onClaim?: (outcome: 'made' | 'failed' | 'refused') => void
  /** Called before each step that the table of payments decides. */
  readonly onStep?: (state: PaymentState, event: PaymentEvent) => void
}
