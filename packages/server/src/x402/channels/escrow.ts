import { chooseSmaller } from '../../base/bigint.ts'
import type { World } from '../../base/world.ts'
import { readCode, readConfirmedHeight, readWords, simulate } from '../evm-chain.ts'
import type { Failures } from '../failures.ts'
import { decodeHex, encodeHex, hashKeccak } from '../hex.ts'
import { listHashes } from '../journal.ts'
import type { PaymentNetwork } from '../networks.ts'
import type { PaymentsUnderWay, Spending } from '../payments-under-way.ts'
import type { Rpc } from '../rpc.ts'
import type { JournaledSender, PaymentLog } from '../sender.ts'
import { TransactionReceipts } from '../transaction-receipts.ts'
import {
  type ChannelConfig,
  type ChannelDeposit,
  collectorAddress,
  computeDepositNonce,
  escrowAddress,
} from './channel.ts'
import { authorizationCollector, channelEscrow } from './contracts.ts'
import {
  encodeChannelRead,
  encodeClaimCall,
  encodeDepositCall,
  encodeMulticall,
  encodeReceiverRead,
  encodeRefundCall,
  encodeSettleCall,
  encodeWithdrawalRead,
  type VoucherClaim,
} from './escrow-calls.ts'

/** The chain's books of a channel. */
export type EscrowState = {
  /** All that was deposited, without what went back to the payer; claims leave it as it is. */
  readonly balance: bigint
  /** Deposits that no confirmed block has; they are not in the balance. */
  readonly arriving: bigint
  readonly claimed: bigint
  /** The part that the payer is taking back by itself; 0 where none is. */
  readonly withdrawing: bigint
  /** When that began, in seconds since 1970; 0 where it did not. */
  readonly withdrawingSince: bigint
}

export type Sent =
  | { readonly state: 'mined'; readonly transaction: string }
  /** The chain does not take it. */
  | {
      readonly state: 'refused'
      readonly reason: string
      /** True where it cost gas to find that out. */
      readonly isMined?: true
    }
  /** It may be in a block later. */
  | { readonly state: 'pending'; readonly reason: string }

/** The channel contract of one network, by our key, which claims for the network's `payTo`. */
export type Escrow = {
  /** The address of our key: channels name it as receiverAuthorizer. */
  readonly authorizer: string
  /** Channels that were found changed since somebody last took them from here: their blocks may be replaced yet. */
  readonly changed: Set<string>
  readonly readState: (channelId: string) => Promise<EscrowState>
  /** Reads what was claimed for `payTo` from all channels, and what of it was sent there. */
  readonly readReceiver: () => Promise<{ readonly claimed: bigint; readonly settled: bigint }>
  /** Fills a channel; repeated, it is the same transaction. */
  readonly deposit: (
    channel: { readonly id: string; readonly config: ChannelConfig },
    deposit: ChannelDeposit,
  ) => Promise<Sent>
  /** Returns those rows that the chain would take together, without the bad ones among them. */
  readonly chooseClaimable: (rows: readonly VoucherClaim[]) => Promise<readonly VoucherClaim[]>
  /** Claims the rows; its name in the journal ends with the sum that they bring, which lists show. */
  readonly claim: (rows: readonly VoucherClaim[], sum: bigint) => Promise<Sent>
  /**
   * Sends what was claimed to `payTo`; repeated by the same name, it is the same transaction. The name ends with the sum,
   * after a colon.
   */
  readonly settle: (name: string) => Promise<Sent>
  /** Claims the row where there is one, and gives the payer so much back; `name` names it for ever. */
  readonly refund: (
    name: string,
    refund: {
      readonly config: ChannelConfig
      readonly amount: bigint
      readonly row?: VoucherClaim
    },
  ) => Promise<Sent>
  /** Finds what became of a refund; one that was never sent is refused. */
  readonly findRefund: (name: string) => Promise<Sent['state']>
}

export type EscrowOptions = {
  readonly rpc: Rpc
  readonly network: PaymentNetwork
  /** Already started. */
  readonly sender: JournaledSender
  readonly world: World
  readonly log: PaymentLog
  readonly pollMs: number
  readonly confirmations: number
  readonly failures: Failures
  readonly underWay: PaymentsUnderWay
}

const waitMs = 30_000
const gas = { deposit: 300_000n, claim: 120_000n, row: 60_000n, settle: 150_000n, refund: 400_000n }

/** Finds out why the contracts of a network are not those that the service knows; undefined where they are. */
export async function findForeignCode(
  rpc: Rpc,
  codeHash: string | undefined,
): Promise<string | undefined> {
  const [escrow, collector] = await Promise.all(
    [escrowAddress, collectorAddress].map((address) => readCode(rpc, address)),
  )
  const missing = [
    ...(escrow === '0x' ? [`the channel contract ${escrowAddress}`] : []),
    ...(collector === '0x' ? [`the collector of deposits ${collectorAddress}`] : []),
  ]
  if (missing.length > 0) return `there is no code of ${missing.join(' and ')}`
  const found = hashCodes(escrow ?? '', collector ?? '')
  const known = hashCodes(channelEscrow.code, authorizationCollector.code)
  if (found === known || found === codeHash) return undefined
  return `the code of ${escrowAddress} and ${collectorAddress} has together the hash ${found}, which is neither that of our own contracts nor code_hash`
}

/** Hashes the code of both contracts, one after the other. */
function hashCodes(escrow: string, collector: string): string {
  return encodeHex(hashKeccak(Buffer.concat([decodeHex(escrow), decodeHex(collector)])))
}

export function makeEscrow(options: EscrowOptions): Escrow {
  const { rpc, network, sender, confirmations } = options
  const receipts = new TransactionReceipts(options)
  const parts = { ...options, receipts }
  const { payTo } = network
  const token = network.asset.address
  const makeName = () => options.world.randomBytes(16).toString('hex')
  const canClaim = async (rows: readonly VoucherClaim[]) => {
    const call = { from: sender.address, to: escrowAddress, data: encodeClaimCall(rows) }
    return (await simulate(rpc, call)).ok
  }
  const chooseClaimable = async (
    rows: readonly VoucherClaim[],
  ): Promise<readonly VoucherClaim[]> => {
    if (rows.length === 0 || (await canClaim(rows))) return rows
    if (rows.length === 1) return []
    const middle = rows.length >> 1
    const first = await chooseClaimable(rows.slice(0, middle))
    return [...first, ...(await chooseClaimable(rows.slice(middle)))]
  }
  return {
    authorizer: sender.address,
    changed: new Set(),
    readState: async (id) => {
      // The withdrawal first, and the balance also as it is now: one that ends meanwhile has left the balance, though
      // not the confirmed one yet, and must be missing from either.
      const withdrawal = { to: escrowAddress, data: encodeWithdrawalRead(id) }
      const [withdrawing, withdrawingSince] = await readWords(rpc, withdrawal, undefined)
      const channel = { to: escrowAddress, data: encodeChannelRead(id) }
      const height = await readConfirmedHeight(rpc, confirmations)
      const [confirmed, claimed] = await readWords(rpc, channel, height)
      const [latest] = await readWords(rpc, channel, undefined)
      const balance = chooseSmaller(latest, confirmed)
      return { balance, arriving: latest - balance, claimed, withdrawing, withdrawingSince }
    },
    readReceiver: async () => {
      const height = await readConfirmedHeight(rpc, confirmations)
      const call = { to: escrowAddress, data: encodeReceiverRead(payTo, token) }
      const [claimed, settled] = await readWords(rpc, call, height)
      return { claimed, settled }
    },
    deposit: ({ id, config }, deposit) => {
      const nonce = computeDepositNonce(id, deposit.salt)
      const data = encodeDepositCall(config, deposit)
      const call = { id: `channel-deposit:${nonce}`, data, gas: gas.deposit }
      const spending = { from: config.payer, to: escrowAddress, nonce, value: deposit.amount }
      return sendDeposit(parts, spending, call)
    },
    chooseClaimable,
    claim: (rows, sum) =>
      send(parts, {
        id: `channel-claim:${makeName()}:${sum}`,
        data: encodeClaimCall(rows),
        gas: gas.claim + gas.row * BigInt(rows.length),
      }),
    settle: (name) =>
      send(parts, {
        id: `channel-settle:${name}`,
        data: encodeSettleCall(payTo, token),
        gas: gas.settle,
      }),
    refund: (name, { config, amount, row }) => {
      const refund = encodeRefundCall(config, amount)
      const data = row === undefined ? refund : encodeMulticall([encodeClaimCall([row]), refund])
      return send(parts, { id: `channel-refund:${name}`, data, gas: gas.refund })
    },
    findRefund: async (name) => {
      const journaled = await sender.find(`channel-refund:${name}`)
      if (journaled === undefined) return 'refused'
      const receipt = await receipts.wait(listHashes(journaled), 0)
      if (receipt === undefined) return journaled.state === 'replaced' ? 'refused' : 'pending'
      return receipt.succeeded ? 'mined' : 'refused'
    },
  }
}

/** Sends a payer's deposit, where the payer has that much beside its other payments, and not too many failed on our gas. */
async function sendDeposit(parts: Parts, spending: Spending, call: Call): Promise<Sent> {
  const { sender, underWay, failures, log } = parts
  const { from: payer } = spending
  try {
    // A transaction of an earlier try needs no room: the payer's balance has it deducted already.
    const refusal =
      (await sender.find(call.id)) === undefined && (await findRefusal(parts, spending, call.id))
    if (refusal) return refusal
  } catch (error) {
    log.warn({ id: call.id, error }, 'a deposit into a channel was not sent')
    return { state: 'pending', reason: 'not_sent' }
  }
  const sent = await send(parts, call)
  if (sent.state === 'pending') return sent
  underWay.leave(spending, sent.state === 'mined' ? 'made' : 'not made')
  if (sent.state === 'refused' && sent.isMined === true) failures.noteFailed(payer, call.id)
  else failures.noteHarmless(payer, call.id)
  return sent
}

/** Finds out why a deposit may not be sent; where it may, its money counts as spent until `leave`. */
async function findRefusal(
  { underWay, failures }: Parts,
  spending: Spending,
  id: string,
): Promise<Sent | undefined> {
  const { from: payer } = spending
  if (failures.isOver(payer)) return { state: 'refused', reason: 'failed_before' }
  const entry = await underWay.enter(spending)
  if (entry === 'busy') return { state: 'pending', reason: 'payer_has_others_under_way' }
  if (entry === 'short') return { state: 'refused', reason: 'insufficient_balance' }
  if ((await failures.allow(payer, id)) !== 'refused') return undefined
  underWay.leave(spending, 'not made')
  return { state: 'refused', reason: 'failed_before' }
}

type Parts = EscrowOptions & { readonly receipts: TransactionReceipts }

type Call = { readonly id: string; readonly data: string; readonly gas: bigint }

async function send(
  { rpc, sender, receipts, log }: Parts,
  { id, data, gas: limit }: Call,
): Promise<Sent> {
  const to = escrowAddress
  try {
    if ((await sender.find(id)) === undefined) {
      await sender.requireFunds(limit)
      const simulation = await simulate(rpc, { from: sender.address, to, data })
      if (!simulation.ok) return { state: 'refused', reason: simulation.reason }
    }
    const journaled = await sender.send({ id, to, data, gas: limit })
    if (journaled.state === 'reverted')
      return { state: 'refused', reason: 'its transaction was reverted', isMined: true }
    if (journaled.state === 'replaced')
      return { state: 'refused', reason: 'its transaction was replaced' }
    const receipt = await receipts.wait(listHashes(journaled), waitMs)
    if (receipt === undefined) return { state: 'pending', reason: 'not_confirmed' }
    const state = receipt.succeeded ? 'mined' : 'reverted'
    sender.note({ id, state, blockNumber: receipt.blockNumber })
    return receipt.succeeded
      ? { state: 'mined', transaction: receipt.hash }
      : { state: 'refused', reason: 'its transaction was reverted', isMined: true }
  } catch (error) {
    log.warn({ id, error }, 'a transaction of a channel was not sent')
    return { state: 'pending', reason: 'not_sent' }
  }
}
