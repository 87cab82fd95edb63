import type { Logger } from 'pino'
import { chooseSmaller } from '../../../base/bigint.ts'
import type { ChannelRow } from '../../../projections/channel-tables.ts'
import {
  type ChannelCursor,
  listClaimableChannels,
  readSettled,
  sumClaimable,
} from '../../../projections/read-channels.ts'
import type { VoucherClaim } from '../../../x402/channels/escrow-calls.ts'
import type { PaymentPorts } from '../payment-ports.ts'
import { makeSettledEntry } from './channel-entries.ts'
import { type ChannelMethod, getUsable, parseConfig, watchMs } from './channel-register.ts'
import { type ReplacedMemory, readReplaced, syncChannels } from './read-replaced.ts'
import { endOldHolds } from './refund-channel.ts'

export type ClaimerPorts = Pick<
  PaymentPorts,
  'database' | 'tenants' | 'world' | 'methods' | 'refuseFullDisk' | 'onClaim'
> & {
  readonly log: Pick<Logger, 'warn'>
}

const intervalMs = 10_000
/** Time until the charges of a channel are claimed, and the sum (atomic units) from which they are claimed at once. */
const channelClaimSeconds = 3600
const channelClaimAtomic = 5_000_000n
/** Channels that one transaction claims from. */
const channelClaimsMax = 100
/** Channels that one round looks at; the next one goes on after them. */
const pageSize = 10 * channelClaimsMax
/** Pages that the last round looks at: the end of the service has an end. */
const endPagesMax = 10

/** The memory of the rounds of one network; a restart looks at everything anew. */
export type ClaimerMemory = ReplacedMemory & {
  /** When the chain was last asked about a channel. */
  readonly seenMs: Map<string, number>
  /** Where the next round goes on. */
  next: ChannelCursor
  /** The transaction that sends us what was claimed, while its end is not known. */
  settlement: string | undefined
}

const start: ChannelCursor = { sinceMs: -1n, id: '' }

export function makeClaimerMemory(): ClaimerMemory {
  return {
    seenMs: new Map(),
    refusedMs: new Map(),
    next: start,
    settledMs: 0,
    blocks: undefined,
    isReplaced: false,
    settlement: undefined,
  }
}

/**
 * Claims the charges of payment channels: when the sum is large, when a charge is old, when a payer withdraws money
 * that charges were made on, and when the service ends. The returned function ends it.
 */
export function startClaimer(ports: ClaimerPorts): () => Promise<void> {
  const { world, log } = ports
  const methods = ports.methods.flatMap((method) =>
    method.escrow === undefined
      ? []
      : [{ method: { ...method, escrow: method.escrow }, memory: makeClaimerMemory() }],
  )
  if (methods.length === 0) return async () => undefined
  let running: Promise<unknown> | undefined
  const warn = (text: string) => (error: unknown) => log.warn({ error: String(error) }, text)
  const run = (isEnd: boolean) => {
    // A network that cannot be reached keeps no other one waiting.
    const rounds = methods.map(({ method, memory }) =>
      runClaimRound(ports, method, { memory, isEnd }).catch(
        warn('channels could not be claimed from; trying again'),
      ),
    )
    running = Promise.all(rounds)
      .then(() =>
        endOldHolds(
          ports,
          methods.map(({ method }) => method),
        ),
      )
      .catch(warn('holds of channels could not be ended; trying again'))
      .finally(() => {
        running = undefined
      })
    return running
  }
  void run(false)
  const stop = world.every(intervalMs, () => void (running ?? run(false)))
  return async () => {
    stop()
    await running
    await run(true)
  }
}

/**
 * Claims from the channels of a network that are due, a page of them each round; from all where `isEnd`. A channel
 * that is not worth its gas waits until it is: a claim brings at least the network's smallest payment of each channel.
 */
export async function runClaimRound(
  ports: ClaimerPorts,
  method: ChannelMethod,
  { memory, isEnd }: { readonly memory: ClaimerMemory; readonly isEnd: boolean },
): Promise<void> {
  const { database, tenants, world } = ports
  const { chain, schema } = tenants.system
  const { id: network, minimumPayment: least } = method.network
  await chain.whenApplied(chain.head().height)
  forgetOld(memory, world.now())
  await readReplaced(ports, method, memory)
  const sum = await sumClaimable(database, schema, { network, least })
  const isMuch = sum >= (isEnd ? least : channelClaimAtomic)
  if (isEnd) memory.next = start
  let isClaimed = false
  for (let pages = isEnd ? endPagesMax : 1; pages > 0; pages--) {
    const page = { network, least, after: memory.next, limit: pageSize }
    const known = await listClaimableChannels(database, schema, page)
    const last = known.at(-1)
    memory.next =
      known.length < pageSize || last === undefined
        ? start
        : { sinceMs: last.unclaimed_since_ms ?? 0n, id: last.id }
    const channels = await watch(ports, method, { known, memory, isEnd })
    isClaimed = (await claimDue(ports, method, { channels, memory, isMuch, isEnd })) || isClaimed
    if (memory.next === start) break
  }
  const isSettled = memory.settlement === undefined && world.now() < memory.settledMs + watchMs
  if (!isClaimed && !isEnd && isSettled) return
  await settle(ports, method, memory)
  memory.settledMs = world.now()
}

function forgetOld({ seenMs, refusedMs }: ClaimerMemory, nowMs: number): void {
  for (const map of [seenMs, refusedMs])
    for (const [id, atMs] of map) if (nowMs >= atMs + watchMs) map.delete(id)
}

/**
 * Reads from the chain those channels that it was not asked about for long: their payers may be taking money back. One
 * that cannot be read is as it was known, and is read by the next round.
 */
async function watch(
  ports: ClaimerPorts,
  method: ChannelMethod,
  asked: {
    readonly known: readonly ChannelRow[]
    readonly memory: ClaimerMemory
    readonly isEnd: boolean
  },
): Promise<ChannelRow[]> {
  const { seenMs } = asked.memory
  const isRead = ({ id }: ChannelRow) => !asked.isEnd && seenMs.has(id)
  const unread = asked.known.filter((one) => !isRead(one))
  const read = await syncChannels(ports, method, unread)
  for (const { id } of read) seenMs.set(id, ports.world.now())
  if (read.length < unread.length)
    ports.log.warn(
      { network: method.network.id, channels: unread.length - read.length },
      'channels could not be read from their chain; trying again',
    )
  const byId = new Map(read.map((one) => [one.id, one]))
  return asked.known.map((one) => byId.get(one.id) ?? one)
}

/** Returns true where anything was claimed. */
async function claimDue(
  ports: ClaimerPorts,
  method: ChannelMethod,
  asked: {
    readonly channels: readonly ChannelRow[]
    readonly memory: ClaimerMemory
    readonly isMuch: boolean
    readonly isEnd: boolean
  },
): Promise<boolean> {
  const { channels, memory, isMuch, isEnd } = asked
  const oldMs = BigInt(ports.world.now() - channelClaimSeconds * 1000)
  const due = channels.filter((one) => {
    if (computeClaimable(one) < method.network.minimumPayment) return false
    if (!isEnd && memory.refusedMs.has(one.id)) return false
    const isOld = (one.unclaimed_since_ms ?? oldMs) < oldMs
    return isMuch || isOld || one.charged > getUsable(one)
  })
  let isClaimed = false
  for (let at = 0; at < due.length; at += channelClaimsMax)
    isClaimed =
      (await claimFrom(ports, method, {
        channels: due.slice(at, at + channelClaimsMax),
        memory,
      })) || isClaimed
  return isClaimed
}

/**
 * One bad row would make the whole claim fail. So rows that the chain does not take are left out, and the log names
 * them.
 */
async function claimFrom(
  ports: ClaimerPorts,
  method: ChannelMethod,
  {
    channels,
    memory,
  }: { readonly channels: readonly ChannelRow[]; readonly memory: ClaimerMemory },
): Promise<boolean> {
  const { world, log } = ports
  const rows = channels.flatMap((channel) =>
    listVoucherClaims(channel).map((row) => ({ ...row, id: channel.id })),
  )
  const good = await method.escrow.chooseClaimable(rows)
  for (const row of rows.filter((one) => !good.includes(one))) {
    memory.refusedMs.set(row.id, world.now())
    ports.onClaim?.('refused')
    log.warn(
      { payer: row.config.payer, channel: row.id, total: String(row.total) },
      'the chain does not take a claim from a channel',
    )
  }
  if (good.length === 0) return false
  const ids = new Set(rows.flatMap((row) => (good.includes(row) ? row.id : [])))
  const claimed = channels.filter(({ id }) => ids.has(id))
  const sent = await method.escrow.claim(
    good,
    claimed.reduce((sum, one) => sum + computeClaimable(one), 0n),
  )
  world.failpoint?.('channel.claimed')
  ports.onClaim?.(sent.state === 'mined' ? 'made' : 'failed')
  if (sent.state !== 'mined') {
    log.warn({ reason: sent.reason }, 'a claim from channels is not made yet')
    return false
  }
  const claimedBy = sent.transaction
  await syncChannels(
    ports,
    method,
    channels.map((one) => (ids.has(one.id) ? { ...one, claimedBy } : one)),
  )
  return true
}

/** If a payer has withdrawn money that was charged, only the rest can be claimed. */
function computeClaimable({ charged, claimed, balance }: ChannelRow): bigint {
  return chooseSmaller(charged, balance) - claimed
}

/** Lists what can be claimed of a channel, by its last voucher, which covers all that was charged; none without one. */
function listVoucherClaims(channel: ChannelRow): VoucherClaim[] {
  const { max_claimable: maxClaimable, signature } = channel
  if (maxClaimable === null || signature === null) return []
  const total = channel.claimed + computeClaimable(channel)
  return [{ config: parseConfig(channel), maxClaimable, signature, total }]
}

/** Lets the contract send us what was claimed, where that is worth its gas, and books what it has sent. */
async function settle(
  ports: ClaimerPorts,
  { network, escrow }: ChannelMethod,
  memory: Pick<ClaimerMemory, 'settlement'>,
): Promise<void> {
  const { database, tenants, world } = ports
  const { chain, schema } = tenants.system
  const before = await escrow.readReceiver()
  const due = before.claimed - before.settled
  const isWorthIt = due >= network.minimumPayment
  const name = memory.settlement ?? `${world.randomBytes(16).toString('hex')}:${due}`
  memory.settlement = undefined
  if (isWorthIt) {
    const sent = await escrow.settle(name)
    if (sent.state === 'pending') memory.settlement = name
    if (sent.state !== 'mined')
      ports.log.warn({ reason: sent.reason }, 'claims from channels are not sent to us yet')
  }
  const { settled } = await escrow.readReceiver()
  await chain.whenApplied(chain.head().height)
  const booked = await readSettled(database, schema, network.id)
  if (settled !== booked)
    await chain.append([makeSettledEntry(network.id, booked, settled)], { isOwed: true })
}
