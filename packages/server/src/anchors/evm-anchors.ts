import { encodeAnchorCall, hashOrigin, parseAnchorTransaction } from '@tollbase/verify/anchor'
import { FormatError } from '@tollbase/verify/bytes'
import type { Checkpoint } from '@tollbase/verify/checkpoint'
import { requirePresent } from '../base/assert.ts'
import type { World } from '../base/world.ts'
import {
  findMinedOf,
  type Mined,
  readBlockHash,
  readBlockTime,
  readHead,
  readTransactionCount,
} from '../x402/evm-chain.ts'
import { encodeHex } from '../x402/hex.ts'
import type { PaymentNetwork } from '../x402/networks.ts'
import type { Rpc } from '../x402/rpc.ts'
import type { JournaledSender } from '../x402/sender.ts'
import { UsedNonces } from '../x402/used-nonces.ts'
import type { AnchorChain, AnchorState, EvmAnchor, SentAnchor, Tree } from './anchor-chain.ts'
import { hasAnchorEvent } from './anchor-event.ts'
import { DeployedContract, refuseHighFee } from './deployed-contract.ts'

export type EvmAnchorsOptions = {
  readonly network: Pick<PaymentNetwork, 'id' | 'chainId'>
  readonly rpc: Rpc
  /** Sends the anchors; its key sends nothing else. */
  readonly sender: JournaledSender
  readonly world: World
  /** The contract's address; when not given, the address at which anybody may have made it. */
  readonly contract?: string | undefined
  /** The number of blocks that must hold or follow an anchor; 1 is its own. */
  readonly confirmations: number
  /** Wei of the most that is paid for a unit of gas; unlimited when not given. */
  readonly feeMax?: bigint | undefined
}

/** A transaction of ours that anchors, as it was signed. */
type SentTransaction = SentAnchor & {
  /** Its bytes by its hash, and those that it replaced, any of which may be in a block; 0x hex. */
  readonly raws: ReadonlyMap<string, string>
  readonly nonce: bigint
  /** True where the sender has found that its nonce was taken by another one, for good. */
  readonly isReplaced: boolean
}

/** The gas limit: 25,000 are used; chains that charge for another chain's data in gas need more. */
const anchorGas = 200_000n
/** Transactions of our key that are looked at. */
const listedMax = 64

/** Anchors checkpoints on one EVM chain. */
export class EvmAnchors implements AnchorChain {
  readonly #options: EvmAnchorsOptions
  readonly #contract: DeployedContract
  readonly #usedNonces: UsedNonces
  #isStarted = false
  /** The anchors that were listed last, by id. */
  #listed: ReadonlyMap<string, SentTransaction> = new Map()
  /** The trees of the transactions that were listed last, by their bytes: each takes 2 ms of the processor to read. */
  #trees: Map<string, Tree | undefined> = new Map()

  constructor(options: EvmAnchorsOptions) {
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

  async start(): Promise<void> {
    if (!this.#isStarted) await this.#options.sender.start()
    this.#isStarted = true
  }

  interrupt(): void {
    this.#options.rpc.close()
  }

  async stop(): Promise<void> {
    if (this.#isStarted) await this.#options.sender.stop()
  }

  async list(): Promise<SentAnchor[]> {
    const { contract } = this.place
    const rows = await this.#options.sender.listNewest(listedMax)
    const before = this.#trees
    this.#trees = new Map()
    const listed = rows.flatMap((row): SentTransaction[] => {
      const { id, hash, nonce, state } = row
      const raw = encodeHex(row.raw)
      const tree = before.has(raw) ? before.get(raw) : findTree(raw, contract)
      this.#trees.set(raw, tree)
      const isAlive = state === 'signed' || state === 'mined'
      const isReplaced = state === 'replaced'
      const earlier = row.earlierHashes.map((one, at): [string, string] => [
        one,
        encodeHex(row.earlierRaws[at] ?? Buffer.alloc(0)),
      ])
      const raws = new Map([...earlier, [hash, raw] as const])
      return tree === undefined
        ? []
        : [{ id, names: [...raws.keys()], nonce, raws, isAlive, isReplaced, ...tree }]
    })
    this.#listed = new Map(listed.map((one) => [one.id, one]))
    return listed
  }

  async send(checkpoint: Checkpoint): Promise<boolean> {
    const { sender, world, rpc, feeMax } = this.#options
    await refuseHighFee(rpc, feeMax)
    if (!(await this.#contract.ensure())) return false
    await sender.requireFunds(anchorGas)
    await sender.send({
      id: `anchor:${this.network}:${checkpoint.size}:${world.randomBytes(8).toString('hex')}`,
      to: this.#contract.address,
      data: encodeHex(encodeAnchorCall(checkpoint)),
      gas: anchorGas,
    })
    return true
  }

  async readHeight(): Promise<number> {
    return Number(await readHead(this.#options.rpc))
  }

  async readStates(sent: readonly SentAnchor[], origin: string): Promise<AnchorState[]> {
    const { rpc } = this.#options
    // The order matters: a receipt that is older than the head may be of a block that was replaced since.
    const [head, count] = await Promise.all([
      readHead(rpc),
      readTransactionCount(rpc, this.place.signer),
    ])
    const found = await Promise.all(
      sent.map(async ({ id }) => {
        const one = requirePresent(this.#listed.get(id), 'an anchor that was listed')
        return { id, one, mined: await findMinedOf(rpc, [...one.raws.keys()]) }
      }),
    )
    const { signer } = this.place
    const gone = await this.#usedNonces.findReplaced(
      found.map(({ id, one: { raws, nonce }, mined }) => ({
        ...{ id, hashes: [...raws.keys()], place: { signer, nonce } },
        isMissing: mined === undefined && nonce < count,
      })),
    )
    return Promise.all(
      found.map(async ({ id, one, mined }): Promise<AnchorState> => {
        if (mined === undefined)
          return { state: one.isReplaced || gone.has(id) ? 'failed' : 'waiting' }
        const depth = Number(head - mined.blockNumber) + 1
        if (depth < this.#options.confirmations) return { state: 'unconfirmed' }
        // One of several nodes behind a URL may be of another fork than the one that told the head.
        if ((await readBlockHash(rpc, mined.blockNumber)) !== mined.blockHash)
          return { state: 'unconfirmed' }
        if (!mined.succeeded || !this.#hasEvent(mined, one, origin))
          return this.#noteFailed(one, mined)
        return { state: 'confirmed', depth, anchor: await this.#describe(one, mined) }
      }),
    )
  }

  #noteFailed({ id }: SentTransaction, { blockNumber }: Mined): AnchorState {
    this.#options.sender.note({ id, state: 'reverted', blockNumber })
    return { state: 'failed' }
  }

  async #describe(sent: SentTransaction, mined: Mined): Promise<EvmAnchor> {
    const { sender, rpc } = this.#options
    const { id, raws, size, root } = sent
    const { hash: transaction } = mined
    const time = await readBlockTime(rpc, mined.blockNumber)
    sender.note({ id, state: 'mined', blockNumber: mined.blockNumber })
    return {
      network: this.network,
      ...this.place,
      transaction,
      raw: requirePresent(raws.get(transaction), 'the bytes of a transaction of ours'),
      block_number: Number(mined.blockNumber),
      block_hash: mined.blockHash,
      time: new Date(Number(time) * 1000).toISOString(),
      gas_used: Number(mined.gasUsed),
      size,
      root: Buffer.from(root).toString('base64'),
    }
  }

  /** Another contract at the address would leave no such event. */
  #hasEvent(mined: Mined, { size, root }: Tree, origin: string): boolean {
    return hasAnchorEvent(mined.logs, { ...this.place, origin: hashOrigin(origin), size, root })
  }
}

/** Returns the tree that a transaction anchors; undefined where it is something else, such as the contract's making. */
function findTree(raw: string, contract: string): Tree | undefined {
  try {
    const { size, root, to } = parseAnchorTransaction(raw)
    return to === contract ? { size, root } : undefined
  } catch (error) {
    if (error instanceof FormatError) return undefined
    throw error
  }
}
