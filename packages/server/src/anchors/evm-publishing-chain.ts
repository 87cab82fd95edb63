import { encodeAnchorCall, hashOrigin } from '@tollbase/verify/anchor'
import { concat } from '@tollbase/verify/bytes'
import type { World } from '../base/world.ts'
import {
  findMinedOf,
  type Mined,
  readBlockHash,
  readHead,
  readTransactionCount,
} from '../x402/evm-chain.ts'
import { encodeHex } from '../x402/hex.ts'
import { type Journaled, listHashes } from '../x402/journal.ts'
import type { PaymentNetwork } from '../x402/networks.ts'
import { isWithdrawn } from '../x402/replacer.ts'
import type { Rpc } from '../x402/rpc.ts'
import type { JournaledSender, MayLeave } from '../x402/sender.ts'
import { UsedNonces } from '../x402/used-nonces.ts'
import { hasAnchorEvent } from './anchor-event.ts'
import { DeployedContract, refuseHighFee } from './deployed-contract.ts'
import type { Named, PublishingChain, Sending, Sent, SentState } from './publishing-chain.ts'

export type EvmPublishingChainOptions = {
  readonly network: Pick<PaymentNetwork, 'id' | 'chainId'>
  readonly rpc: Rpc
  /** Its key sends nothing else. */
  readonly sender: JournaledSender
  readonly world: World
  /** The contract's address; when not given, the address at which anybody may have made it. */
  readonly contract?: string | undefined
  /** The number of blocks that must hold or follow a transaction; 1 is its own. */
  readonly confirmations: number
  /** Wei of the most that is paid for a unit of gas; unlimited when not given. */
  readonly feeMax?: bigint | undefined
}

/** Something that was sent, with what the journal and the chain have of it. */
type Found = Sent & {
  readonly journaled: Journaled | undefined
  /** Those under which a block may have it. */
  readonly hashes: readonly string[]
  readonly mined: Mined | undefined
}

/** Nodes take no transaction above 131,072 bytes; 120,000 is what batch posters of other systems stay below. */
const dataBytesMax = 120_000
const callBytes = 4 + 3 * 32
/** Nodes hold few transactions of this size for one sender. */
const onTheirWayMax = 4
/** The blocks above its own that a block must have before nobody looks whether it is still there. */
const finalAbove = 63n
/** Gas of a transaction before its data, and what the contract uses, with room for chains that count more. */
const baseGas = 21_000n
const roomGas = 100_000n

/**
 * Publishes bytes as the data of calls of contracts/Anchors.sol: the call anchors the log's tree, and the bytes follow
 * its arguments, which the contract does not read. So one query of the event finds all that was published of a log.
 */
export class EvmPublishingChain implements PublishingChain {
  readonly chunkBytesMax: number = dataBytesMax - callBytes
  readonly onTheirWayMax: number = onTheirWayMax
  readonly #options: EvmPublishingChainOptions
  readonly #contract: DeployedContract
  readonly #usedNonces: UsedNonces
  #isStarted = false

  constructor(options: EvmPublishingChainOptions) {
    this.#options = options
    const { rpc, sender, world, network, contract: address } = options
    this.#contract = new DeployedContract({ network: network.id, rpc, sender, world, address })
    this.#usedNonces = new UsedNonces(rpc, world)
  }

  get network(): string {
    return this.#options.network.id
  }

  get place(): { readonly contract: string; readonly signer: string } {
    return { contract: this.#contract.address, signer: this.#options.sender.address }
  }

  async start(mayLeave: MayLeave): Promise<void> {
    if (!this.#isStarted) await this.#options.sender.start(mayLeave)
    this.#isStarted = true
  }

  interrupt(): void {
    this.#options.rpc.close()
  }

  async stop(): Promise<void> {
    if (this.#isStarted) await this.#options.sender.stop()
  }

  async send({ id, tree }: Sending, chunk: Uint8Array): Promise<string | undefined> {
    const { sender, rpc, feeMax } = this.#options
    const known = await sender.find(id)
    if (known !== undefined) return known.hash
    await refuseHighFee(rpc, feeMax)
    if (!(await this.#contract.ensure())) return undefined
    const data = concat(encodeAnchorCall(tree), chunk)
    const gas = computeGas(data)
    await sender.requireFunds(gas)
    const { hash } = await sender.send({
      id,
      to: this.#contract.address,
      data: encodeHex(data),
      gas,
    })
    return hash
  }

  async readStates(sent: readonly Sent[]): Promise<SentState[]> {
    const { rpc, sender } = this.#options
    // The order matters: a receipt that is older than the head may be of a block that was replaced since.
    const [head, count] = await Promise.all([
      readHead(rpc),
      readTransactionCount(rpc, this.place.signer),
    ])
    const found = await Promise.all(
      sent.map(async (one): Promise<Found> => {
        const journaled = await sender.find(one.id)
        const hashes = journaled ? listHashes(journaled) : [one.transaction]
        return { ...one, journaled, hashes, mined: await findMinedOf(rpc, hashes) }
      }),
    )
    const gone = await this.#usedNonces.findReplaced(
      found.map(({ id, hashes, journaled, mined }) => {
        // Nobody replaces what an earlier key signed.
        const place = journaled?.signer === this.place.signer ? journaled : undefined
        const isFree = place !== undefined && place.nonce >= count
        return { id, hashes, place, isMissing: mined === undefined && !isFree }
      }),
    )
    return Promise.all(
      found.map(async (one): Promise<SentState> => {
        if (one.mined !== undefined) return this.#judge(one, one.mined, head)
        const isGone = gone.has(one.id) || one.journaled?.state === 'replaced'
        return { state: isGone ? 'failed' : 'waiting' }
      }),
    )
  }

  async #judge({ id, tree, journaled }: Found, mined: Mined, head: bigint): Promise<SentState> {
    const { rpc, sender, confirmations } = this.#options
    const { blockNumber, blockHash } = mined
    if (head - blockNumber + 1n < BigInt(confirmations)) return { state: 'unconfirmed' }
    // One of several nodes behind a URL may be of another fork than the one that told the head, or have no such head.
    // No answer says no more than that the block is yet to come, as the one above is for most of the time.
    const find = (height: bigint) => readBlockHash(rpc, height).catch(() => undefined)
    const [hash, above] = await Promise.all([find(blockNumber), find(blockNumber + finalAbove)])
    if (hash !== blockHash) return { state: 'unconfirmed' }
    const event = { ...tree, ...this.place, origin: hashOrigin(tree.origin) }
    const isGood = mined.succeeded && hasAnchorEvent(mined.logs, event)
    sender.note({ id, state: isGood ? 'mined' : 'reverted', blockNumber })
    if (isGood)
      return {
        ...{ state: 'confirmed', transaction: mined.hash },
        ...{ blockNumber: Number(blockNumber), blockHash, isFinal: above !== undefined },
      }
    const isEmpty = journaled?.hash === mined.hash && isWithdrawn(journaled)
    return { state: isEmpty ? 'withdrawn' : 'failed' }
  }

  list(idStart: string): Promise<readonly Named[]> {
    return this.#options.sender.listNames(idStart)
  }

  forget(idStarts: readonly string[]): Promise<void> {
    return this.#options.sender.forget(idStarts)
  }
}

/** Computes the gas limit: 40 for a byte of data, 10 for a zero byte (EIP-7623), and half as much again. */
function computeGas(data: Uint8Array): bigint {
  const zeros = data.reduce((count, byte) => count + (byte === 0 ? 1 : 0), 0)
  const forData = BigInt(40 * (data.length - zeros) + 10 * zeros)
  return baseGas + roomGas + (forData * 3n) / 2n
}
