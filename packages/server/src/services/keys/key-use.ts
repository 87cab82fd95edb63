import type { World } from '../../base/world.ts'
import type { Database } from '../../database/database.ts'
import { type SqlStatement, sql } from '../../database/sql.ts'

const table = sql.id('operations', 'key_use')
const flushIntervalMs = 10_000

export function buildKeyUseTables(): SqlStatement[] {
  return [
    sql`CREATE TABLE ${table} (
      key_hash text NOT NULL, last_used_ms int8 NOT NULL, CONSTRAINT key_use_pkey PRIMARY KEY (key_hash))`,
  ]
}

/** Times of the last use of keys: noted in memory, written together at intervals; a crash loses a few seconds. */
export class KeyUse {
  readonly #last = new Map<string, number>()
  readonly #fresh = new Set<string>()
  readonly #database: Database
  readonly #world: World
  readonly #stop: () => void

  constructor(database: Database, world: World) {
    this.#database = database
    this.#world = world
    this.#stop = world.every(flushIntervalMs, () => void this.#flush().catch(() => undefined))
  }

  async load(): Promise<void> {
    const rows = await this.#database.query<{ key_hash: string; last_used_ms: bigint }>(
      sql`SELECT key_hash, last_used_ms FROM ${table}`,
    )
    for (const row of rows) this.#last.set(row.key_hash, Number(row.last_used_ms))
  }

  note(keyHash: string): void {
    this.#last.set(keyHash, this.#world.now())
    this.#fresh.add(keyHash)
  }

  /** ISO time, or null. */
  getLastUsed(keyHash: string): string | null {
    const time = this.#last.get(keyHash)
    return time === undefined ? null : new Date(time).toISOString()
  }

  async close(): Promise<void> {
    this.#stop()
    await this.#flush()
  }

  async #flush(): Promise<void> {
    const hashes = [...this.#fresh]
    if (hashes.length === 0) return
    this.#fresh.clear()
    const write = sql`
      INSERT INTO ${table} AS stored (key_hash, last_used_ms)
      SELECT key_hash, last_used_ms FROM unnest(
        ${hashes}::text[], ${hashes.map((hash) => this.#last.get(hash) ?? 0)}::int8[]) AS used (key_hash, last_used_ms)
      ON CONFLICT (key_hash) DO UPDATE SET last_used_ms = greatest(stored.last_used_ms, excluded.last_used_ms)`
    try {
      await this.#database.execute(write)
    } catch (error) {
      // The next flush writes them, at the time that they have then.
      for (const hash of hashes) this.#fresh.add(hash)
      throw error
    }
  }
}
