/** The part of an entry that tells of channels. */
export type ChannelFacts = {
  /** The voucher of a sale by a channel, or of a total that was taken over; decimal strings. */
  readonly channel?: {
    readonly id: string
    readonly base: string
    readonly max_claimable: string
    readonly signature: string
  }
  /** Facts of entries of channels: those that they go on from, and those that they state; decimal strings. */
  readonly balance?: string
  readonly claimed?: string
  readonly withdrawing?: string
  readonly settled?: string
  readonly balance_before?: string
  readonly claimed_before?: string
  readonly withdrawing_before?: string
  readonly charged_before?: string
  readonly settled_before?: string
}

type Fact = ChannelFacts & { readonly kind: string; readonly payment_id: string }

/** A channel as the entries of the log tell it. */
export type ChannelBook = {
  /** The chain's, when it was last read. */
  balance: bigint
  claimed: bigint
  withdrawing: bigint
  charged: bigint
  uses: number
  /** The totals of charges that it ever had, the first one 0. */
  readonly totals: bigint[]
  /** The part of the total that no sale of this log has charged; it is the platform's. */
  unsold: bigint
}

export type ChannelBooks = {
  readonly channels: Map<string, ChannelBook>
  /** The sums that the contract has sent, by network. */
  readonly settled: Map<string, bigint>
}

export function makeChannelBooks(): ChannelBooks {
  return { channels: new Map(), settled: new Map() }
}

/** Books a fact about channels; false where it does not go on from what is booked, and does not count. */
export function noteChannelFact({ channels, settled }: ChannelBooks, body: Fact): boolean {
  const id = body.payment_id
  if (body.kind === 'channel_settled') {
    if ((settled.get(id) ?? 0n) !== BigInt(body.settled_before ?? 0)) return false
    settled.set(id, BigInt(body.settled ?? 0))
    return true
  }
  const book = channels.get(id) ?? makeBook()
  const charged = BigInt(body.charged_before ?? 0)
  if (body.kind === 'channel_adopted') {
    const base = BigInt(body.channel?.base ?? 0)
    if (!channels.has(id) || charged !== book.charged || base <= charged) return false
    raise(book, base)
    return true
  }
  const claimed = BigInt(body.claimed ?? 0)
  const isNext =
    BigInt(body.balance_before ?? 0) === book.balance &&
    BigInt(body.withdrawing_before ?? 0) === book.withdrawing &&
    BigInt(body.claimed_before ?? 0) === book.claimed &&
    (claimed <= charged || charged === book.charged)
  if (!isNext) return false
  const read = { balance: BigInt(body.balance ?? 0), withdrawing: BigInt(body.withdrawing ?? 0) }
  channels.set(id, Object.assign(book, read, { claimed }))
  if (claimed > book.charged) raise(book, claimed)
  return true
}

/** Books the voucher of a sale. */
export function noteVoucher(
  { channels }: ChannelBooks,
  { channel, amount }: Pick<ChannelFacts, 'channel'> & { readonly amount: string },
): boolean {
  const book = channels.get(channel?.id ?? '')
  if (channel === undefined || book === undefined) return false
  const charged = BigInt(channel.base) + BigInt(amount)
  if (BigInt(channel.base) !== book.charged || charged > BigInt(channel.max_claimable)) return false
  book.charged = charged
  book.totals.push(charged)
  book.uses += 1
  return true
}

/** Calls `add` with each amount that follows for the accounts of channels and of their contract, sales left out. */
export function addChannelBalances(
  { channels, settled }: ChannelBooks,
  network: string,
  add: (account: string, amount: bigint) => void,
): void {
  for (const [id, { claimed, unsold }] of channels) {
    add(`channel:${id}`, claimed - unsold)
    add(`escrow:${network}`, -claimed)
    add('platform', unsold)
  }
  for (const [other, sent] of settled) {
    add(`escrow:${other}`, sent)
    add(`outside:${other}`, -sent)
  }
}

function raise(book: ChannelBook, total: bigint): void {
  book.unsold += total - book.charged
  book.charged = total
  book.totals.push(total)
}

function makeBook(): ChannelBook {
  return {
    balance: 0n,
    claimed: 0n,
    withdrawing: 0n,
    charged: 0n,
    uses: 0,
    totals: [0n],
    unsold: 0n,
  }
}
