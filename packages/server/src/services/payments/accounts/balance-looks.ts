import { Gatherer } from '../../../database/gatherer.ts'
import { type Claim, getPayerAccount } from '../claims/claim-store.ts'
import { isMetered } from '../meters/meter.ts'
import type { PaymentPorts } from '../payment-ports.ts'
import type { Terms } from '../purchase.ts'
import { readAllAvailable } from './account-lock.ts'

/** Looks at the money of accounts without their locks: nothing is asked of the chain for who has nothing. */
export class BalanceLooks {
  readonly #ports: Pick<PaymentPorts, 'tenants'>
  readonly #reads: Gatherer<string, bigint>

  constructor(ports: Pick<PaymentPorts, 'database' | 'tenants'>) {
    this.#ports = ports
    this.#reads = new Gatherer(async (accounts) => {
      const available = await readAllAvailable(ports.database, accounts)
      return accounts.map((account) => available.get(account) ?? 0n)
    })
  }

  /** Finds what the payer's account has, where that is as much as the claim may cost. */
  async findEnough(
    claim: Pick<Claim, 'identity' | 'cap'>,
    { prices }: Pick<Terms, 'prices'>,
  ): Promise<bigint | undefined> {
    const { chain } = this.#ports.tenants.system
    // A pass or quota may cover it: the lock decides.
    if (isMetered(prices)) return claim.cap
    const account = getPayerAccount(claim)
    const available = await this.#reads.add(account)
    if (available >= claim.cap) return available
    if (chain.watermark().height >= chain.head().height) return undefined
    await chain.whenApplied(chain.head().height)
    const credited = await this.#reads.add(account)
    return credited >= claim.cap ? credited : undefined
  }
}
