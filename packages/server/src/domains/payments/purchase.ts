import type { World } from '../../base/world.ts'
import type { Database } from '../../database/database.ts'
import type { Facilitator } from '../../x402/facilitator.ts'
import type { PaymentNetwork } from '../../x402/networks.ts'
import type { Payment, Requirement } from '../../x402/protocol.ts'
import type { Catalog } from '../tenancy/catalog.ts'
import type { Tenancy } from '../tenancy/tenancy.ts'
import type { Split } from './entries.ts'
import type { Offer } from './offer.ts'

/** One network that is accepted, and who settles on it. */
export type Way = { readonly network: PaymentNetwork; readonly facilitator: Facilitator }

export type PaymentPorts = {
  readonly database: Database
  readonly tenancy: Tenancy
  readonly world: World
  /** 32 bytes that sign quotes. */
  readonly quoteSecret: Buffer
  readonly ways: readonly Way[]
  /** Where buyers reach this service, without a trailing slash. */
  readonly publicUrl: () => string
  readonly split: Split
}

/** A payment and what it is for. */
export type Paid = {
  readonly payment: Payment
  readonly requirement: Requirement
  readonly facilitator: Facilitator
  readonly identity: string
  readonly requestHash: string
}

/** A payment on its way: what was paid, by which way, for which request, under which prices. */
export type Purchase = Paid & { readonly offer: Offer; readonly catalog: Catalog }
