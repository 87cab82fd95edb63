import { limits } from '@tollbase/contract/limits'
import type { Queryable } from '../database/database.ts'
import { type SqlStatement, sql } from '../database/sql.ts'
import type { AuthorizationRecord } from '../model/authorization.ts'
import { KeptRecords } from './kept-records.ts'
import type { KeyRecord } from './keys.ts'
import { toApplicationAccount } from './ledger-entry.ts'
import type { EntryRun, Projection } from './projection.ts'
import { readBodies } from './read-bodies.ts'

/** Authorizations, from `authorization` entries of the system chain: each holds the newest whole record. */
export class Authorizations implements Projection {
  readonly types = ['authorization'] as const
  /** Those that applications gave from their own balances, and those of wallets, which anybody can make. */
  readonly #own: KeptRecords<AuthorizationRecord>
  readonly #ofWallets: KeptRecords<AuthorizationRecord>
  readonly #byHash = new Map<string, string>()
  /** The ids, by application, of those that spent from its own balance and are in their table alone. */
  readonly #budgets = new Map<string, Set<string>>()

  constructor(now: () => number) {
    const onForgotten = (one: AuthorizationRecord) => this.#forget(one)
    this.#own = new KeptRecords({ now, onForgotten })
    const bytesMax = limits.allWalletAuthorizationsBytesMax
    this.#ofWallets = new KeptRecords({ now, onForgotten, bytesMax })
  }

  /** The key of this hash, as a key that pays and has no other right, while its authorization is alive. */
  findKey(keyHash: string, nowMs: number): KeyRecord | undefined {
    const one = this.#find(this.#byHash.get(keyHash) ?? '')
    return one !== undefined && this.isAlive(one, nowMs) ? toKey(one) : undefined
  }

  isAlive(one: AuthorizationRecord, nowMs: number): boolean {
    return this.#getKept(one).isAlive(one.id, one, { nowMs })
  }

  /** Reads the application's authorization of this id, also one that died so long ago that its table alone has it. */
  async read(
    database: Queryable,
    schema: string,
    { appId, id }: { readonly appId: string; readonly id: string },
  ): Promise<AuthorizationRecord | undefined> {
    const known = this.#find(id)
    const hasForgotten = this.#own.hasForgotten(appId) || this.#ofWallets.hasForgotten(appId)
    if (known !== undefined || !hasForgotten) return known?.app_id === appId ? known : undefined
    const [row] = await database.query<{ body: string }>(
      sql`SELECT body FROM ${sql.id(schema, 'authorization')} WHERE id = ${id}`,
    )
    const found: AuthorizationRecord | undefined = row && JSON.parse(row.body)
    return found?.app_id === appId ? found : undefined
  }

  /** Lists those through an application that live or died last, newest first: all of them, or those from one account. */
  listByApp(appId: string, account?: string): AuthorizationRecord[] {
    return [...this.#own.listByApp(appId), ...this.#ofWallets.listByApp(appId)]
      .filter(({ record }) => account === undefined || record.account === account)
      .sort((one, other) => other.place - one.place)
      .map(({ record }) => record)
  }

  /** Finds what has no room for one more of a wallet through an application: that application, or all together. */
  findFull(appId: string): 'application' | 'all' | undefined {
    return this.#ofWallets.findFull(appId, limits.walletAuthorizationsBytesMax)
  }

  /** Lists all authorizations, as names of budgets, that an application ever gave from its own balance. */
  listBudgets(appId: string): string[] {
    const kept = this.#own.listByApp(appId)
    return [...(this.#budgets.get(appId) ?? []), ...kept.map(({ id }) => id)]
  }

  /** Its key is refused from this moment; the returned function takes that back, once. */
  kill(one: AuthorizationRecord): () => void {
    return this.#getKept(one).kill(one.id)
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
    const table = sql.id(schema, 'authorization')
    const rows = readBodies(database, { table, key: sql.id('id'), place: sql.id('leaf') })
    for await (const { body, place } of rows) this.#set(body, Number(place))
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
      for (const { body, leafIndex } of entries) this.#set(body, leafIndex)
    }
  }

  #set(body: string, leaf: number): void {
    const one: AuthorizationRecord = JSON.parse(body)
    this.#byHash.set(one.key_hash, one.id)
    this.#getKept(one).set(one.id, one, { chars: body.length, place: leaf })
  }

  #find(id: string): AuthorizationRecord | undefined {
    return this.#own.get(id) ?? this.#ofWallets.get(id)
  }

  #getKept(one: Granted): KeptRecords<AuthorizationRecord> {
    return isOwn(one) ? this.#own : this.#ofWallets
  }

  #forget(one: AuthorizationRecord): void {
    this.#byHash.delete(one.key_hash)
    if (!isOwn(one)) return
    const ids = this.#budgets.get(one.app_id) ?? new Set()
    ids.add(one.id)
    this.#budgets.set(one.app_id, ids)
  }
}

type Granted = Pick<AuthorizationRecord, 'account' | 'app_id'>

/** Returns true where the application's own balance pays. */
function isOwn({ account, app_id: appId }: Granted): boolean {
  return account === toApplicationAccount(appId)
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
