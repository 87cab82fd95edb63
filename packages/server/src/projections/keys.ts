import { hash } from 'node:crypto'
import type { Permission } from '@tollbase/contract/permissions'
import type { Queryable } from '../database/database.ts'
import { type SqlStatement, sql } from '../database/sql.ts'
import type { AuthorizationRecord } from '../model/authorization.ts'
import type { EntryRun, Projection } from './projection.ts'

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

/** All keys by hash, from `key` entries of the system chain: each holds the newest whole record. */
export class Keys implements Projection {
  readonly types = ['key'] as const
  readonly #byHash = new Map<string, KeyRecord>()
  readonly #byApp = new Map<string, Set<string>>()
  /** Dead before their entry is committed, so that no request slips in between. */
  readonly #dying = new Set<string>()

  /** The key of this hash if it is alive at this time. */
  find(keyHash: string, nowMs: number): KeyRecord | undefined {
    const key = this.#byHash.get(keyHash)
    return key !== undefined && this.isAlive(key, nowMs) ? key : undefined
  }

  isAlive(key: KeyRecord, nowMs: number): boolean {
    if (key.revoked_at !== null || this.#dying.has(key.key_hash)) return false
    return key.expires_at === null || Date.parse(key.expires_at) > nowMs
  }

  get(appId: string, keyHash: string): KeyRecord | undefined {
    const key = this.#byHash.get(keyHash)
    return key?.app_id === appId ? key : undefined
  }

  listByApp(appId: string): KeyRecord[] {
    return [...(this.#byApp.get(appId) ?? [])].flatMap((hash) => this.#byHash.get(hash) ?? [])
  }

  /** The key is refused from this moment; the returned function takes that back if its entry was not committed. */
  kill(keyHash: string): () => void {
    this.#dying.add(keyHash)
    return () => this.#dying.delete(keyHash)
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
    const rows = await database.query<{ body: string }>(
      sql`SELECT body FROM ${sql.id(schema, 'api_key')}`,
    )
    for (const row of rows) this.#set(row.body)
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
    this.#byHash.set(record.key_hash, record)
    const ofApp = this.#byApp.get(record.app_id) ?? new Set()
    ofApp.add(record.key_hash)
    this.#byApp.set(record.app_id, ofApp)
    if (record.revoked_at !== null) this.#dying.delete(record.key_hash)
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
