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

/**
 * Times of the last use of keys: noted in memory, written together at intervals; a crash loses a few seconds. Those that
 * are written are in their table alone, because keys are made without end.
 */
export class KeyUse {
  readonly #fresh = new Map<string, number>()
  readonly #database: Database
  readonly #world: World
  readonly #stop: () => void

  constructor(database: Database, world: World) {
    this.#database = database
    this.#world = world
    this.#stop = world.every(flushIntervalMs, () => void this.#flush().catch(() => undefined))
  }

  note(keyHash: string): void {
    this.#fresh.set(keyHash, this.#world.now())
  }

  /** Reads when these keys were last used, as ISO times; those that never were are not there. */
  async readLastUsed(hashes: readonly string[]): Promise<ReadonlyMap<string, string>> {
    // Taken before the read: what is written during it is in one of the two.
    const fresh = hashes.flatMap((hash) => {
      const time = this.#fresh.get(hash)
      return time === undefined ? [] : [[hash, time] as const]
    })
    const rows = await this.#database.query<{ key_hash: string; last_used_ms: bigint }>(
      sql`SELECT key_hash, last_used_ms FROM ${table} WHERE key_hash = ANY(${hashes}::text[])`,
    )
    const times = new Map(rows.map((row) => [row.key_hash, Number(row.last_used_ms)]))
    for (const [hash, time] of fresh) times.set(hash, Math.max(time, times.get(hash) ?? 0))
    return new Map([...times].map(([hash, time]) => [hash, new Date(time).toISOString()]))
  }

  async close(): Promise<void> {
    this.#stop()
    await this.#flush()
  }

  async #flush(): Promise<void> {
    const uses = [...this.#fresh]
    if (uses.length === 0) return
    const write = sql`
      INSERT INTO ${table} AS stored (key_hash, last_used_ms)
      SELECT key_hash, last_used_ms FROM unnest(
        ${uses.map(([hash]) => hash)}::text[], ${uses.map(([, time]) => time)}::int8[]) AS used (key_hash, last_used_ms)
      ON CONFLICT (key_hash) DO UPDATE SET last_used_ms = greatest(stored.last_used_ms, excluded.last_used_ms)`
    await this.#database.execute(write)
    // One that fails is written by the next flush, and so is a use that came meanwhile.
    for (const [hash, time] of uses) if (this.#fresh.get(hash) === time) this.#fresh.delete(hash)
  }
}
