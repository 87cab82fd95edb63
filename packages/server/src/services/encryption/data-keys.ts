import { limits } from '@tollbase/contract/limits'
import { requirePresent } from '../../base/assert.ts'
import { Fault } from '../../base/fault.ts'
import { Mutex } from '../../base/mutex.ts'
import type { World } from '../../base/world.ts'
import type { Database } from '../../database/database.ts'
import { aesKeyBytes } from '../../sealing/aes-gcm.ts'
import type { DataKey } from '../../sealing/envelope.ts'
import { createMasterKeyFile, readKeyFile } from '../../sealing/key-file.ts'
import { type MasterKeys, parseMasterKeys, unwrapKey, wrapKey } from '../../sealing/master-keys.ts'
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

export type DataKeysOptions = {
  readonly database: Database
  readonly world: World
  /** The file of master keys, made when it is first needed. */
  readonly keyFile: string
  /** Master keys of the environment, which take the place of the file. */
  readonly masterKeys: string | undefined
}

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

/**
 * The keys of encrypted collections, wrapped in the database by a master key that is not. Opened ones stay in
 * memory. A key seals a bounded number of records for a bounded time, and then has a successor; it stays to open
 * what it sealed.
 */
export class DataKeys {
  readonly #options: DataKeysOptions
  readonly #open = new Map<string, Promise<CollectionKeys>>()
  readonly #mutex = new Mutex()
  #master: Promise<MasterKeys> | undefined

  constructor(options: DataKeysOptions) {
    this.#options = options
  }

  /** Makes the first keys of a collection, where it has none. */
  async create(owner: KeyOwner): Promise<void> {
    const { database } = this.#options
    if ((await readDataKeys(database, owner)).length > 0) return
    const master = await this.#rereadMasterKeys({ mayCreate: true })
    const rows = [tokenEpoch, 1].map((epoch) => this.#makeRow(master, owner, epoch))
    await database.transaction(async (tx) => {
      for (const row of rows) await insertDataKey(tx, row)
    })
  }

  /** The keys of a collection, opened. */
  load(owner: KeyOwner): Promise<CollectionKeys> {
    const name = formatOwner(owner)
    const known = this.#open.get(name)
    if (known !== undefined) return known
    const loading = this.#load(owner)
    this.#open.set(name, loading)
    loading.catch(() => this.#open.delete(name))
    return loading
  }

  /** The key that seals the next so many records; they count as sealed from here on. */
  async take(owner: KeyOwner, count: number): Promise<DataKey> {
    return this.#mutex.run(async () => {
      const keys = await this.load(owner)
      try {
        if (keys.left < count || this.#isOld(keys)) await this.#reserve(owner, keys, count)
      } catch (error) {
        // A statement that failed may have been carried out: the database knows which key is the newest.
        this.#open.delete(formatOwner(owner))
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
    for (const collection of collections) this.#open.delete(formatOwner({ app, collection }))
  }

  /** Wraps all keys by the present master key; returns the number of those that had another one. */
  async rewrap(): Promise<number> {
    const { database, world } = this.#options
    if (!(await hasDataKeys(database))) return 0
    const master = await this.#rereadMasterKeys({ mayCreate: false })
    let count = 0
    for (;;) {
      const rows = await readKeysNotUnder(database, master[0].id, rewrapsAtOnce)
      for (const row of rows) {
        const owner = formatKeyName(row)
        const plain = this.#unwrap(master, row)
        await replaceWrapping(
          database,
          row,
          wrapKey(master, plain, { owner, randomBytes: world.randomBytes }),
        )
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
    const master = await this.#loadMasterKeys({ mayCreate: false })
    const opened = new Map(rows.map((row) => [row.epoch, this.#unwrap(master, row)]))
    const tokenKey = requirePresent(opened.get(tokenEpoch), 'the key of tokens')
    opened.delete(tokenEpoch)
    const { epoch, reserved, createdAtMs } = newest
    return { tokenKey, keys: opened, current: { epoch, reserved, createdAtMs }, left: 0 }
  }

  #isOld({ current }: CollectionKeys): boolean {
    return this.#options.world.now() - current.createdAtMs > limits.dataKeyDaysMax * 24 * 3_600_000
  }

  async #reserve(owner: KeyOwner, keys: CollectionKeys, count: number): Promise<void> {
    const { database } = this.#options
    const isFull = keys.current.reserved + count > limits.dataKeyUsesMax
    if (isFull || this.#isOld(keys)) await this.#rotate(owner, keys)
    const wanted = Math.max(count, limits.dataKeyUsesAtOnce)
    const { epoch } = keys.current
    const reserved = await reserveUses(database, owner, { epoch, count: wanted })
    if (reserved === undefined) throw makeNoKeyFault()
    keys.current = { ...keys.current, reserved }
    keys.left = wanted
  }

  async #rotate(owner: KeyOwner, keys: CollectionKeys): Promise<void> {
    const master = await this.#rereadMasterKeys({ mayCreate: false })
    const row = this.#makeRow(master, owner, keys.current.epoch + 1)
    await insertDataKey(this.#options.database, row)
    keys.keys.set(row.epoch, this.#unwrap(master, row))
    keys.current = { epoch: row.epoch, reserved: 0, createdAtMs: row.createdAtMs }
    keys.left = 0
  }

  #makeRow(master: MasterKeys, owner: KeyOwner, epoch: number): DataKeyRow {
    const { world } = this.#options
    const plain = world.randomBytes(aesKeyBytes)
    const name = formatKeyName({ ...owner, epoch })
    const wrapped = wrapKey(master, plain, { owner: name, randomBytes: world.randomBytes })
    plain.fill(0)
    return { ...owner, epoch, ...wrapped, reserved: 0, createdAtMs: world.now() }
  }

  #unwrap(master: MasterKeys, row: DataKeyRow): Buffer {
    const plain = unwrapKey(master, row, formatKeyName(row))
    if (plain !== undefined) return plain
    // The file may have been given another key meanwhile.
    this.#master = undefined
    throw makeNoKeyFault(`the master key ${row.masterKey} is missing`)
  }

  /** The ids of the master keys that are there. */
  async listMasterKeys(): Promise<readonly string[]> {
    const { masterKeys, keyFile } = this.#options
    const keys =
      masterKeys === undefined
        ? await readKeyFile(keyFile)
        : parseMasterKeys(masterKeys, 'TOLLBASE_MASTER_KEY')
    return (keys ?? []).map(({ id }) => id)
  }

  /** The master keys as they are now: nothing new is wrapped by one that may be gone. */
  #rereadMasterKeys(options: { readonly mayCreate: boolean }): Promise<MasterKeys> {
    this.#master = undefined
    return this.#loadMasterKeys(options)
  }

  #loadMasterKeys(options: { readonly mayCreate: boolean }): Promise<MasterKeys> {
    if (this.#master !== undefined) return this.#master
    const loading = this.#readMasterKeys(options)
    this.#master = loading
    loading.catch(() => {
      this.#master = undefined
    })
    return loading
  }

  async #readMasterKeys({ mayCreate }: { readonly mayCreate: boolean }): Promise<MasterKeys> {
    const { masterKeys, keyFile, database, world } = this.#options
    if (masterKeys !== undefined) return parseMasterKeys(masterKeys, 'TOLLBASE_MASTER_KEY')
    const found = await readKeyFile(keyFile)
    if (found !== undefined) return found
    // A new key beside data keys of a lost one would hide the loss.
    if (!mayCreate || (await hasDataKeys(database))) throw makeNoKeyFault(`${keyFile} is missing`)
    await createMasterKeyFile(keyFile, world.randomBytes)
    return requirePresent(await readKeyFile(keyFile), 'the new file of master keys')
  }
}

function formatOwner({ app, collection }: KeyOwner): string {
  return JSON.stringify([app, collection])
}

function formatKeyName({ app, collection, epoch }: KeyOwner & { readonly epoch: number }): string {
  return JSON.stringify(['tollbase data key', 1, app, collection, epoch])
}

function makeNoKeyFault(internal = 'a collection has no data keys'): Fault {
  return new Fault('UNAVAILABLE', {
    message: 'The keys of this encrypted collection cannot be had now; ask the operator.',
    retryAfterSeconds: 60,
    internal,
  })
}
