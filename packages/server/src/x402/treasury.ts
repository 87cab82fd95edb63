import type { World } from '../base/world.ts'
import { readFinalHeight, readNewestBlock, simulate } from './evm-chain.ts'
import type { Facilitator, Settlement } from './facilitator.ts'
import { encodeHex, hashKeccak } from './hex.ts'
import type { PaymentNetwork } from './networks.ts'
import type { Requirement, SignedPayment } from './protocol.ts'
import type { Rpc } from './rpc.ts'
import { digestTransfer, signDigest } from './signature.ts'
import { encodeTransferCall } from './token.ts'
import { TwoLooks } from './two-looks.ts'
import { getNowSeconds } from './validity.ts'

/** A transfer of ours, out of the network's own address. */
export type TransferOrder = {
  /** Names the transfer for ever: the token takes each name once. */
  readonly id: string
  /** Lower case. */
  readonly to: string
  readonly amount: bigint
  /** Unix seconds. */
  readonly validBefore: bigint
}

/** Sends money out of the network's own address. */
export type Treasury = {
  /**
   * Sends the order, or looks what became of it; `attempt` counts transactions that were reverted. Repeated, it moves
   * money once, whatever happens to processes, nonces and journals: the token refuses a second use of the order.
   * `failed` and final: no block will ever take it, as two looks a minute apart found. `begin` is asked before anything of it is sent: where it says no,
   * nothing is.
   */
  readonly transfer: (
    order: TransferOrder,
    attempt: number,
    begin: () => Promise<boolean>,
  ) => Promise<Settlement>
}

/** The time before its end from which an order is not sent any more, in seconds. */
const sendMarginSeconds = 600n
/** The time by which the chain itself must be past an order's end, so that no reorganization brings it back. */
const endMarginSeconds = 600n

/** Returns the name of an order's transaction in the journal; `attempt` counts those before that were reverted. */
export function getTransferName(id: string, attempt: number): string {
  return attempt === 0 ? `transfer:${id}` : `transfer:${id}:${attempt}`
}

/** Derives the nonce of an order's authorization, 32 bytes as hexadecimal text. */
export function deriveTransferNonce(id: string): string {
  return encodeHex(hashKeccak(Buffer.from(`tollbase transfer 1\n${id}`)))
}

/** Opens the treasury of a network whose `payTo` has this key; `rpc` is a node of it. */
export function makeTreasury(parts: {
  readonly network: PaymentNetwork
  readonly facilitator: Facilitator
  readonly rpc: Rpc
  readonly world: World
  /** 32 bytes. */
  readonly key: Uint8Array
}): Treasury {
  const { network, facilitator, rpc, world, key } = parts
  const looks = new TwoLooks(world)
  return {
    transfer: async (order, attempt, begin) => {
      const payment = signTransferOut(network, key, order)
      const due = makeDue(network, order)
      const name = getTransferName(order.id, attempt)
      if (getNowSeconds(world) + sendMarginSeconds < order.validBefore) {
        const { asset } = network
        const call = { to: asset.address, data: encodeTransferCall(payment.payload) }
        const simulation = await simulate(rpc, call)
        if (simulation.ok) {
          if (!(await begin())) return { state: 'failed', reason: 'cancelled', final: false }
          return toOpen(toMade(await facilitator.settle(name, payment, due)))
        }
        // Sent, it would only cost gas, over and over; or it was sent, and is what makes the token refuse it now.
        const outcome = toOpen(toMade(await facilitator.lookup(name, payment, due)))
        const isUnsent = outcome.state === 'failed' && outcome.reason === 'not_sent'
        return isUnsent
          ? { ...outcome, reason: `the token refuses it: ${simulation.reason}` }
          : outcome
      }
      // In this order: the chain was past the end already when the token said that it is not used.
      const { height: head, seconds } = await readNewestBlock(rpc)
      const outcome = toMade(await facilitator.lookup(name, payment, due))
      const isOver = seconds > order.validBefore + endMarginSeconds
      if (!isOver || outcome.state !== 'failed' || !outcome.final) {
        looks.forget(order.id)
        return toOpen(outcome)
      }
      const final = await readFinalHeight(rpc, head)
      return looks.agree(order.id, { head, final }) ? outcome : toOpen(outcome)
    },
  }
}

/** Signs the order as the payment of `payTo`; the same order gives the same nonce, whatever transaction carries it. */
function signTransferOut(
  network: PaymentNetwork,
  key: Uint8Array,
  { id, to, amount, validBefore }: TransferOrder,
): SignedPayment {
  const authorization = {
    from: network.payTo,
    to,
    value: amount,
    validAfter: 0n,
    validBefore,
    nonce: deriveTransferNonce(id),
  }
  const signature = signDigest(digestTransfer(network, authorization), key)
  return {
    version: 1,
    network: network.id,
    scheme: 'exact',
    payload: { ...authorization, signature },
    receiptForm: 'base64',
  }
}

function makeDue(network: PaymentNetwork, { to, amount }: TransferOrder): Requirement {
  return {
    network: { ...network, payTo: to },
    amount,
    quoteId: '',
    expiresAt: 0,
    maxTimeoutSeconds: 0,
  }
}

/**
 * Takes an order that was used for made: our key signs one transfer for each name. Anybody may hand it to the token, the
 * one who is paid as well, among so many events that nobody can look at them.
 */
function toMade(outcome: Settlement): Settlement {
  if (outcome.state !== 'pending' || outcome.usedIn === undefined) return outcome
  return { state: 'settled', transaction: outcome.usedIn }
}

/** Takes a failure for final only where two looks agree past the order's end: its money is given back then. */
function toOpen(outcome: Settlement): Settlement {
  return outcome.state === 'failed' ? { ...outcome, final: false } : outcome
}
