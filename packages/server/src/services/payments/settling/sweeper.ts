import type { Logger } from 'pino'
import type { BlockWatch, ChainLook } from '../../../x402/block-watch.ts'
import { signSweep } from '../../../x402/deposit-address.ts'
import type { Settlement } from '../../../x402/facilitator.ts'
import {
  type ClaimCursor,
  listUnsweptClaims,
  noteSweep,
  type UnsweptClaim,
} from '../claims/claim-lists.ts'
import type { PaymentPorts } from '../payment-ports.ts'
import { makeRequirement } from '../quotes/quoting.ts'

const intervalMs = 60_000
/** Sweeps of one round, which go out together. */
const sweepsMax = 50
/** A sweep that was reverted so often needs a person; the log names it each time. */
const triesMax = 10
/** Sweeps in blocks that are not final which are remembered; others are looked up in each round. */
const rememberedMax = 10_000
const beginning: ClaimCursor = { at: -1n, id: '' }

/** The memory of the rounds; a restart looks at every sweep anew that is not final. */
export type SweepMemory = {
  next: ClaimCursor
  /** By network, its own watch, the last look, and the heights of the blocks that have sweeps, by their claims. */
  readonly networks: Map<string, NetworkMemory>
}

type NetworkMemory = {
  readonly blocks: BlockWatch
  look: ChainLook | undefined
  readonly heights: Map<string, bigint>
}

export function makeSweepMemory({ methods }: Pick<PaymentPorts, 'methods'>): SweepMemory {
  const watched = methods.flatMap(({ network, blocks }): [string, NetworkMemory][] =>
    blocks === undefined
      ? []
      : [[network.id, { blocks: blocks.open(), look: undefined, heights: new Map() }]],
  )
  return { next: beginning, networks: new Map(watched) }
}

/**
 * Sends the money at quotes' own addresses on to the networks' payees, at intervals. The returned function ends it.
 * Pending sweeps are in the claims, so a restart continues where it stopped. A sweep is done once its block is final: a
 * reorganisation may put it before the transfer whose money it moves, and then it is reverted and made anew.
 */
export function startSweeper(ports: PaymentPorts, log: Logger): () => Promise<void> {
  let running: Promise<void> | undefined
  const memory = makeSweepMemory(ports)
  const start = () => {
    running ??= sweepRound(ports, log, memory)
      .catch((error: unknown) => {
        log.warn({ error: String(error) }, 'deposit addresses could not be swept; trying again')
      })
      .finally(() => {
        running = undefined
      })
  }
  const stop = ports.world.every(intervalMs, start)
  return async () => {
    stop()
    await running
  }
}

/** Sweeps the next claims, and notes which sweeps are done. */
export async function sweepRound(
  ports: PaymentPorts,
  log: Logger,
  memory = makeSweepMemory(ports),
): Promise<void> {
  await Promise.all(
    [...memory.networks].map(([network, one]) =>
      lookAtSweeps(ports, one).catch((error: unknown) => {
        one.look = undefined
        log.warn({ network, error: String(error) }, 'sweeps could not be looked up')
      }),
    ),
  )
  const page = {
    networks: ports.methods.map(({ network }) => network),
    triesMax,
    after: memory.next,
    limit: sweepsMax,
    except: [...memory.networks.values()].flatMap(({ heights }) => [...heights.keys()]),
  }
  const claims = await listUnsweptClaims(ports.database, page)
  const results = await Promise.allSettled(claims.map((claim) => sweep(ports, memory, claim)))
  results.forEach((result, at) => {
    const isSettled = result.status === 'fulfilled' && result.value.state === 'settled'
    const what = result.status === 'fulfilled' ? result.value : { error: String(result.reason) }
    if (!isSettled) {
      log.warn({ payment: claims[at]?.id, ...what }, 'a deposit address is not swept yet')
    }
  })
  const last = claims.length === sweepsMax ? claims.at(-1) : undefined
  memory.next = last === undefined ? beginning : { at: last.created_at_ms, id: last.id }
}

/** Notes that the sweeps in final blocks are done; where blocks were replaced, all are asked about again. */
async function lookAtSweeps(
  { database }: Pick<PaymentPorts, 'database'>,
  memory: NetworkMemory,
): Promise<void> {
  const look = await memory.blocks.look()
  memory.look = look
  if (!look.isSame) memory.heights.clear()
  for (const [id, height] of memory.heights)
    if (height <= look.final) {
      await noteSweep(database, id, 'done')
      memory.heights.delete(id)
    }
}

/** Moves a claim's money. The token takes each sweep once, however often and by whomever it is sent. */
async function sweep(
  ports: PaymentPorts,
  memory: SweepMemory,
  claim: UnsweptClaim,
): Promise<Settlement> {
  const { id, amount, quote_id: quoteId, tries } = claim
  const method = ports.methods.find(({ network }) => network.id === claim.network)
  if (method === undefined) return { state: 'pending', reason: 'its network is not configured' }
  const payment = signSweep(ports.depositSecret, method.network, { id, quoteId, value: amount })
  const requirement = makeRequirement(method.network, { amount, quoteId: '', expiresAt: 0 })
  // A reverted transaction stays reverted under its name.
  const name = tries === 0 ? `sweep:${id}` : `sweep:${id}:${tries}`
  const outcome = await method.facilitator.settle(name, payment, requirement)
  if (outcome.state === 'settled')
    await noteSettled(ports, memory.networks.get(claim.network), { id, outcome })
  // A sweep that was not sent, as while a chain does not have the transfer, may go later under the same name.
  if (outcome.state === 'failed' && (outcome.final || outcome.reason === 'transaction_reverted'))
    await noteSweep(ports.database, id, 'failed')
  return outcome
}

/** Notes that a sweep is done, or remembers its block until that is final. Without a node nobody can tell. */
async function noteSettled(
  { database }: Pick<PaymentPorts, 'database'>,
  memory: NetworkMemory | undefined,
  { id, outcome }: { readonly id: string; readonly outcome: Settled },
): Promise<void> {
  if (memory === undefined) return noteSweep(database, id, 'done')
  const { blocks, look, heights } = memory
  const height = outcome.blockNumber ?? (await blocks.findHeight(outcome.transaction))
  // A block above the look could be replaced before the next one sees it.
  if (look === undefined || height === undefined || height > look.head) return
  if (height <= look.final) await noteSweep(database, id, 'done')
  else if (heights.size < rememberedMax) heights.set(id, height)
}

type Settled = Extract<Settlement, { readonly state: 'settled' }>
