import type { Queryable } from '../database/database.ts'
import { type SqlStatement, sql } from '../database/sql.ts'
import type { AuthorizationRecord } from '../model/authorization.ts'
import type { KeyRecord } from './keys.ts'
import type { EntryRun, Projection } from './projection.ts'

/** All authorizations, from `authorization` entries of the system chain: each holds the newest whole record. */
export class Authorizations implements Projection {
  readonly types = ['authorization'] as const
  readonly #byId = new Map<string, AuthorizationRecord>()
  readonly #byHash = new Map<string, string>()
  readonly #byApp = new Map<string, Set<string>>()
  /** Dead before their entry is committed, so that no request slips in between. */
  readonly #dying = new Set<string>()

  /** The key of this hash, as a key that pays and has no other right, while its authorization is alive. */
  findKey(keyHash: string, nowMs: number): KeyRecord | undefined {
    const one = this.#byId.get(this.#byHash.get(keyHash) ?? '')
    return one !== undefined && this.isAlive(one, nowMs) ? toKey(one) : undefined
  }

  isAlive({ id, revoked_at, expires_at }: AuthorizationRecord, nowMs: number): boolean {
    return revoked_at === null && !this.#dying.has(id) && Date.parse(expires_at) > nowMs
  }

  get(appId: string, id: string): AuthorizationRecord | undefined {
    const one = this.#byId.get(id)
    return one?.app_id === appId ? one : undefined
  }

  /** Lists those of an application, newest first. */
  listByApp(appId: string): AuthorizationRecord[] {
    const ids = [...(this.#byApp.get(appId) ?? [])].reverse()
    return ids.flatMap((id) => this.#byId.get(id) ?? [])
  }

  /** Its key is refused from this moment; the returned function takes that back if its entry was not committed. */
  kill(id: string): () => void {
    this.#dying.add(id)
    return () => this.#dying.delete(id)
  }

  tables(schema: string): SqlStatement[] {
    return [
      sql`CREATE TABLE ${sql.id(schema, 'authorization')} (
        id text NOT NULL, leaf int8 NOT NULL, key_hash text NOT NULL, body text NOT NULL,
        CONSTRAINT authorization_pkey PRIMARY KEY (id))`,
    ]
  }

  tableNames(): string[] {
    return ['authorization']
  }

  async load(database: Queryable, schema: string): Promise<void> {
    const rows = await database.query<{ body: string }>(
      sql`SELECT body FROM ${sql.id(schema, 'authorization')} ORDER BY leaf`,
    )
    for (const row of rows) this.#set(row.body)
  }

  async apply(tx: Queryable, schema: string, { entries }: EntryRun): Promise<() => void> {
    for (const { body, leafIndex } of entries) {
      const { id, key_hash: keyHash }: AuthorizationRecord = JSON.parse(body)
      await tx.execute(sql`
        INSERT INTO ${sql.id(schema, 'authorization')} (id, leaf, key_hash, body)
        VALUES (${id}, ${leafIndex}::int8, ${keyHash}, ${body})
        ON CONFLICT (id) DO UPDATE SET body = excluded.body`)
    }
    return () => {
      for (const { body } of entries) this.#set(body)
    }
  }

  #set(body: string): void {
    const one: AuthorizationRecord = JSON.parse(body)
    this.#byId.set(one.id, one)
    this.#byHash.set(one.key_hash, one.id)
    const ofApp = this.#byApp.get(one.app_id) ?? new Set()
    ofApp.add(one.id)
    this.#byApp.set(one.app_id, ofApp)
    if (one.revoked_at !== null) this.#dying.delete(one.id)
  }
}

function toKey(one: AuthorizationRecord): KeyRecord {
  return {
    key_hash: one.key_hash,
    app_id: one.app_id,
    prefix: one.prefix,
    name: one.grantee,
    permissions: ['Pay'],
    pay_limits: null,
    created_at: one.created_at,
    expires_at: one.expires_at,
    revoked_at: one.revoked_at,
    authorization: one,
  }
}
