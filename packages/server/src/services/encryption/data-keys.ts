import { requirePresent } from '../../base/assert.ts'
import { dayMs } from '../../base/durations.ts'
import { Mutex } from '../../base/mutex.ts'
import { aesKeyBytes } from '../../sealing/aes-gcm.ts'
import type { DataKey } from '../../sealing/envelope.ts'
import type { KeyContext } from '../../sealing/key-command.ts'
import {
  type DataKeyRow,
  deleteDataKeys,
  hasDataKeys,
  insertDataKey,
  type KeyOwner,
  listKeyOwners,
  readDataKeys,
  readKeysNotUnder,
  replaceWrapping,
  reserveUses,
} from './data-key-store.ts'
import {
  MasterKeyring,
  type MasterKeyringOptions,
  makeNoKeyFault,
  type Wrapper,
} from './master-keyring.ts'

/** Records that one data key seals; with random nonces NIST SP 800-38D allows 2^32. */
const dataKeyUsesMax = 2 ** 31
/** Uses of a data key that are reserved at once, before any of them. */
const dataKeyUsesAtOnce = 65_536
/** Days after which a data key has a successor. */
export const dataKeyDaysMax = 90

/** The opened keys of a collection. */
export type CollectionKeys = {
  readonly tokenKey: Buffer
  /** By epoch. */
  readonly keys: Map<number, Buffer>
  current: { epoch: number; reserved: number; createdAtMs: number }
  /** Uses of the current key that are reserved and not made. */
  left: number
}

/** Keys that are wrapped anew between two looks. */
const rewrapsAtOnce = 100
/** The name of tokens' key among the epochs. */
const tokenEpoch = 0
/** The time in which nobody asks a key manager again for what it refused. */
const refusedMs = 2_000

type Opened = {
  readonly app: string
  readonly keys: Promise<CollectionKeys>
  readonly untilMs: number
}

/**
 * The keys of encrypted collections, wrapped in the database by a master key that is not. Opened ones stay in
 * memory, for a bounded time where a key manager opened them. A key seals a bounded number of records for a bounded
 * time, and then has a successor; it stays to open what it sealed.
 */
export class DataKeys {
  readonly #options: Pick<MasterKeyringOptions, 'database' | 'world'>
  readonly #keyring: MasterKeyring
  readonly #open = new Map<string, Opened>()
  /** A collection whose keys take long keeps no other one waiting. */
  readonly #mutexes = new Map<string, Mutex>()

  constructor(options: MasterKeyringOptions) {
    this.#options = options
    this.#keyring = new MasterKeyring(options)
  }

  /** Makes the first keys of a collection, where it has none. */
  async create(owner: KeyOwner): Promise<void> {
    const { database } = this.#options
    if ((await readDataKeys(database, owner)).length > 0) return
    const wrapper = await this.#keyring.findWrapper({ mayCreate: true })
    const rows = await Promise.all(
      [tokenEpoch, 1].map((epoch) => this.#makeRow(wrapper, owner, epoch)),
    )
    await database.transaction(async (tx) => {
      for (const row of rows) await insertDataKey(tx, row)
    })
  }

  /** The keys of a collection, opened. */
  load(owner: KeyOwner): Promise<CollectionKeys> {
    const name = formatOwner(owner)
    const known = this.#open.get(name)
    const now = this.#options.world.now()
    if (known !== undefined && now < known.untilMs) return known.keys
    const { cacheMs } = this.#keyring
    const keys = this.#load(owner)
    const opened = { app: owner.app, keys, untilMs: now + (cacheMs ?? Number.POSITIVE_INFINITY) }
    this.#open.set(name, opened)
    keys.catch(() => {
      if (this.#open.get(name) !== opened) return
      if (cacheMs === undefined) this.#open.delete(name)
      else {
        // The time begins with the refusal, which may have come late.
        const untilMs = this.#options.world.now() + refusedMs
        this.#open.set(name, { app: owner.app, keys, untilMs })
      }
    })
    return keys
  }

  /** Forgets the unwrapped keys of an application: another process may have had it, and have made newer ones. */
  forget(app: string): void {
    for (const [name, one] of this.#open) if (one.app === app) this.#open.delete(name)
  }

  /** Forgets unwrapped keys that are past their time, also those that nobody asks for any more. */
  forgetOld(): void {
    const now = this.#options.world.now()
    for (const [name, { untilMs }] of this.#open) if (untilMs <= now) this.#open.delete(name)
  }

  /** The key that seals the next so many records; they count as sealed from here on. */
  async take(owner: KeyOwner, count: number): Promise<DataKey> {
    const name = formatOwner(owner)
    const mutex = this.#mutexes.get(name) ?? new Mutex()
    this.#mutexes.set(name, mutex)
    return mutex.run(async () => {
      const keys = await this.load(owner)
      try {
        if (keys.left < count || this.#isOld(keys)) await this.#reserve(owner, keys, count)
      } catch (error) {
        // A statement that failed may have been carried out: the database knows which key is the newest.
        this.#open.delete(name)
        throw error
      }
      keys.left -= count
      const { epoch } = keys.current
      return { epoch, key: requirePresent(keys.keys.get(epoch), 'the current data key') }
    })
  }

  /** Ids of the collections of an application that have keys. */
  listOwners(app: string): Promise<string[]> {
    return listKeyOwners(this.#options.database, app)
  }

  /** Deletes the keys of collections: what they sealed can be opened by nobody any more. */
  async shred(app: string, collections: readonly string[]): Promise<void> {
    if (collections.length === 0) return
    await deleteDataKeys(this.#options.database, app, collections)
    for (const collection of collections) {
      const name = formatOwner({ app, collection })
      this.#open.delete(name)
      this.#mutexes.delete(name)
    }
  }

  /** Wraps all keys by the present master key; returns the number of those that had another one. */
  async rewrap(): Promise<number> {
    const { database } = this.#options
    if (!(await hasDataKeys(database))) return 0
    const wrapper = await this.#keyring.findWrapper({ mayCreate: false })
    let count = 0
    for (;;) {
      const rows = await readKeysNotUnder(database, wrapper.id, rewrapsAtOnce)
      for (const row of rows) {
        const context = makeContext(row)
        const plain = await this.#keyring.unwrap(row, context)
        const wrapped = await wrapper.wrap(plain, context)
        // The old wrapping goes only where the new one is known to open.
        if (!(await this.#keyring.unwrap(wrapped, context)).equals(plain))
          throw new Error('a data key that was wrapped anew does not open')
        await replaceWrapping(database, row, wrapped)
        plain.fill(0)
      }
      count += rows.length
      if (rows.length < rewrapsAtOnce) return count
    }
  }

  async #load(owner: KeyOwner): Promise<CollectionKeys> {
    const rows = await readDataKeys(this.#options.database, owner)
    const newest = rows.at(-1)
    if (newest === undefined || newest.epoch === tokenEpoch) throw makeNoKeyFault()
    const opened = new Map(
      await Promise.all(rows.map(async (row) => [row.epoch, await this.#unwrap(row)] as const)),
    )
    const tokenKey = requirePresent(opened.get(tokenEpoch), 'the key of tokens')
    opened.delete(tokenEpoch)
    const { epoch, reserved, createdAtMs } = newest
    return { tokenKey, keys: opened, current: { epoch, reserved, createdAtMs }, left: 0 }
  }

  #isOld({ current }: CollectionKeys): boolean {
    return this.#options.world.now() - current.createdAtMs > dataKeyDaysMax * dayMs
  }

  async #reserve(owner: KeyOwner, keys: CollectionKeys, count: number): Promise<void> {
    const { database } = this.#options
    const isFull = keys.current.reserved + count > dataKeyUsesMax
    if (isFull || this.#isOld(keys)) await this.#rotate(owner, keys)
    const wanted = Math.max(count, dataKeyUsesAtOnce)
    const { epoch } = keys.current
    const reserved = await reserveUses(database, owner, { epoch, count: wanted })
    if (reserved === undefined) throw makeNoKeyFault()
    keys.current = { ...keys.current, reserved }
    keys.left = wanted
  }

  async #rotate(owner: KeyOwner, keys: CollectionKeys): Promise<void> {
    const wrapper = await this.#keyring.findWrapper({ mayCreate: false })
    const row = await this.#makeRow(wrapper, owner, keys.current.epoch + 1)
    const plain = await this.#unwrap(row)
    await insertDataKey(this.#options.database, row)
    keys.keys.set(row.epoch, plain)
    keys.current = { epoch: row.epoch, reserved: 0, createdAtMs: row.createdAtMs }
    keys.left = 0
    // Keys that were opened anew meanwhile may lack the new one.
    const name = formatOwner(owner)
    const opened = await this.#open.get(name)?.keys.catch(() => undefined)
    if (opened !== keys) this.#open.delete(name)
  }

  async #makeRow(wrapper: Wrapper, owner: KeyOwner, epoch: number): Promise<DataKeyRow> {
    const { world } = this.#options
    const plain = world.randomBytes(aesKeyBytes)
    const wrapped = await wrapper.wrap(plain, makeContext({ ...owner, epoch }))
    plain.fill(0)
    return { ...owner, epoch, ...wrapped, reserved: 0, createdAtMs: world.now() }
  }

  #unwrap(row: DataKeyRow): Promise<Buffer> {
    return this.#keyring.unwrap(row, makeContext(row))
  }

  /** The ids of the master keys that are there. */
  listMasterKeys(): Promise<readonly string[]> {
    return this.#keyring.listIds()
  }

  /** Has the key manager's command tried out, where there is one. */
  tryCommand(): Promise<void> {
    return this.#keyring.tryCommand()
  }
}

function formatOwner({ app, collection }: KeyOwner): string {
  return JSON.stringify([app, collection])
}

function makeContext({
  app,
  collection,
  epoch,
}: KeyOwner & { readonly epoch: number }): KeyContext {
  return { owner: JSON.stringify(['tollbase data key', 1, app, collection, epoch]), app }
}
