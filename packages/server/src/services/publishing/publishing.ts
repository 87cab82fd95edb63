import type { OuterPlace } from '../../anchors/anchor-chain.ts'
import type { PublishingChain } from '../../anchors/publishing-chain.ts'
import { assert } from '../../base/assert.ts'
import { dayMs } from '../../base/durations.ts'
import { describeProblem } from '../../base/fault.ts'
import type { Log } from '../../base/log.ts'
import { Pause } from '../../base/pause.ts'
import type { World } from '../../base/world.ts'
import type { ApplicationRecord } from '../../model/application.ts'
import { isPublishing } from '../../model/publication.ts'
import type { Tenant, Tenants } from '../applications/tenants.ts'
import type { Bundles } from './bundles.ts'
import type { Outbox, Publication } from './outbox.ts'
import { describeChange, isConfirmed, isOnItsWay, listPublications } from './publication-rows.ts'
import { Turns } from './turns.ts'

export type PublishingOptions = {
  readonly outer: PublishingChain
  readonly outbox: Outbox
  readonly bundles: Bundles
  readonly tenants: Tenants
  readonly world: World
  readonly log: Log
  /** The least time between two bundles of one application, but where more waits than one holds. */
  readonly intervalMs: number
  /** The pause between two looks at what is on its way. */
  readonly pollMs: number
  /** Bytes that are sent in a day (UTC) at most. */
  readonly dayBytesMax: number
  /** The applications that are published; all that want it where not given. */
  readonly applications?: readonly string[] | undefined
}

/** The pause between two looks at blocks that may still be replaced, and the longest one after trouble. */
const lookMs = 30_000
/** Failures in a row after which the pause grows no more. */
const failuresMax = 10
const idPrefix = 'publish:'

/**
 * Publishes the blocks of applications that want it on one other chain, each block once. The outbox says what is to be
 * sent and the outer chain what was; nothing else waits for either.
 */
export class Publishing {
  readonly #options: PublishingOptions
  #stopTimer: () => void = () => undefined
  #step: Promise<void> | undefined
  /** The content of the outbox; undefined until it was read. */
  #rows: readonly Publication[] | undefined
  /** The time after trouble, that to the next bundles, and that to the next look at what is confirmed. */
  readonly #trouble = new Pause()
  readonly #rest = new Pause()
  readonly #lookRest = new Pause()
  #failures = 0
  /** From then on calls of the node fail by themselves, which is no news. */
  #isStopping = false
  #problem = ''
  /** Until then an earlier process, or this one before trouble, may have ended between two steps. */
  #isTakenUp = false
  readonly #turns = new Turns()
  /** Applications whose trouble was told. */
  readonly #troubled = new Set<string>()

  constructor(options: PublishingOptions) {
    this.#options = options
  }

  get network(): string {
    return this.#options.outer.network
  }

  get place(): OuterPlace {
    return this.#options.outer.place
  }

  /** Returns the height up to which an application's blocks are published and confirmed; 0 where none is. */
  getHeight(app: string): number {
    const own = (this.#rows ?? []).filter((row) => row.app === app)
    const open = own.filter(isOnItsWay)
    if (open.length > 0) return Math.min(...open.map(({ fromHeight }) => fromHeight)) - 1
    return Math.max(0, ...own.map(({ toHeight }) => toHeight))
  }

  /** Counts the blocks that are to be published and are not confirmed yet, of applications that are open. */
  countBehind(): number {
    const behind = this.#options.tenants
      .listOpen()
      .filter(({ application }) => this.#isWanted(application))
      .map(({ application, chain }) => chain.head().height - this.getHeight(application.app_id))
    return behind.reduce((sum, one) => sum + one, 0)
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
    const { outer } = this.#options
    outer.interrupt()
    await this.#step
    await outer.stop()
  }

  /** Never throws: the next step tries again. */
  async #run(): Promise<void> {
    const { world, log, intervalMs } = this.#options
    if (!this.#trouble.isOver(world.now())) return
    try {
      await this.#advance()
      this.#problem = ''
    } catch (error) {
      this.#isTakenUp = false
      this.#trouble.begin(world.now(), Math.min(intervalMs, lookMs))
      const problem = describeProblem(error)
      if (problem !== this.#problem && !this.#isStopping)
        log.warn({ network: this.network, error: problem }, 'nothing can be published now')
      this.#problem = problem
    }
  }

  async #advance(): Promise<void> {
    const { tenants, world, outer, intervalMs } = this.#options
    const now = world.now()
    if (!this.#isTakenUp) await this.#takeUp()
    this.#isTakenUp = true
    const wanting = tenants.system.applications.list().filter((one) => this.#isWanted(one))
    const isDue = wanting.length > 0 && this.#rest.isOver(now)
    const isOpen = this.#listRows((row) => row.state === 'sent' || this.#isWaiting(row)).length > 0
    const isLook = this.#lookRest.isOver(now) && this.#listRows(isConfirmed).length > 0
    if (!isDue && !isOpen && !isLook) return
    await outer.start((id) => this.#mayLeave(id))
    if (isOpen || isLook) await this.#follow(isLook)
    if (isLook) this.#lookRest.begin(now, lookMs)
    if (isDue) {
      this.#rest.begin(now, intervalMs * 2 ** Math.min(this.#failures, failuresMax))
      for (const { app_id: app } of wanting)
        if (await this.#isolate(app, async () => this.#fill(await tenants.load(app))))
          this.#rest.begin(now, 0)
    }
    await this.#sendWaiting()
  }

  /**
   * Goes on where an earlier process ended between two steps, also for applications that want nothing to be published now:
   * what it has signed is followed, and withdrawn where it may not leave; what is final is forgotten.
   */
  async #takeUp(): Promise<void> {
    const { outer, outbox } = this.#options
    // Another process may have the lease: what it has noted stays.
    this.#rows = await outbox.list()
    if (this.#listRows(({ state }) => state === 'waiting' || state === 'final').length === 0) return
    const named = await outer.list(`${idPrefix}${this.network}:`)
    const transactions = new Map(named.map(({ id, transaction }) => [id, transaction]))
    for (const row of this.#listRows(({ state }) => state === 'waiting')) {
      const transaction = transactions.get(this.#toSending(row).id)
      if (transaction !== undefined) await outbox.noteSent(row, transaction)
    }
    this.#rows = await outbox.list()
    const starts = new Set(named.map(({ id }) => `${id.split(':').slice(0, -3).join(':')}:`))
    const left = this.#listRows(
      ({ app, fromHeight, state }) =>
        state === 'final' && starts.has(`${this.#getIdStart(app)}${fromHeight}:`),
    )
    if (left.length > 0) await this.#forget(new Set(left.map(({ app }) => app)))
  }

  #isWanted(application: ApplicationRecord): boolean {
    const { applications } = this.#options
    return (
      isPublishing(application) &&
      (applications === undefined || applications.includes(application.app_id))
    )
  }

  /** Returns true for a chunk that is to be sent; those of an application that wants none now stay where they are. */
  #isWaiting({ app, state }: Publication): boolean {
    const application = this.#options.tenants.system.applications.get(app)
    return state === 'waiting' && application !== undefined && this.#isWanted(application)
  }

  /** Notes what became of what was sent. */
  async #follow(isLook: boolean): Promise<void> {
    const { outer, outbox, world } = this.#options
    const rows = this.#listRows((row) => row.state === 'sent' || (isLook && isConfirmed(row)))
    const sent = rows.map((row) => ({
      ...this.#toSending(row),
      transaction: row.transaction ?? '',
    }))
    const states = sent.length === 0 ? [] : await outer.readStates(sent)
    const final = new Set<string>()
    for (const [at, row] of rows.entries()) {
      const state = states[at]
      assert(state !== undefined, 'each has a state')
      const change = describeChange(row, state)
      if (state.state === 'failed') this.#noteFailure(row)
      if (state.state === 'confirmed') this.#failures = 0
      if (change === undefined) continue
      await outbox.update({ ...row, ...change })
      if (state.state === 'confirmed') world.failpoint?.('publication.confirmed')
      if (change.state === 'final') final.add(row.app)
    }
    this.#rows = await outbox.list()
    if (final.size > 0) await this.#forget(final)
  }

  #noteFailure({ app, fromHeight, transaction }: Publication): void {
    this.#failures += 1
    const { world, intervalMs } = this.#options
    this.#trouble.begin(world.now(), intervalMs * 2 ** Math.min(this.#failures, failuresMax))
    this.#options.log.warn(
      { network: this.network, app, fromHeight, transaction, failures: this.#failures },
      'a publication had no effect, and is sent again',
    )
  }

  /**
   * Forgets the bundles of these applications that are final, but the last of each, which says how far it is. All that
   * was signed for any of them goes, also where it had no effect: it may hold what a person has had erased since.
   */
  async #forget(apps: ReadonlySet<string>): Promise<void> {
    const { outbox, outer } = this.#options
    for (const app of apps) {
      const own = this.#listRows((row) => row.app === app)
      const open = new Set(own.flatMap((row) => (row.state === 'final' ? [] : row.fromHeight)))
      const heights = [...new Set(own.map(({ fromHeight }) => fromHeight))]
      const final = heights.filter((height) => !open.has(height))
      await outer.forget(final.map((height) => `${this.#getIdStart(app)}${height}:`))
      const last = Math.max(...heights)
      const gone = final.filter((height) => height !== last)
      if (gone.length > 0) await outbox.remove(app, gone)
    }
    this.#rows = await outbox.list()
  }

  /** Keeps the trouble of one application (a log that cannot be read now) from the others. */
  async #isolate<T>(app: string, work: () => Promise<T>): Promise<T | undefined> {
    try {
      const result = await work()
      this.#troubled.delete(app)
      return result
    } catch (error) {
      if (!this.#troubled.has(app))
        this.#options.log.warn(
          { network: this.network, app, error: describeProblem(error) },
          'an application cannot be published now',
        )
      this.#troubled.add(app)
      return undefined
    }
  }

  /** Puts the next blocks of an application into the outbox; true where there may be more. */
  async #fill(tenant: Tenant): Promise<boolean> {
    const { outbox, bundles, world } = this.#options
    const app = tenant.application.app_id
    const own = this.#listRows((row) => row.app === app)
    if (own.some(({ state }) => state === 'waiting')) return true
    const reached = Math.max(0, ...own.map(({ toHeight }) => toHeight))
    const bundle = await bundles.makeNext(tenant, reached + 1)
    if (bundle === undefined) return false
    await outbox.insert(listPublications(app, bundle))
    world.failpoint?.('publication.kept')
    this.#rows = await outbox.list()
    return bundle.toHeight < tenant.chain.head().height
  }

  /**
   * Sends what waits, as far as the other chain and the day's bytes allow: of the application first whose turn it is. A
   * chunk for which the day has no room holds up no smaller one. One that cannot be sent now ends the step, as the same
   * may be true of all, but comes last in the next.
   */
  async #sendWaiting(): Promise<void> {
    const { outer, world, dayBytesMax } = this.#options
    let room = outer.onTheirWayMax - this.#listRows(({ state }) => state === 'sent').length
    const day = Math.floor(world.now() / dayMs)
    const waiting = this.#turns.sort(
      day,
      this.#listRows((row) => this.#isWaiting(row)),
    )
    const bundles = new Map(waiting.map((row) => [`${row.app}:${row.fromHeight}`, row]))
    let tooMany = Number.POSITIVE_INFINITY
    for (const { app, fromHeight } of bundles.values()) {
      if (room <= 0) return
      const rows = this.#listRows((row) => row.app === app && row.fromHeight === fromHeight)
      const next = rows.filter(({ state }) => state === 'waiting').slice(0, room)
      const [first] = next
      if (first === undefined || next.every(({ bytes }) => bytes >= tooMany)) continue
      if ((await this.#isolate(app, () => this.#isCurrent(first))) !== true) continue
      for (const row of next) {
        const what = await this.#send(row)
        if (what === 'held') return
        if (what === 'sent') room -= 1
        else tooMany = Math.min(tooMany, row.bytes)
      }
    }
    if (tooMany < Number.POSITIVE_INFINITY)
      throw new Error(`the ${dayBytesMax} bytes of this day (UTC) are sent`)
  }

  /**
   * Returns true where a bundle is to be sent as it is in the outbox. Where its bytes would be others now, these take its
   * place there, for the same blocks; they are sent at the next step.
   */
  async #isCurrent(row: Publication): Promise<boolean> {
    const { outbox, bundles } = this.#options
    const tenant = await this.#findTenant(row.app)
    const hash = tenant && (await bundles.findHash(tenant, row))
    if (tenant === undefined || hash === undefined) return false
    if (hash.equals(row.bundle)) return true
    const bundle = await bundles.find(tenant, row)
    if (bundle === undefined) return false
    await outbox.replace(row.app, row.fromHeight, listPublications(row.app, bundle))
    this.#rows = await outbox.list()
    return false
  }

  /** Finds an application that wants to be published now. */
  async #findTenant(app: string): Promise<Tenant | undefined> {
    const { tenants } = this.#options
    const application = tenants.system.applications.get(app)
    return application === undefined || !this.#isWanted(application) ? undefined : tenants.load(app)
  }

  /**
   * Judges what was signed before, each time that it is to be sent: another rule may hold than when it was signed. A
   * chunk that is not in the outbox any more has other bytes now. One whose log cannot be read stays, and gives its nonce
   * up: it is sent anew when the log can be read. Anything else (the making of the contract) may leave.
   */
  async #mayLeave(id: string): Promise<boolean> {
    if (!id.startsWith(idPrefix)) return true
    const [row] = this.#listRows((one) => this.#toSending(one).id === id)
    if (row === undefined) return false
    const hash = await this.#isolate(row.app, async () => {
      const tenant = await this.#findTenant(row.app)
      return tenant && this.#options.bundles.findHash(tenant, row)
    })
    return hash?.equals(row.bundle) === true
  }

  /** Returns `full` where the day has no room for it, and `held` where nothing can be sent now. */
  async #send(row: Publication): Promise<'sent' | 'full' | 'held'> {
    const { outbox, outer, world, dayBytesMax } = this.#options
    const { app, bytes } = row
    const day = Math.floor(world.now() / dayMs)
    if (!(await outbox.spend(day, bytes, dayBytesMax))) return 'full'
    const giveBack = () => outbox.spend(day, -bytes, dayBytesMax)
    // Until it is sent, so that it comes last also where this throws.
    this.#turns.noteFailed(app)
    const sending = this.#toSending(row)
    let transaction: string | undefined
    try {
      const chunk = await this.#isolate(app, () => this.#findChunk(row))
      transaction = chunk && (await outer.send(sending, chunk))
    } catch (error) {
      // One that is signed all the same is taken up, and counts.
      const signed = await outer.list(sending.id).catch(() => undefined)
      if (signed?.every(({ id }) => id !== sending.id) === true) await giveBack()
      throw error
    }
    if (transaction === undefined) {
      await giveBack()
      return 'held'
    }
    this.#turns.noteSent(day, app, bytes)
    world.failpoint?.('publication.sent')
    await outbox.noteSent(row, transaction)
    this.#rows = await outbox.list()
    return 'sent'
  }

  /** Finds the bytes of a chunk; undefined where they are others by now. */
  async #findChunk(row: Publication): Promise<Uint8Array | undefined> {
    const tenant = await this.#findTenant(row.app)
    const bundle = tenant && (await this.#options.bundles.find(tenant, row))
    return bundle?.hash.equals(row.bundle) === true ? bundle.chunks[row.part] : undefined
  }

  #toSending({ app, fromHeight, part, bundle, attempt, size, root }: Publication) {
    const { origin } = this.#options.tenants.system.chain
    const name = [fromHeight, part, bundle.subarray(0, 8).toString('hex'), attempt].join(':')
    return {
      id: `${this.#getIdStart(app)}${name}`,
      tree: {
        origin: `${origin.slice(0, -'system'.length)}${app}`,
        size,
        root: new Uint8Array(Buffer.from(root, 'base64')),
      },
    }
  }

  #getIdStart(app: string): string {
    return `${idPrefix}${this.network}:${app}:`
  }

  #listRows(isMeant: (row: Publication) => boolean): readonly Publication[] {
    return (this.#rows ?? []).filter(isMeant)
  }
}
