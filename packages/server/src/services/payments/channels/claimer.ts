import { limits } from '@tollbase/contract/limits'
import type { Logger } from 'pino'
import {
  type ChannelRow,
  listUnclaimedChannels,
  readSettled,
} from '../../../projections/channel-books.ts'
import type { ClaimRow } from '../../../x402/channels/escrow-calls.ts'
import type { PaymentPorts } from '../purchase.ts'
import { makeSettledEntry } from './channel-entries.ts'
import {
  type ChannelMethod,
  getUsable,
  parseConfig,
  syncChannel,
  watchMs,
} from './channel-register.ts'
import { endOldRefunds } from './refund-channel.ts'

type Ports = Pick<PaymentPorts, 'database' | 'tenants' | 'world' | 'methods' | 'admit'> & {
  readonly log: Pick<Logger, 'warn'>
}

const intervalMs = 10_000
/** Channels that one round looks at; the next one looks at the rest. */
const pageSize = 10 * limits.channelClaimsMax

/**
 * Claims from payment channels what was charged to them: where it is much, where it is old, where a payer takes back
 * what it is charged on, and at the end of the service. The returned function ends it.
 */
export function startClaimer(ports: Ports): () => Promise<void> {
  const { world, log } = ports
  const methods = ports.methods.flatMap((method) =>
    method.escrow === undefined ? [] : [{ ...method, escrow: method.escrow }],
  )
  if (methods.length === 0) return async () => undefined
  let watchedMs = 0
  let running: Promise<void> | undefined
  const run = (isEnd: boolean) => {
    const isWatch = isEnd || world.now() >= watchedMs + watchMs
    if (isWatch) watchedMs = world.now()
    running = Promise.all(methods.map((method) => runClaimRound(ports, method, { isWatch, isEnd })))
      .then(() => endOldRefunds(ports, methods))
      .catch((error: unknown) => {
        log.warn({ error: String(error) }, 'channels could not be claimed from; trying again')
      })
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

/** Claims from the channels of a network that are due; all that is worth its gas where `isEnd`. */
export async function runClaimRound(
  ports: Ports,
  method: ChannelMethod,
  { isWatch, isEnd }: { readonly isWatch: boolean; readonly isEnd: boolean },
): Promise<void> {
  const { database, tenants, world } = ports
  const { chain, schema } = tenants.system
  await chain.whenApplied(chain.head().height)
  const page = { network: method.network.id, limit: pageSize }
  const known = await listUnclaimedChannels(database, schema, page)
  const channels = isWatch ? await refreshAll(ports, method, known) : known
  const sum = channels.reduce((total, { charged, claimed }) => total + charged - claimed, 0n)
  const isMuch = sum >= (isEnd ? method.network.minimumPayment : limits.channelClaimAtomic)
  const oldMs = BigInt(world.now() - limits.channelClaimSeconds * 1000)
  const due = channels.filter(
    (one) => isMuch || one.charged > getUsable(one) || (one.unclaimed_since_ms ?? oldMs) < oldMs,
  )
  for (let at = 0; at < due.length; at += limits.channelClaimsMax)
    await claimFrom(ports, method, due.slice(at, at + limits.channelClaimsMax))
  if (due.length > 0 || isWatch) await settle(ports, method)
}

async function refreshAll(
  ports: Ports,
  method: ChannelMethod,
  channels: readonly ChannelRow[],
): Promise<ChannelRow[]> {
  const seen: ChannelRow[] = []
  for (const channel of channels) {
    const named = { id: channel.id, config: parseConfig(channel) }
    seen.push((await syncChannel(ports, method, named)) ?? channel)
  }
  return seen.filter(({ charged, claimed }) => charged > claimed)
}

/** One bad row would stop all others: those that the chain does not take are left out, and named in the log. */
async function claimFrom(
  ports: Ports,
  method: ChannelMethod,
  channels: readonly ChannelRow[],
): Promise<void> {
  const rows = channels.flatMap(makeClaimRow)
  const good = await method.escrow.chooseClaimable(rows)
  for (const row of rows.filter((one) => !good.includes(one)))
    ports.log.warn(
      { payer: row.config.payer, total: String(row.total) },
      'the chain does not take a claim from a channel',
    )
  if (good.length === 0) return
  const sent = await method.escrow.claim(good)
  ports.world.failpoint?.('channel.claimed')
  if (sent.state !== 'mined') {
    ports.log.warn({ reason: sent.reason }, 'a claim from channels is not made yet')
    return
  }
  await refreshAll(ports, method, channels)
}

/** The last voucher covers all that was charged. */
function makeClaimRow(channel: ChannelRow): ClaimRow[] {
  const { max_claimable: maxClaimable, signature, charged: total } = channel
  if (maxClaimable === null || signature === null) return []
  return [{ config: parseConfig(channel), maxClaimable, signature, total }]
}

/** Lets the contract send us what was claimed, and books what it has sent. */
async function settle(ports: Ports, { network, escrow }: ChannelMethod): Promise<void> {
  const { database, tenants } = ports
  const { chain, schema } = tenants.system
  const before = await escrow.readReceiver()
  if (before.claimed > before.settled) {
    const sent = await escrow.settle()
    if (sent.state !== 'mined')
      ports.log.warn({ reason: sent.reason }, 'claims from channels are not sent to us yet')
  }
  const { settled } = await escrow.readReceiver()
  await chain.whenApplied(chain.head().height)
  const booked = await readSettled(database, schema, network.id)
  if (settled !== booked)
    await chain.append([makeSettledEntry(network.id, booked, settled)], { isOwed: true })
}
