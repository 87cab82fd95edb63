import { awaitTurn } from '../../base/await-turn.ts'
import { isRecord } from '../../base/is-record.ts'
import type { Mutex } from '../../base/mutex.ts'
import type { World } from '../../base/world.ts'
import type { Chain } from '../../chain/chain.ts'
import type { Catalog } from '../../model/catalog.ts'
import type { Collection } from '../../model/readable.ts'
import { deriveKeyToken, makeNonce, openText, sealText } from '../../sealing/envelope.ts'
import type { PreparedRecord } from '../records/prepare-records.ts'
import type { DataKeys } from './data-keys.ts'

/** Characters of texts that are sealed or opened before others have their turn. */
const charsAtOnce = 512 * 1024

/** A version as the tables have it. */
type StoredVersion = { readonly key: string; readonly body: string }

type OpenApplication = {
  readonly chain: Chain
  readonly data: { readonly catalog: Catalog }
  readonly definitions: Mutex
}

type Names = Pick<Collection, 'id' | 'primary_column'>

/** Seals and opens the records of one application's encrypted collections. */
export class Sealer {
  readonly #app: string
  readonly #world: World
  readonly #dataKeys: DataKeys

  constructor(app: string, parts: { readonly world: World; readonly dataKeys: DataKeys }) {
    this.#app = app
    this.#world = parts.world
    this.#dataKeys = parts.dataKeys
  }

  /** Makes the keys of collections that are to be encrypted. */
  async createKeys(collections: readonly string[]): Promise<void> {
    for (const collection of collections)
      await this.#dataKeys.create({ app: this.#app, collection })
  }

  /** Makes the records of collections unreadable for good. */
  shred(collections: readonly string[]): Promise<void> {
    return this.#dataKeys.shred(this.#app, collections)
  }

  /**
   * Deletes the keys of collections that are gone: a crash between the deletion of a collection and that of its keys
   * leaves them. The tables must have the whole log before a collection that they lack counts as gone, and while
   * definitions are held nobody makes keys for a new one. Nor does another process, whose collections are not known
   * here: the keys are listed before the chain is still held.
   */
  shredForgotten({ chain, data, definitions }: OpenApplication): Promise<void> {
    return definitions.run(async () => {
      const owners = await this.#dataKeys.listOwners(this.#app)
      if (owners.length === 0) return
      await chain.confirmHeld()
      await chain.whenApplied(chain.head().height)
      const { collections } = data.catalog
      await this.shred(owners.filter((id) => !collections.has(id)))
    })
  }

  /** The names that records have in the log and the tables. */
  async listTokens({ id }: Pick<Names, 'id'>, keys: readonly string[]): Promise<string[]> {
    const { tokenKey } = await this.#dataKeys.load({ app: this.#app, collection: id })
    return keys.map((key) => deriveKeyToken(tokenKey, key))
  }

  /** Seals records: their keys become tokens, their texts envelopes. */
  async seal(
    { id }: Pick<Names, 'id'>,
    records: readonly PreparedRecord[],
  ): Promise<PreparedRecord[]> {
    const owner = { app: this.#app, collection: id }
    const { tokenKey } = await this.#dataKeys.load(owner)
    const key = await this.#dataKeys.take(owner, records.length)
    return this.#mapInTurns(records, (record) => {
      const token = deriveKeyToken(tokenKey, record.key)
      const nonce = makeNonce(this.#world.randomBytes)
      const body = sealText(key, record.body, { place: { ...owner, token }, nonce })
      return { key: token, deleted: record.deleted, body }
    })
  }

  /** Opens versions: their envelopes become texts, their tokens keys. */
  async open<T extends StoredVersion>(
    { id, primary_column }: Names,
    versions: readonly T[],
  ): Promise<T[]> {
    if (versions.length === 0) return []
    const owner = { app: this.#app, collection: id }
    const { keys } = await this.#dataKeys.load(owner)
    return this.#mapInTurns(versions, (version) => {
      const place = { ...owner, token: version.key }
      const body = openText((epoch) => keys.get(epoch), version.body, place)
      return { ...version, key: readKey(body, primary_column), body }
    })
  }

  async #mapInTurns<T extends StoredVersion, R>(
    items: readonly T[],
    map: (item: T) => R,
  ): Promise<R[]> {
    const mapped: R[] = []
    let chars = 0
    for (const item of items) {
      chars += item.body.length
      if (chars >= charsAtOnce) {
        chars = 0
        await awaitTurn()
      }
      mapped.push(map(item))
    }
    return mapped
  }
}

/** Every stored record has its key. */
function readKey(body: string, primaryColumn: string): string {
  const record: unknown = JSON.parse(body)
  return isRecord(record) ? String(record[primaryColumn]) : ''
}
