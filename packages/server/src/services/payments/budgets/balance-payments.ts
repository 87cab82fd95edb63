import { runWithoutCommitNote } from '../../../chain/commit-notes.ts'
import { formatDay } from '../../../model/spending-limits.ts'
import type { PaymentNetwork } from '../../../x402/networks.ts'
import { decodeClaimTerms } from '../claims/claim-terms.ts'
import type { Claims } from '../claims/claims.ts'
import { isUntried } from '../claims/payment-states.ts'
import type { Deliverer } from '../deliverer.ts'
import type { PaymentPorts } from '../payment-ports.ts'
import {
  type Delivery,
  isFreeNow,
  makeFreeDelivery,
  makePurpose,
  type Offer,
  type Purchase,
} from '../purchase.ts'
import { makeRequirement, makeTermsNow } from '../quotes/quoting.ts'
import type { BoughtReply } from '../replies/bought-reply.ts'
import { accountSettler } from './account-settler.ts'
import type { BalancePayer } from './balance-payer.ts'

type Outcome =
  | { readonly bought: BoughtReply }
  | { readonly free: Delivery }
  | { readonly refusal: string }

/** Sells for a key, or a wallet that signed in, that pays out of a balance in place of a payment in the request. */
export class BalancePayments {
  readonly #ports: PaymentPorts
  readonly #claims: Claims
  readonly #deliverer: Deliverer

  constructor(parts: {
    readonly ports: PaymentPorts
    readonly claims: Claims
    readonly deliverer: Deliverer
  }) {
    this.#ports = parts.ports
    this.#claims = parts.claims
    this.#deliverer = parts.deliverer
  }

  /** Takes the payment: the cap is held on the balance, within the limits of the key or of the sign-in. */
  async take(
    offer: Offer,
    by: BalancePayer & { readonly network: PaymentNetwork; readonly hash: string },
  ): Promise<Outcome> {
    const { payer, paying, signedIn, payment, identity, network, hash } = by
    const repeatable = { identity, requestHash: hash, payment, isPayer: true }
    const found = await this.#claims.finder.findOrRefuse(repeatable)
    const isNew = found === undefined || isUntried(found.state)
    if (isNew && isFreeNow(offer)) return { free: await makeFreeDelivery(offer) }
    if (isNew && signedIn?.isUsed === true)
      return { refusal: 'The sign-in was refused: it was used before; sign the new one' }
    if (isNew) offer.refuseUndeliverable?.()
    const nowMs = this.#ports.world.now()
    const day = formatDay(nowMs)
    const budget = paying && { id: paying.budget, day }
    const terms = isNew
      ? { ...makeTermsNow(this.#ports, offer), ...(budget && { budget }) }
      : decodeClaimTerms(found)
    const { cap } = terms
    if (isNew && signedIn !== undefined && cap > signedIn.most)
      return {
        refusal: `The sign-in was for at most ${signedIn.most}, and this may cost ${cap} by now`,
      }
    const purpose = makePurpose(offer, terms)
    const purchase: Purchase = {
      ...repeatable,
      offer,
      terms,
      requirement: makeRequirement(network, { ...terms, amount: cap }),
      settler: accountSettler,
      ...(paying && { spending: { paying, targets: listTargets(purpose), nowMs, day } }),
    }
    const plan = this.#deliverer.planAnswer(purchase)
    const funded =
      this.#claims.findFunded(found) ??
      (await this.#claims.balances.payIfCovered(purchase, purpose, { found, plan }))
    if (funded === undefined)
      return {
        refusal: `The balance of ${payer} is lower than ${cap}, the most that this request may cost`,
      }
    return { bought: await runWithoutCommitNote(() => this.#deliverer.deliver(purchase, funded)) }
  }
}

/** Lists the applications that are paid. */
function listTargets({ app, terms }: ReturnType<typeof makePurpose>): string[] {
  const paid = terms.payees.flatMap(({ account }) =>
    account.startsWith('app:') ? account.slice('app:'.length) : [],
  )
  return [...new Set([app, ...paid])]
}
