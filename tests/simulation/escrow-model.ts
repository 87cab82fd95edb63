import {
  type ChannelConfig,
  computeChannelId,
  isVoucherSigned,
} from '../../packages/server/src/x402/channels/channel.ts'
import type { VoucherClaim } from '../../packages/server/src/x402/channels/escrow-calls.ts'

/** A call of the channel contract that changes something. */
export type EscrowCall =
  | { readonly kind: 'deposit'; readonly config: ChannelConfig; readonly amount: bigint }
  | { readonly kind: 'claim'; readonly rows: readonly VoucherClaim[] }
  | { readonly kind: 'settle'; readonly receiver: string; readonly token: string }
  | { readonly kind: 'refund'; readonly config: ChannelConfig; readonly amount: bigint }
  | { readonly kind: 'initiateWithdraw'; readonly config: ChannelConfig; readonly amount: bigint }
  | { readonly kind: 'finalizeWithdraw'; readonly config: ChannelConfig }

/** The contract's books of one channel, in atomic units; `withdrawingSince` is in seconds since 1970. */
export type ChannelState = {
  readonly balance: bigint
  readonly claimed: bigint
  readonly withdrawing: bigint
  readonly withdrawingSince: bigint
}

/** All books of the contract: channels by id, and by receiver and token what was claimed and what of it was sent. */
export type EscrowBooks = {
  readonly channels: ReadonlyMap<string, ChannelState>
  readonly receivers: ReadonlyMap<string, { readonly claimed: bigint; readonly settled: bigint }>
}

/** The sender of a call and the block that it is in. */
export type EscrowContext = {
  readonly chainId: number
  /** Lower case. */
  readonly sender: string
  /** Seconds since 1970. */
  readonly seconds: bigint
}

/** The name of the contract's error. */
export class Revert extends Error {}

export const emptyBooks: EscrowBooks = { channels: new Map(), receivers: new Map() }
const unused: ChannelState = { balance: 0n, claimed: 0n, withdrawing: 0n, withdrawingSince: 0n }

export function readChannel(books: EscrowBooks, id: string): ChannelState {
  return books.channels.get(id) ?? unused
}

export function readReceiver(books: EscrowBooks, receiver: string, token: string) {
  return books.receivers.get(`${receiver}/${token}`) ?? { claimed: 0n, settled: 0n }
}

/**
 * Computes the contract's books after a call; throws `Revert` where it reverts. The token's part in a deposit is not
 * here: whoever calls this sees to it that the money is taken. escrow-model.test.ts compares it with the contract's code.
 */
export function applyCall(
  books: EscrowBooks,
  call: EscrowCall,
  context: EscrowContext,
): EscrowBooks {
  switch (call.kind) {
    case 'deposit':
      return deposit(books, call, context)
    case 'claim':
      if (call.rows.length === 0) throw new Revert('EmptyBatch')
      return call.rows.reduce((before, row) => claim(before, row, context), books)
    case 'settle': {
      const { claimed } = readReceiver(books, call.receiver, call.token)
      return withReceiver(books, call, { claimed, settled: claimed })
    }
    case 'refund':
      return refund(books, call, context)
    case 'initiateWithdraw':
      return initiateWithdraw(books, call, context)
    case 'finalizeWithdraw':
      return finalizeWithdraw(books, call, context)
  }
}

const delayMin = 900
const delayMax = 30 * 86_400
const nobody = `0x${'00'.repeat(20)}`

function deposit(
  books: EscrowBooks,
  { config, amount }: { readonly config: ChannelConfig; readonly amount: bigint },
  { chainId }: EscrowContext,
): EscrowBooks {
  const { payer, receiver, receiverAuthorizer, token, withdrawDelay } = config
  if ([payer, receiver, receiverAuthorizer, token].includes(nobody))
    throw new Revert('InvalidChannel')
  if (withdrawDelay < delayMin || withdrawDelay > delayMax)
    throw new Revert('WithdrawDelayOutOfRange')
  if (amount === 0n) throw new Revert('ZeroAmount')
  const id = computeChannelId(chainId, config)
  const known = readChannel(books, id)
  return withChannel(books, id, { ...known, balance: known.balance + amount })
}

/** A row that was claimed before is skipped. */
function claim(books: EscrowBooks, row: VoucherClaim, context: EscrowContext): EscrowBooks {
  const { config, maxClaimable, signature, total } = row
  requireReceiver(config, context)
  const channelId = computeChannelId(context.chainId, config)
  const known = readChannel(books, channelId)
  if (total <= known.claimed) return books
  if (total > maxClaimable) throw new Revert('ClaimExceedsVoucher')
  if (total > known.balance) throw new Revert('ClaimExceedsBalance')
  const authorizer = config.payerAuthorizer === nobody ? config.payer : config.payerAuthorizer
  const voucher = { channelId, maxClaimable, signature }
  if (!isVoucherSigned(context.chainId, { payerAuthorizer: authorizer }, voucher))
    throw new Revert('InvalidSignature')
  const { receiver, token } = config
  const before = readReceiver(books, receiver, token)
  const claimed = before.claimed + total - known.claimed
  return withChannel(withReceiver(books, config, { ...before, claimed }), channelId, {
    ...known,
    claimed: total,
  })
}

function refund(
  books: EscrowBooks,
  { config, amount }: { readonly config: ChannelConfig; readonly amount: bigint },
  context: EscrowContext,
): EscrowBooks {
  requireReceiver(config, context)
  if (amount === 0n) throw new Revert('ZeroAmount')
  const id = computeChannelId(context.chainId, config)
  const known = readChannel(books, id)
  const given = takeLess(amount, getUnclaimed(known))
  if (given === 0n) return books
  const after = { ...known, balance: known.balance - given }
  const withdrawing = takeLess(known.withdrawing, getUnclaimed(after))
  const withdrawingSince = getUnclaimed(after) === 0n ? 0n : known.withdrawingSince
  return withChannel(books, id, { ...after, withdrawing, withdrawingSince })
}

function initiateWithdraw(
  books: EscrowBooks,
  { config, amount }: { readonly config: ChannelConfig; readonly amount: bigint },
  context: EscrowContext,
): EscrowBooks {
  requirePayer(config, context)
  if (amount === 0n) throw new Revert('ZeroAmount')
  const id = computeChannelId(context.chainId, config)
  const known = readChannel(books, id)
  if (known.withdrawingSince !== 0n) throw new Revert('WithdrawalPending')
  if (amount > getUnclaimed(known)) throw new Revert('WithdrawExceedsBalance')
  const began = { withdrawing: amount, withdrawingSince: context.seconds }
  return withChannel(books, id, { ...known, ...began })
}

function finalizeWithdraw(
  books: EscrowBooks,
  { config }: { readonly config: ChannelConfig },
  context: EscrowContext,
): EscrowBooks {
  requirePayer(config, context)
  const id = computeChannelId(context.chainId, config)
  const known = readChannel(books, id)
  if (known.withdrawingSince === 0n) throw new Revert('NoWithdrawalPending')
  if (context.seconds < known.withdrawingSince + BigInt(config.withdrawDelay))
    throw new Revert('WithdrawDelayNotElapsed')
  const given = takeLess(known.withdrawing, getUnclaimed(known))
  const ended = { withdrawing: 0n, withdrawingSince: 0n }
  return withChannel(books, id, { ...known, ...ended, balance: known.balance - given })
}

function requireReceiver(
  { receiver, receiverAuthorizer }: ChannelConfig,
  { sender }: EscrowContext,
): void {
  if (sender !== receiver && sender !== receiverAuthorizer) throw new Revert('NotAuthorized')
}

function requirePayer({ payer, payerAuthorizer }: ChannelConfig, { sender }: EscrowContext): void {
  if (sender !== payer && sender !== payerAuthorizer) throw new Revert('NotAuthorized')
}

function getUnclaimed({ balance, claimed }: ChannelState): bigint {
  return balance - claimed
}

function withChannel(books: EscrowBooks, id: string, channel: ChannelState): EscrowBooks {
  return { ...books, channels: new Map(books.channels).set(id, channel) }
}

function withReceiver(
  books: EscrowBooks,
  { receiver, token }: { readonly receiver: string; readonly token: string },
  sums: { readonly claimed: bigint; readonly settled: bigint },
): EscrowBooks {
  return { ...books, receivers: new Map(books.receivers).set(`${receiver}/${token}`, sums) }
}

function takeLess(one: bigint, other: bigint): bigint {
  return one < other ? one : other
}
