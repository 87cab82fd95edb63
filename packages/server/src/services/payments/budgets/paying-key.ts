import { createHmac } from 'node:crypto'
import type { World } from '../../../base/world.ts'
import type { RequestInfo } from '../../../http/request-info.ts'
import {
  readAuthorizationLimits,
  readKeyLimits,
  type SpendingLimits,
} from '../../../model/spending-limits.ts'
import { getBudget, type KeyRecord } from '../../../projections/keys.ts'
import { toApplicationAccount } from '../../../projections/ledger-entry.ts'
import type { SignedPayment } from '../../../x402/protocol.ts'
import type { Asking } from '../../access/access.ts'
import { neverEnds } from '../claims/stored-payment.ts'
import { readIdempotencyKey } from '../idempotency-key.ts'

/** A key that pays for a request, in place of a payment. */
export type PayingKey = {
  readonly key: KeyRecord
  /** Names what is spent; it outlives the key where that gets a successor. */
  readonly budget: string
  readonly limits: SpendingLimits
  /** The account that pays, and its name as a payer. */
  readonly account: string
  readonly payer: string
  /** The Idempotency-Key of the request. */
  readonly name: string | undefined
}

/** Finds the key that a request is to be paid by (X-Agent-Key, X-User-Key); undefined where it has none with Pay. */
export function findPayingKey({ requestInfo, caller }: Asking): PayingKey | undefined {
  const key = caller.payer
  if (key === undefined || !key.permissions.includes('Pay')) return undefined
  const { authorization: one } = key
  const account = getPayingAccount(key)
  return {
    key,
    budget: one?.id ?? getBudget(key),
    limits: one === undefined ? readKeyLimits(key.pay_limits) : readAuthorizationLimits(one),
    account,
    payer: account.replace(/^wallet:/, ''),
    name: readIdempotencyKey(requestInfo, undefined),
  }
}

/** Returns the account that a key spends from. */
export function getPayingAccount({ authorization, app_id }: KeyRecord): string {
  return authorization?.account ?? toApplicationAccount(app_id)
}

/** The first part of the identity of a payment out of a balance, where others have their network. */
export const balanceNetwork = 'balance'

/** The secret that names payments, and the randomness for those without a name. */
type Ports = { readonly quoteSecret: Buffer; readonly world: Pick<World, 'randomBytes'> }

/** A payment that stands for a request which a balance pays for. */
export type KeyPayment = { readonly payment: SignedPayment; readonly identity: string }

/** Several parts of a sale ask for the payment of the same request. */
const keyPayments = new WeakMap<RequestInfo, KeyPayment>()

/** Makes the payment that stands for a request by this key: with a name, each time the same one. */
export function makeKeyPayment(
  ports: Ports,
  requestInfo: RequestInfo,
  paying: PayingKey,
): KeyPayment {
  const made = keyPayments.get(requestInfo) ?? makePayment(ports, paying)
  keyPayments.set(requestInfo, made)
  return made
}

function makePayment(
  { quoteSecret: secret, world }: Ports,
  { budget, payer, name }: PayingKey,
): KeyPayment {
  const nonce =
    name === undefined
      ? world.randomBytes(32).toString('hex')
      : createHmac('sha256', secret)
          .update(JSON.stringify(['payment', budget, name]))
          .digest('hex')
  const payment = { ...makeEmptyPayment(payer, nonce), version: 1 } as const
  return { payment, identity: `${balanceNetwork}/key/${payer}/${nonce}` }
}

/** Makes the payment that stands for a request of a wallet that signed in: with a name, each time the same one. */
export function makeSignInPayment(
  { quoteSecret }: Pick<Ports, 'quoteSecret'>,
  by: { readonly payer: string; readonly name: string | undefined; readonly nonce: string },
): KeyPayment {
  const { payer, name } = by
  const named = name === undefined ? ['nonce', by.nonce] : ['name', name]
  const nonce = createHmac('sha256', quoteSecret)
    .update(JSON.stringify(['sign-in payment', payer, ...named]))
    .digest('hex')
  const payment = { ...makeEmptyPayment(payer, nonce), version: 2 } as const
  return { payment, identity: `${balanceNetwork}/sign-in/${payer}/${nonce}` }
}

/** Makes a payment that has no money of its own. */
function makeEmptyPayment(payer: string, nonce: string): Omit<SignedPayment, 'version'> {
  const payload = {
    ...{ from: payer, to: '', value: 0n, validAfter: 0n, validBefore: neverEnds },
    ...{ nonce, signature: '' },
  }
  return { network: balanceNetwork, scheme: 'exact', receiptForm: 'base64', payload }
}
