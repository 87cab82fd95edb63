import { Pause } from '../base/pause.ts'
import type { World } from '../base/world.ts'
import { readCode, readFees } from '../x402/evm-chain.ts'
import type { Rpc } from '../x402/rpc.ts'
import type { JournaledSender } from '../x402/sender.ts'
import { anchorCode, computeAnchorAddress, deployData, factory } from './anchor-contract.ts'

export type DeployedContractOptions = {
  /** CAIP-2. */
  readonly network: string
  readonly rpc: Rpc
  readonly sender: JournaledSender
  readonly world: World
  /** The contract's address; when not given, the address at which anybody may have made it. */
  readonly address?: string | undefined
}

const deployGas = 400_000n
/** Transactions of our key that are looked at. */
const listedMax = 64
/** Time after which the contract is sent again, where it is still not there. */
const deployMs = 60_000
/** Transactions that make the contract, after which a person must: each costs gas, though it may fail for ever. */
const deploysMax = 3

/** The reason for which nothing can be sent now, for the operator. */
export class AnchorProblem extends Error {
  override readonly name = 'AnchorProblem'
}

/** Throws an AnchorProblem while the base fee alone is above the most that is paid for a unit of gas. */
export async function refuseHighFee(rpc: Rpc, feeMax: bigint | undefined): Promise<void> {
  if (feeMax === undefined) return
  const { baseFee } = await readFees(rpc)
  if (baseFee > feeMax)
    throw new AnchorProblem(`the base fee is ${baseFee} wei, above the limit of ${feeMax}`)
}

/** The contract of contracts/Anchors.sol on one chain, made there where nobody has. */
export class DeployedContract {
  readonly address: string
  readonly #options: DeployedContractOptions
  #isThere = false
  readonly #deployed = new Pause()

  constructor(options: DeployedContractOptions) {
    this.#options = options
    this.address = options.address ?? computeAnchorAddress()
  }

  /** Returns false where the contract is on its way; throws an AnchorProblem where a person must act. */
  async ensure(): Promise<boolean> {
    if (this.#isThere) return true
    const { rpc, world, sender, network } = this.#options
    const code = await readCode(rpc, this.address)
    if (code === anchorCode) {
      this.#isThere = true
      return true
    }
    if (code !== '0x' || this.#options.address !== undefined)
      throw new AnchorProblem(`${this.address} is not the contract of contracts/Anchors.sol`)
    if ((await readCode(rpc, factory)) === '0x')
      throw new AnchorProblem(
        `${network} has no factory at ${factory}: deploy contracts/Anchors.sol, and give its address as \`contract\``,
      )
    if (this.#deployed.isOver(world.now())) {
      const sent = await sender.listNewest(listedMax)
      if (sent.filter(({ id }) => id.startsWith('anchors:')).length >= deploysMax)
        throw new AnchorProblem(
          `${factory} was called ${deploysMax} times on ${network} and made no contract: deploy contracts/Anchors.sol, and give its address as \`contract\``,
        )
      await sender.requireFunds(deployGas)
      const id = `anchors:${network}:${world.randomBytes(8).toString('hex')}`
      await sender.send({ id, to: factory, data: deployData, gas: deployGas })
      // Not before: a send that fails is tried again at the next look, and a second making has no effect.
      this.#deployed.begin(world.now(), deployMs)
    }
    return false
  }
}
