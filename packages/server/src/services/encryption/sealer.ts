import { limits } from '@tollbase/contract/limits'
import { awaitTurn } from '../../base/await-turn.ts'
import { Fault } from '../../base/fault.ts'
import { getOwnValue, isRecord } from '../../base/is-record.ts'
import type { Mutex } from '../../base/mutex.ts'
import type { World } from '../../base/world.ts'
import type { Chain } from '../../chain/chain.ts'
import type { Catalog } from '../../model/catalog.ts'
import type { Collection } from '../../model/readable.ts'
import { parseFieldPath } from '../../query/field-path.ts'
import { aesKeyBytes } from '../../sealing/aes-gcm.ts'
import {
  deriveKeyToken,
  makeNonce,
  openFileKey,
  openText,
  sealText,
} from '../../sealing/envelope.ts'
import {
  deriveFieldToken,
  deriveFieldTokenKey,
  type TokenValue,
} from '../../sealing/field-token.ts'
import type { FileSealing } from '../../sealing/segments.ts'
import type { PreparedRecord } from '../records/prepare-records.ts'
import type { DataKeys } from './data-keys.ts'

/** Characters of texts that are sealed or opened before others have their turn. */
const charsAtOnce = 512 * 1024
/** Characters that take as long as a token, and as what every version costs beside its own. */
const tokenChars = 500
const versionChars = 2_000

/** A version as the tables have it. */
type StoredVersion = { readonly key: string; readonly body: string }

type OpenApplication = {
  readonly chain: Chain
  readonly data: { readonly catalog: Catalog }
  readonly definitions: Mutex
}

type Names = Pick<Collection, 'id' | 'primary_column'>
type Named = Pick<Collection, 'id' | 'collection_type'>

/** A record that is to be sealed; the row of a new blob comes with the key of its bytes. */
type SealableRecord = PreparedRecord & { readonly fileKey?: Buffer | undefined }

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
  async listTokens(collection: Named, keys: readonly string[]): Promise<string[]> {
    const { tokenKey } = await this.#dataKeys.load({ app: this.#app, collection: collection.id })
    return mapInTurns(keys, getTokenCost, (key) => makeName(collection, tokenKey, key))
  }

  /** The names by which blobs are found whose ids were hashes of plain bytes: tokens, which tell nothing of them. */
  async listFormerNames({ id }: Pick<Names, 'id'>, blobIds: readonly string[]): Promise<string[]> {
    const { tokenKey } = await this.#dataKeys.load({ app: this.#app, collection: id })
    return mapInTurns(blobIds, getTokenCost, (blobId) => deriveKeyToken(tokenKey, blobId))
  }

  /** The tokens that these values of a field have in records of any epoch; undefined where they are too many. */
  async listFieldTokens(
    { id }: Pick<Names, 'id'>,
    { field, values }: { readonly field: string; readonly values: readonly TokenValue[] },
  ): Promise<string[] | undefined> {
    const { keys } = await this.#dataKeys.load({ app: this.#app, collection: id })
    if (keys.size * values.length > limits.fieldTokensMax) return undefined
    const tokens: string[] = []
    for (const key of keys.values()) {
      const tokenKey = deriveFieldTokenKey(key)
      const derive = (value: TokenValue) => deriveFieldToken(tokenKey, field, value)
      tokens.push(...(await mapInTurns(values, getTokenCost, derive)))
    }
    return tokens
  }

  /** Has the keys of a collection opened, which may take long where a key manager has them. */
  async prepare({ id }: Pick<Names, 'id'>): Promise<void> {
    await this.#dataKeys.load({ app: this.#app, collection: id })
  }

  /** Seals records: their keys become tokens, their texts envelopes, with the tokens of the collection's fields. */
  async seal(
    collection: Named & Pick<Collection, 'token_fields'>,
    records: readonly SealableRecord[],
  ): Promise<PreparedRecord[]> {
    const owner = { app: this.#app, collection: collection.id }
    const { tokenKey } = await this.#dataKeys.load(owner)
    const files = records.filter(({ fileKey }) => fileKey !== undefined)
    const key = await this.#dataKeys.take(owner, records.length + files.length)
    const fieldKey = deriveFieldTokenKey(key.key)
    const fields = (collection.token_fields ?? []).map(({ field }) => field)
    const { randomBytes } = this.#world
    return mapInTurns(records, getVersionCost, (record) => {
      const token = makeName(collection, tokenKey, record.key)
      const tokens = fields.length === 0 ? [] : makeFieldTokens(fieldKey, fields, record.body)
      const file = record.fileKey && { key: record.fileKey, nonce: makeNonce(randomBytes) }
      const sealing = { place: { ...owner, token }, nonce: makeNonce(randomBytes), tokens, file }
      return { key: token, deleted: record.deleted, body: sealText(key, record.body, sealing) }
    })
  }

  /** Makes the key of a new blob's bytes, which its row is sealed with; until then it is nowhere else. */
  makeFileSealing(): FileSealing {
    return { key: this.#world.randomBytes(aesKeyBytes), bound: formatFile(this.#app) }
  }

  /** Finds in the row of a blob, as it is stored, how its bytes are sealed. */
  async openFileSealing({ id }: Named, { key: token, body }: StoredVersion): Promise<FileSealing> {
    const owner = { app: this.#app, collection: id }
    const { keys } = await this.#dataKeys.load(owner)
    const key = openFileKey((epoch) => keys.get(epoch), body, { ...owner, token })
    return { key, bound: formatFile(this.#app) }
  }

  /** Opens versions: their envelopes become texts, their tokens keys. Throws once the signal is aborted. */
  async open<T extends StoredVersion>(
    { id, primary_column }: Names,
    versions: readonly T[],
    signal?: AbortSignal,
  ): Promise<T[]> {
    if (versions.length === 0) return []
    const owner = { app: this.#app, collection: id }
    const { keys } = await this.#dataKeys.load(owner)
    return mapInTurns(versions, getVersionCost, (version) => {
      signal?.throwIfAborted()
      const place = { ...owner, token: version.key }
      const body = openText((epoch) => keys.get(epoch), version.body, place)
      return { ...version, key: readKey(body, primary_column), body }
    })
  }

  /**
   * The same, where one that does not open, as it was damaged, is passed over and told of. Throws where none can be
   * opened now, as their keys cannot be had.
   */
  async openIntact<T extends StoredVersion>(
    names: Names,
    versions: readonly T[],
    tellDamaged: (version: T) => void,
  ): Promise<T[]> {
    try {
      return await this.open(names, versions)
    } catch (error) {
      if (error instanceof Fault) throw error
    }
    const opened: T[] = []
    for (const version of versions)
      try {
        opened.push(...(await this.open(names, [version])))
      } catch (error) {
        if (error instanceof Fault) throw error
        tellDamaged(version)
      }
    return opened
  }
}

/**
 * The name that a record has in the log and the tables. The id of a blob is the hash of its sealed bytes, and tells
 * nothing: it stays, so that whoever has no keys knows which file belongs to which row.
 */
function makeName({ collection_type: type }: Named, tokenKey: Buffer, key: string): string {
  return type === 'blob' ? key : deriveKeyToken(tokenKey, key)
}

/** The key belongs to one blob; its collection, epoch and id are bound to the key where the row has it. */
function formatFile(app: string): string {
  return JSON.stringify(['tollbase blob', 1, app])
}

/** Maps a list, a piece of bounded cost at a time; the cost is counted in characters. */
async function mapInTurns<T, R>(
  items: readonly T[],
  cost: (item: T) => number,
  map: (item: T) => R,
): Promise<R[]> {
  const mapped: R[] = []
  let sum = 0
  for (const item of items) {
    sum += cost(item)
    if (sum >= charsAtOnce) {
      sum = 0
      await awaitTurn()
    }
    mapped.push(map(item))
  }
  return mapped
}

function getTokenCost(): number {
  return tokenChars
}

/** However short a record is, it takes a cipher of its own. */
function getVersionCost({ body }: StoredVersion): number {
  return body.length + versionChars
}

/** The tokens of those fields that have a value to be found by: a text, a number or a truth. */
function makeFieldTokens(key: Buffer, fields: readonly string[], body: string): string[] {
  const record: unknown = JSON.parse(body)
  return fields.flatMap((field) => {
    const value = parseFieldPath(field, '').reduce<unknown>(
      (inner, name) => (isRecord(inner) ? getOwnValue(inner, name) : undefined),
      record,
    )
    return isTokenValue(value) ? [deriveFieldToken(key, field, value)] : []
  })
}

function isTokenValue(value: unknown): value is TokenValue {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
}

/** Every stored record has its key. */
function readKey(body: string, primaryColumn: string): string {
  const record: unknown = JSON.parse(body)
  return isRecord(record) ? String(record[primaryColumn]) : ''
}
