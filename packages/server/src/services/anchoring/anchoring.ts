import { decodeBase64 } from '@tollbase/verify/bytes'
import {
  type Anchor,
  type AnchorChain,
  getAnchorName,
  type OuterPlace,
  type SentAnchor,
} from '../../anchors/anchor-chain.ts'
import { describeProblem } from '../../base/fault.ts'
import type { Log } from '../../base/log.ts'
import { Pause } from '../../base/pause.ts'
import type { World } from '../../base/world.ts'
import type { Database } from '../../database/database.ts'
import type { Tenants } from '../applications/tenants.ts'

export type AnchoringOptions = {
  /** Started here, as the chain may be away for long. */
  readonly anchors: AnchorChain
  readonly tenants: Tenants
  readonly database: Database
  readonly world: World
  readonly log: Log
  /** The least time between two anchors. */
  readonly intervalMs: number
  /** The pause between two looks at what is on its way. */
  readonly pollMs: number
}

/** Anchors on their way at most: where the chain takes none, no more are sent. */
const onTheirWayMax = 32
/** The pause between two looks at blocks that may still be replaced, and the longest one after trouble. */
const lookMs = 30_000
/** The depth of a block from which on nobody looks whether it is still there. */
const finalDepth = 64
/** Failures in a row after which the interval grows no more: of a minute it is 17 hours then. */
const failuresMax = 10

/**
 * Anchors the service's own chain on one other chain, and writes what is confirmed as entries into it. All that is
 * under way is in the sender's journal, so a crash loses nothing; trouble with the other chain stops nothing else.
 */
export class Anchoring {
  readonly #options: AnchoringOptions
  #stopTimer: () => void = () => undefined
  #step: Promise<void> | undefined
  /** The time to the next anchor, and to the next look. */
  readonly #rest = new Pause()
  readonly #lookRest = new Pause()
  #isUnderWay = false
  /** The size of the chain when it had nothing new to anchor. */
  #quietSize = -1
  /** From then on calls of the node fail by themselves, which is no news. */
  #isStopping = false
  #problem = ''

  constructor(options: AnchoringOptions) {
    this.#options = options
  }

  get network(): string {
    return this.#options.anchors.network
  }

  get place(): OuterPlace {
    return this.#options.anchors.place
  }

  get intervalMs(): number {
    return this.#options.intervalMs
  }

  start(): void {
    const { world, pollMs } = this.#options
    this.#stopTimer = world.every(pollMs, () => {
      this.#step ??= this.#run().finally(() => {
        this.#step = undefined
      })
    })
  }

  async stop(): Promise<void> {
    this.#isStopping = true
    this.#stopTimer()
    // A node that does not answer must not hold up the end; what was signed is in the journal.
    this.#options.anchors.interrupt()
    await this.#step
    await this.#options.anchors.stop()
  }

  /** Never throws: the next step tries again. */
  async #run(): Promise<void> {
    const { world, log, intervalMs } = this.#options
    try {
      await this.#advance()
      this.#problem = ''
    } catch (error) {
      // A chain that stays away is not asked at every look.
      this.#isUnderWay = false
      for (const rest of [this.#rest, this.#lookRest])
        rest.begin(world.now(), Math.min(intervalMs, lookMs))
      const problem = describeProblem(error)
      if (problem !== this.#problem && !this.#isStopping)
        log.warn({ network: this.network, error: problem }, 'nothing can be anchored now')
      this.#problem = problem
    }
  }

  async #advance(): Promise<void> {
    const { anchors, tenants, world, intervalMs } = this.#options
    const now = world.now()
    const isDue = this.#rest.isOver(now)
    if (isDue) await tenants.announceHeads()
    const hasNews = isDue && tenants.system.chain.head().size !== this.#quietSize
    if (!hasNews && !this.#isUnderWay && !this.#lookRest.isOver(now)) return
    await anchors.start()
    const sent = await anchors.list()
    const { waiting, failed } = await this.#recordStates(sent)
    this.#isUnderWay = waiting.length > 0
    this.#lookRest.begin(now, lookMs)
    if (!hasNews || waiting.length >= onTheirWayMax) return
    if (await this.#anchorNews(Math.max(0, ...waiting.map(({ size }) => size))))
      this.#rest.begin(now, intervalMs * this.#computeSlowness(sent, failed))
  }

  /**
   * Writes what was confirmed, moved to another block, or lost; returns the anchors on their way, and those that
   * failed.
   */
  async #recordStates(
    sent: readonly SentAnchor[],
  ): Promise<{ readonly waiting: readonly SentAnchor[]; readonly failed: ReadonlySet<string> }> {
    const { anchors, tenants, database } = this.#options
    const { system } = tenants
    const rows = await system.anchors.findByNames(database, system.schema, {
      network: this.network,
      names: sent.flatMap(({ names }) => names),
    })
    const recorded = new Map(
      rows.map(({ name, body }): [string, Anchor] => [name, JSON.parse(body)]),
    )
    const findRecorded = ({ names }: SentAnchor) =>
      names.map((name) => recorded.get(name)).find((known) => known !== undefined)
    // By the chain's own height: that of an anchor may be a false one, which is to be looked at again.
    const newest = await anchors.readHeight()
    const open = sent.filter((one) => {
      const { isAlive } = one
      const known = findRecorded(one)
      return known === undefined ? isAlive : known.block_number > newest - finalDepth
    })
    const states = await anchors.readStates(open, system.chain.origin)
    const bodies: object[] = []
    const waiting: SentAnchor[] = []
    const failed = new Set<string>()
    open.forEach((one, at) => {
      const known = findRecorded(one)
      const state = states[at]
      const confirmed = state?.state === 'confirmed' ? state.anchor : undefined
      const isFailed = state?.state === 'failed'
      // Another one of its nonce may be in the chain now.
      if (known !== undefined && (isFailed || isOther(known, confirmed)))
        bodies.push(describeWithdrawn(known))
      if (confirmed !== undefined && known?.block_hash !== confirmed.block_hash)
        bodies.push(confirmed)
      if (isFailed) failed.add(one.id)
      else if (confirmed === undefined) waiting.push(one)
    })
    const entries = bodies.map((body) => ({
      header: { type: 'anchor' },
      body: JSON.stringify(body),
    }))
    if (entries.length > 0) {
      const { height } = await system.chain.append(entries)
      // The next look must find them in the table.
      await system.chain.whenApplied(height)
    }
    return { waiting, failed }
  }

  /**
   * Sends an anchor where there is more than what is anchored already and the entries that tell of it, which would
   * call for an anchor for ever. Returns false where nothing was sent.
   */
  async #anchorNews(from: number): Promise<boolean> {
    const { anchors, tenants, database } = this.#options
    const { chain, schema, anchors: table } = tenants.system
    const { size, root, height } = chain.head()
    await chain.whenApplied(height)
    const { size: covered, told } = await table.readProgress(database, schema, {
      network: this.network,
      from,
    })
    if (size - covered <= told) {
      this.#quietSize = size
      return false
    }
    const { origin } = chain
    const isSent = await anchors.send({ origin, size, root: decodeBase64(root) })
    if (isSent) this.#isUnderWay = true
    return isSent
  }

  /**
   * Computes by how many times the interval is longer while anchors fail one after the other: each costs gas, and
   * nobody may be there who sees it.
   */
  #computeSlowness(sent: readonly SentAnchor[], failed: ReadonlySet<string>): number {
    const { log } = this.#options
    const lastGood = sent.findIndex(({ isAlive, id }) => isAlive && !failed.has(id))
    const failures = lastGood === -1 ? sent.length : lastGood
    if (failures > 0) log.warn({ network: this.network, failures }, 'anchors fail on their chain')
    return 2 ** Math.min(failures, failuresMax)
  }
}

function isOther(known: Anchor, confirmed: Anchor | undefined): boolean {
  return confirmed !== undefined && getAnchorName(confirmed) !== getAnchorName(known)
}

function describeWithdrawn(known: Anchor): object {
  const { network, transaction } = known
  const commitment = 'commitment' in known ? { commitment: known.commitment } : {}
  return { network, transaction, ...commitment, withdrawn: true }
}
