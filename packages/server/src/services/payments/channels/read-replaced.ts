import type { ChannelRow } from '../../../projections/channel-tables.ts'
import { listFundedChannels } from '../../../projections/read-channels.ts'
import type { BlockWatch } from '../../../x402/block-watch.ts'
import type { PaymentPorts } from '../payment-ports.ts'
import { type ChannelMethod, loadChannel, parseConfig, syncChannel } from './channel-register.ts'

type Ports = Pick<PaymentPorts, 'database' | 'tenants'>

/** Channels of one page. */
const pageSize = 1_000
/** Pages of channels that are read anew after blocks were replaced. */
const pagesMax = 100
/** Channels that the chain is asked about together: their questions travel in one batch. */
const askedMax = 25

/** The memory of the rounds of one network. */
export type ReplacedMemory = {
  /** When the chain last took no claim from a channel: it is not tried again for a while. */
  readonly refusedMs: Map<string, number>
  /** When the contract was last asked what it has sent to us. */
  settledMs: number
  /** The watch over what a reorganisation may take back; what was read before one is read again. */
  blocks: BlockWatch | undefined
  /** Blocks were replaced, and not all channels were read since. */
  isReplaced: boolean
}

/**
 * Reads all channels anew where blocks were replaced: what the chain said of deposits and claims may be over. A claim that
 * was taken back is due again, and a voucher buys no more than the deposits that are there. A channel that was found
 * changed is read once more in any case: its block may be newer than the last look, which compares an older one.
 */
export async function readReplaced(
  ports: Ports,
  method: ChannelMethod,
  memory: ReplacedMemory,
): Promise<void> {
  const { id: network } = method.network
  const list = (after: string) =>
    listFundedChannels(ports.database, ports.tenants.system.schema, {
      ...{ network, after, limit: pageSize },
    })
  let page = await list('')
  if (page.length === 0) return
  memory.blocks ??= method.blocks?.open()
  const look = await memory.blocks?.look()
  if (look === undefined) return
  if (!look.isSame) {
    memory.isReplaced = true
    memory.settledMs = 0
  }
  if (!memory.isReplaced) return readChanged(ports, method)
  memory.refusedMs.clear()
  let isWhole = true
  for (let pages = 1; page.length > 0; pages++) {
    const read = await syncChannels(ports, method, page)
    isWhole &&= read.length === page.length
    if (page.length < pageSize || pages === pagesMax) break
    page = await list(page.at(-1)?.id ?? '')
  }
  memory.isReplaced = !isWhole
}

async function readChanged(ports: Ports, method: ChannelMethod): Promise<void> {
  const { changed } = method.escrow
  const ids = [...changed].slice(0, pageSize)
  for (const id of ids) changed.delete(id)
  const channels = await Promise.all(ids.map((id) => loadChannel(ports, id)))
  const known = channels.filter((one) => one !== undefined)
  const read = await syncChannels(ports, method, known)
  if (read.length < known.length) for (const id of ids) changed.add(id)
}

/**
 * Reads these channels from their chain, after a transaction that claimed from them where there was one, and returns
 * those that could be read.
 */
export async function syncChannels(
  ports: Ports,
  method: ChannelMethod,
  channels: readonly (ChannelRow & { readonly claimedBy?: string })[],
): Promise<ChannelRow[]> {
  const read: ChannelRow[] = []
  for (let at = 0; at < channels.length; at += askedMax) {
    const together = channels.slice(at, at + askedMax).map((channel) => {
      const { id, claimedBy } = channel
      const named = { id, config: parseConfig(channel), claimedBy }
      return syncChannel(ports, method, named).then(
        (seen) => [seen ?? channel],
        () => [],
      )
    })
    read.push(...(await Promise.all(together)).flat())
  }
  return read
}
