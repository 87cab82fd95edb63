import { Fault } from '../base/fault.ts'
import { Pause } from '../base/pause.ts'
import type { World } from '../base/world.ts'
import { type Fees, readFees, readNativeBalance } from './evm-chain.ts'
import { computeOffer, type FeeOffer } from './fees.ts'
import type { Rpc } from './rpc.ts'

export type GasFundsOptions = {
  readonly rpc: Rpc
  readonly world: World
  readonly address: string
  /** Wei of the most that is paid for a unit of gas, with the tip; unlimited when undefined. */
  readonly feeMax: bigint | undefined
}

/** The time for which fees and funds are remembered. */
const rememberMs = 5_000
/** The number of transactions below which the funds are reported as too low. */
const fundedTransactionsMin = 5n

/** The price of gas on a network, and the funds that a key has for it. */
export class GasFunds {
  readonly #options: GasFundsOptions
  #known: Promise<Fees & { readonly balance: bigint }> | undefined
  readonly #pause = new Pause()

  constructor(options: GasFundsOptions) {
    this.#options = options
  }

  /** Reads the fees and the funds, in the smallest unit of the chain's own coin; at most some seconds old. */
  read(): Promise<Fees & { readonly balance: bigint }> {
    const { rpc, world, address } = this.#options
    const now = world.now()
    if (this.#known === undefined || this.#pause.isOver(now)) {
      this.#pause.begin(now, rememberMs)
      const asked = Promise.all([readFees(rpc), readNativeBalance(rpc, address)]).then(
        ([fees, balance]) => ({ ...fees, balance }),
      )
      this.#known = asked
      asked.catch(() => {
        if (this.#known === asked) this.#known = undefined
      })
    }
    return this.#known
  }

  /** Throws UNAVAILABLE while the key cannot pay the gas of a few transactions. */
  async requireFor(gas: bigint): Promise<void> {
    const known = await this.read()
    if (known.balance < fundedTransactionsMin * gas * this.computeOffer(known).maxFeePerGas) {
      throw new Fault('UNAVAILABLE', {
        internal: `${this.#options.address} has too little for gas`,
      })
    }
  }

  computeOffer(fees: Fees): FeeOffer {
    return computeOffer(fees, this.#options.feeMax)
  }
}
