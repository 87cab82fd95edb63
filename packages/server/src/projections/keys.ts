import { hash } from 'node:crypto'
import type { Permission } from '@tollbase/contract/permissions'
import type { Queryable } from '../database/database.ts'
import { type SqlStatement, sql } from '../database/sql.ts'
import type { AuthorizationRecord } from '../model/authorization.ts'
import { KeptRecords } from './kept-records.ts'
import type { EntryRun, Projection } from './projection.ts'
import { readBodies } from './read-bodies.ts'

export type KeyRecord = {
  readonly key_hash: string
  readonly app_id: string
  /** The first 8 characters of the key's text. */
  readonly prefix: string
  readonly name: string
  readonly permissions: readonly Permission[]
  readonly pay_limits: Readonly<Record<string, unknown>> | null
  readonly created_at: string
  readonly expires_at: string | null
  /** Set once; from then on the key is dead. */
  readonly revoked_at: string | null
  /** Names what is spent with it, over all its successors; its own hash where it is not given. */
  readonly budget?: string
  /** The authorization whose key it is; only `Authorizations` gives such keys. */
  readonly authorization?: AuthorizationRecord
}

/** Names what is spent with a key: it outlives the key where that gets a successor. */
export function getBudget({ budget, key_hash }: Pick<KeyRecord, 'budget' | 'key_hash'>): string {
  return budget ?? `key:${key_hash}`
}

/** Keys by hash, from `key` entries of the system chain: each holds the newest whole record. */
export class Keys implements Projection {
  readonly types = ['key'] as const
  readonly #kept: KeptRecords<KeyRecord>
  /** The budgets, by application, of keys that are in their table alone. */
  readonly #budgets = new Map<string, Set<string>>()

  constructor(now: () => number) {
    this.#kept = new KeptRecords({ now, onForgotten: (record) => this.#noteBudget(record) })
  }

  /** The key of this hash if it is alive at this time. */
  find(keyHash: string, nowMs: number): KeyRecord | undefined {
    const key = this.#kept.get(keyHash)
    return key !== undefined && this.isAlive(key, nowMs) ? key : undefined
  }

  /** `ownKills` are kills that do not count: those of the caller itself. */
  isAlive(key: KeyRecord, nowMs: number, ownKills = 0): boolean {
    return this.#kept.isAlive(key.key_hash, key, { nowMs, ownKills })
  }

  /** The application's key of this hash, if it is in memory: each live one, and those that died last. */
  get(appId: string, keyHash: string): KeyRecord | undefined {
    const key = this.#kept.get(keyHash)
    return key?.app_id === appId ? key : undefined
  }

  /** The same, also of one that died so long ago that its table alone has it. */
  async read(
    database: Queryable,
    schema: string,
    { appId, keyHash }: { readonly appId: string; readonly keyHash: string },
  ): Promise<KeyRecord | undefined> {
    const known = this.get(appId, keyHash)
    if (known !== undefined || !this.#kept.hasForgotten(appId)) return known
    const [row] = await database.query<{ body: string }>(sql`
      SELECT body FROM ${sql.id(schema, 'api_key')} WHERE key_hash = ${keyHash} AND app_id = ${appId}`)
    return row && JSON.parse(row.body)
  }

  /** Lists the live keys of an application, and those that died last. */
  listByApp(appId: string): KeyRecord[] {
    return this.#kept.listByApp(appId).map(({ record }) => record)
  }

  /** Returns true where dead keys of the application are in their table alone. */
  hasForgotten(appId: string): boolean {
    return this.#kept.hasForgotten(appId)
  }

  /** Lists the budgets of all keys that an application ever had which might spend. */
  listBudgets(appId: string): string[] {
    return [...(this.#budgets.get(appId) ?? []), ...this.listByApp(appId).map(getBudget)]
  }

  /** The key is refused from this moment; the returned function takes that back, once. */
  kill(keyHash: string): () => void {
    return this.#kept.kill(keyHash)
  }

  tables(schema: string): SqlStatement[] {
    return [
      sql`CREATE TABLE ${sql.id(schema, 'api_key')} (
        key_hash text NOT NULL, app_id text NOT NULL, body text NOT NULL,
        CONSTRAINT api_key_pkey PRIMARY KEY (key_hash))`,
    ]
  }

  tableNames(): string[] {
    return ['api_key']
  }

  async load(database: Queryable, schema: string): Promise<void> {
    const table = sql.id(schema, 'api_key')
    const rows = readBodies(database, { table, key: sql.id('key_hash'), place: sql`0::int8` })
    for await (const { body } of rows) this.#set(body)
  }

  async apply(tx: Queryable, schema: string, { entries }: EntryRun): Promise<() => void> {
    for (const entry of entries) {
      const record: KeyRecord = JSON.parse(entry.body)
      await tx.execute(sql`
        INSERT INTO ${sql.id(schema, 'api_key')} (key_hash, app_id, body)
        VALUES (${record.key_hash}, ${record.app_id}, ${entry.body})
        ON CONFLICT (key_hash) DO UPDATE SET body = excluded.body`)
    }
    return () => {
      for (const entry of entries) this.#set(entry.body)
    }
  }

  #set(body: string): void {
    const record: KeyRecord = JSON.parse(body)
    this.#kept.set(record.key_hash, record, { chars: body.length, place: 0 })
  }

  /** The sums of an application's deposits need what its dead keys have spent. */
  #noteBudget(record: KeyRecord): void {
    if (!record.permissions.includes('Pay')) return
    const budgets = this.#budgets.get(record.app_id) ?? new Set()
    budgets.add(getBudget(record))
    this.#budgets.set(record.app_id, budgets)
  }
}

/** Lower-case hex SHA-256 of the key's text: all that is stored of it, with the prefix. */
export function hashKey(text: string): string {
  return hash('sha256', text)
}

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** `app_` and 43 base62 characters: 256 bits. */
export function makeKeyText(randomBytes: (count: number) => Buffer): string {
  let text = ''
  while (text.length < 43) {
    for (const byte of randomBytes(64)) {
      // 248 is the largest multiple of 62 in a byte; taking the rest would favour some characters.
      if (byte < 248 && text.length < 43) text += alphabet[byte % 62]
    }
  }
  return `app_${text}`
}
