import { requirePresent } from '../base/assert.ts'
import type { World } from '../base/world.ts'
import type { Database } from '../database/database.ts'
import { type SqlStatement, sql } from '../database/sql.ts'

/**
 * signed: may be in the network; mined and reverted: in a block; replaced: in a final block, its nonce was taken by a
 * transaction that this journal does not know, so it can never be mined.
 */
export type JournalState = 'signed' | 'mined' | 'reverted' | 'replaced'

/** A transaction exactly as it was or will be broadcast. */
export type Journaled = {
  readonly id: string
  /** The address of the key that signed it; the network may have another one since. */
  readonly signer: string
  readonly nonce: bigint
  /** Those with the highest fees, which are sent now. */
  readonly raw: Buffer
  readonly hash: string
  /**
   * The bytes that were sent before under the nonce, oldest first, as each may be in a block: the same call with lower
   * fees. There are none once a call was withdrawn.
   */
  readonly earlierRaws: readonly Buffer[]
  readonly earlierHashes: readonly string[]
  /** The times at which each was replaced. */
  readonly replacedAtMs: readonly bigint[]
  readonly state: JournalState
  readonly blockNumber: bigint | null
  readonly createdAtMs: bigint
  /** The ids of what it does, of a joint transaction; none of any other one. */
  readonly parts: readonly string[]
}

/** Lists the hashes under which the transaction may be in a block, those of the highest fees first. */
export function listHashes({
  hash,
  earlierHashes,
}: Pick<Journaled, 'hash' | 'earlierHashes'>): readonly string[] {
  return [hash, ...earlierHashes.toReversed()]
}

/** The bytes that take the place of others of the same nonce. */
export type Replacement = Pick<Journaled, 'id' | 'raw' | 'hash'> & {
  readonly replacedHash: string
  readonly atMs: bigint
}

export type Mark = {
  readonly id: string
  readonly state: JournalState
  readonly blockNumber: bigint | null
}

/** Nonces of the latest transactions, of which those that were reverted are looked at again. */
const revertedLooked = 100n

const journalTable = sql.id('operations', 'transaction_journal')
const leaseTable = sql.id('operations', 'signer_lease')
const columns = sql`id, signer, nonce, raw, hash, earlier_raws AS "earlierRaws", earlier_hashes AS "earlierHashes",
  replaced_at_ms AS "replacedAtMs", state, block_number AS "blockNumber", created_at_ms AS "createdAtMs", parts`

/** Makes the statements for the tables; the schema `operations` exists already. */
export function makeJournalTables(): SqlStatement[] {
  return [
    sql`CREATE TABLE IF NOT EXISTS ${journalTable} (
      id text PRIMARY KEY,
      network text NOT NULL,
      signer text NOT NULL,
      nonce int8 NOT NULL,
      raw bytea NOT NULL,
      hash text NOT NULL,
      state text NOT NULL CHECK (state IN ('signed', 'mined', 'reverted', 'replaced')),
      block_number int8,
      created_at_ms int8 NOT NULL,
      UNIQUE (network, signer, nonce))`,
    sql`CREATE INDEX IF NOT EXISTS transaction_journal_undecided
      ON ${journalTable} (network, signer, nonce) WHERE state = 'signed'`,
    sql`CREATE TABLE IF NOT EXISTS ${leaseTable} (
      network text NOT NULL,
      signer text NOT NULL,
      holder text NOT NULL,
      expires_at_ms int8 NOT NULL,
      PRIMARY KEY (network, signer))`,
  ]
}

/** A transaction that no block takes is sent again with higher fees; the bytes before stay. */
export function buildReplacementColumns(): SqlStatement[] {
  return [
    sql`ALTER TABLE ${journalTable} ADD COLUMN IF NOT EXISTS earlier_raws bytea[] NOT NULL DEFAULT '{}',
      ADD COLUMN IF NOT EXISTS earlier_hashes text[] NOT NULL DEFAULT '{}',
      ADD COLUMN IF NOT EXISTS replaced_at_ms int8[] NOT NULL DEFAULT '{}'`,
  ]
}

/** A joint transaction has the ids of its parts, by which it is found. */
export function buildJointColumns(): SqlStatement[] {
  return [
    sql`ALTER TABLE ${journalTable} ADD COLUMN IF NOT EXISTS parts text[] NOT NULL DEFAULT '{}'`,
    sql`CREATE INDEX IF NOT EXISTS transaction_journal_parts ON ${journalTable} USING gin (parts) WHERE parts <> '{}'`,
  ]
}

/**
 * Lists the transactions that were signed under ids, joint ones among them, each with the times and hashes of those that
 * replaced it.
 */
export function listSigned(
  database: Pick<Database, 'query'>,
  ids: readonly string[],
): Promise<Pick<Journaled, 'id' | 'hash' | 'earlierHashes' | 'replacedAtMs' | 'createdAtMs'>[]> {
  return database.query(sql`SELECT ${columns} FROM ${journalTable} WHERE ${printIsOf(ids)}`)
}

/** Prints the condition that a transaction has one of these ids, or a part with one. */
function printIsOf(ids: readonly string[]): SqlStatement {
  return sql`(id = ANY(${ids}::text[]) OR (parts <> '{}' AND parts && ${ids}::text[]))`
}

/**
 * Counts signed transactions of all keys that are not known to be in a block, and returns the time of the oldest
 * one.
 */
export async function countUndecided(
  database: Pick<Database, 'query'>,
): Promise<{ count: number; oldestMs: number | undefined }> {
  const [row] = await database.query<{ count: bigint; oldest: bigint | null }>(sql`
    SELECT count(*)::int8 AS count, min(created_at_ms) AS oldest
    FROM ${journalTable} WHERE state = 'signed'`)
  const { count, oldest } = requirePresent(row, 'a count')
  return { count: Number(count), oldestMs: oldest === null ? undefined : Number(oldest) }
}

type Fresh = Pick<Journaled, 'id' | 'nonce' | 'raw' | 'hash' | 'createdAtMs' | 'parts'>
/** Stands between the parts of a row in a statement. */
const separator = '\n'

/** The identity of a journal: one key on one network. `holder` names the process that may write. */
export type JournalOwner = {
  readonly network: string
  readonly signer: string
  readonly holder: string
}

/** The rows of one owner; those of the network's earlier keys are found by their ids. Every write needs the lease. */
export class Journal {
  readonly #database: Database
  readonly #world: World
  readonly #owner: JournalOwner

  constructor(options: {
    readonly database: Database
    readonly world: World
    readonly owner: JournalOwner
  }) {
    this.#database = options.database
    this.#world = options.world
    this.#owner = options.owner
  }

  /**
   * Takes or prolongs the lease; returns undefined if it is ours now, otherwise its holder. `over`: a holder that
   * is known to be dead, whose lease need not run out.
   */
  async lease(durationMs: number, over = ''): Promise<string | undefined> {
    const { network, signer, holder } = this.#owner
    const now = this.#world.now()
    const taken = await this.#database.execute(sql`
      INSERT INTO ${leaseTable} AS l (network, signer, holder, expires_at_ms)
      VALUES (${network}, ${signer}, ${holder}, ${now + durationMs})
      ON CONFLICT (network, signer) DO UPDATE
        SET holder = excluded.holder, expires_at_ms = excluded.expires_at_ms
        WHERE l.holder IN (excluded.holder, ${over}) OR l.expires_at_ms <= ${now}`)
    if (taken === 1) return undefined
    const [row] = await this.#database.query<{ holder: string }>(sql`
      SELECT holder FROM ${leaseTable} WHERE network = ${network} AND signer = ${signer}`)
    return row?.holder ?? 'nobody'
  }

  async release(): Promise<void> {
    const { network, signer, holder } = this.#owner
    await this.#database.execute(sql`
      DELETE FROM ${leaseTable}
      WHERE network = ${network} AND signer = ${signer} AND holder = ${holder}`)
  }

  /** Reads the nonce after the highest that was ever signed; 0 before the first. */
  async nextNonce(): Promise<bigint> {
    const { network, signer } = this.#owner
    const [row] = await this.#database.query<{ next: bigint }>(sql`
      SELECT coalesce(max(nonce) + 1, 0)::int8 AS next FROM ${journalTable}
      WHERE network = ${network} AND signer = ${signer}`)
    return row?.next ?? 0n
  }

  /**
   * Finds the transactions of these ids: that of an id alone, where it has one beside a joint one. An id is signed once,
   * also where the network had another key then.
   */
  async find(ids: readonly string[]): Promise<Map<string, Journaled>> {
    const { network } = this.#owner
    const rows = await this.#database.query<Journaled>(sql`
      SELECT ${columns} FROM ${journalTable} WHERE ${printIsOf(ids)} AND network = ${network}`)
    const byPart = rows.flatMap((row) => row.parts.map((part) => [part, row] as const))
    return new Map([...byPart, ...rows.map((row) => [row.id, row] as const)])
  }

  /** Lists the ids that begin so, whichever key signed them, each with the hash of the bytes that are sent now. */
  listNames(
    idStart: string,
  ): Promise<readonly { readonly id: string; readonly transaction: string }[]> {
    const { network } = this.#owner
    return this.#database.query(sql`
      SELECT id, hash AS transaction FROM ${journalTable}
      WHERE network = ${network} AND starts_with(id, ${idStart}::text)`)
  }

  /**
   * Deletes all transactions whose ids begin so, also those that had no effect and those of earlier keys. Their nonces
   * are used for good; the chain's count says which these are.
   */
  async forget(idStarts: readonly string[]): Promise<void> {
    const { network } = this.#owner
    await this.#database.execute(sql`
      DELETE FROM ${journalTable} AS row USING unnest(${idStarts}::text[]) AS given (start)
      WHERE row.network = ${network} AND starts_with(row.id, given.start)`)
  }

  /** Reads the transactions of the highest nonces, the highest first. */
  async listNewest(count: number): Promise<Journaled[]> {
    const { network, signer } = this.#owner
    return this.#database.query<Journaled>(sql`
      SELECT ${columns} FROM ${journalTable}
      WHERE network = ${network} AND signer = ${signer} ORDER BY nonce DESC LIMIT ${count}`)
  }

  /**
   * Finds when the last joint transaction since then was signed that was reverted, or had a part that was signed once
   * more by itself.
   */
  async findJointLoss(sinceMs: number): Promise<number | undefined> {
    const { network, signer } = this.#owner
    const [row] = await this.#database.query<{ at: bigint | null }>(sql`
      SELECT max(created_at_ms) AS at FROM ${journalTable} AS joint
      WHERE network = ${network} AND signer = ${signer} AND parts <> '{}' AND created_at_ms > ${sinceMs}::int8
        AND (state = 'reverted' OR EXISTS (SELECT 1 FROM ${journalTable} AS own WHERE own.id = ANY(joint.parts)))`)
    return row?.at == null ? undefined : Number(row.at)
  }

  /**
   * Reads the transactions that are signed and not yet seen in a block, or seen in one that the chain has forgotten
   * (its nonces from `minedCount` on are free), and the latest that were reverted, as other blocks may have made them
   * since; lowest nonce first: those of up to a time, and those that a clock has signed which was set back since.
   */
  async undecided(minedCount: bigint, createdMsMax: number): Promise<Journaled[]> {
    const { network, signer } = this.#owner
    return this.#database.query<Journaled>(sql`
      SELECT ${columns} FROM ${journalTable}
      WHERE network = ${network} AND signer = ${signer}
        AND (state = 'signed' OR nonce >= ${minedCount}
          OR (state = 'reverted' AND nonce >= ${minedCount - revertedLooked})) AND state <> 'replaced'
        AND (created_at_ms <= ${createdMsMax} OR created_at_ms > ${this.#world.now()})
      ORDER BY nonce LIMIT 500`)
  }

  /**
   * Lists what keys that nobody has in use signed for this network up to a time, and what is not known to be in a block;
   * those of each key by their nonces.
   */
  listLeft(createdMsMax: number): Promise<Journaled[]> {
    const { network, signer } = this.#owner
    return this.#database.query<Journaled>(sql`
      SELECT ${columns} FROM ${journalTable} AS row
      WHERE network = ${network} AND signer <> ${signer} AND state = 'signed' AND created_at_ms <= ${createdMsMax}
        AND NOT EXISTS (SELECT 1 FROM ${leaseTable} AS lease WHERE lease.network = row.network
          AND lease.signer = row.signer AND lease.expires_at_ms > ${this.#world.now()})
      ORDER BY signer, nonce LIMIT 500`)
  }

  /**
   * Inserts rows, durably when it returns true; false if another process has taken the lease, and nothing is
   * written. The lease's row stays locked until the rows are committed.
   */
  async insert(rows: readonly Fresh[]): Promise<boolean> {
    const { network, signer, holder } = this.#owner
    const written = await this.#database.execute(sql`
      WITH lease AS (
        SELECT network, signer FROM ${leaseTable}
        WHERE network = ${network} AND signer = ${signer} AND holder = ${holder}
          AND expires_at_ms > ${this.#world.now()}
        FOR SHARE)
      INSERT INTO ${journalTable}
        (id, network, signer, nonce, raw, hash, state, block_number, created_at_ms, parts)
      SELECT r.id, lease.network, lease.signer, r.nonce, r.raw, r.hash, 'signed', NULL, r.created_at_ms,
        string_to_array(r.parts, ${separator})
      FROM lease, unnest(
        ${rows.map((row) => row.id)}::text[],
        ${rows.map((row) => row.nonce)}::int8[],
        ${rows.map((row) => row.raw)}::bytea[],
        ${rows.map((row) => row.hash)}::text[],
        ${rows.map((row) => row.createdAtMs)}::int8[],
        ${rows.map((row) => row.parts.join(separator))}::text[]
      ) AS r (id, nonce, raw, hash, created_at_ms, parts)`)
    return written === rows.length
  }

  /**
   * Puts bytes in the place of others, which are kept, durably when it returns true; false if another process has
   * taken the lease, or has been there before.
   */
  replace(rows: readonly Replacement[]): Promise<boolean> {
    return this.#put(
      rows,
      sql`CASE WHEN cardinality(j.earlier_raws) < cardinality(j.earlier_hashes) THEN j.earlier_raws
        ELSE j.earlier_raws || j.raw END`,
    )
  }

  /** The same, but only the hashes of the others are kept: nobody is to have their bytes any more. */
  withdraw(rows: readonly Replacement[]): Promise<boolean> {
    return this.#put(rows, sql`'{}'::bytea[]`)
  }

  async #put(rows: readonly Replacement[], earlierRaws: SqlStatement): Promise<boolean> {
    const { network, signer, holder } = this.#owner
    const written = await this.#database.execute(sql`
      WITH lease AS (
        SELECT network, signer FROM ${leaseTable}
        WHERE network = ${network} AND signer = ${signer} AND holder = ${holder}
          AND expires_at_ms > ${this.#world.now()}
        FOR SHARE)
      UPDATE ${journalTable} AS j
      SET raw = r.raw, hash = r.hash, state = 'signed', block_number = NULL,
        earlier_raws = ${earlierRaws}, earlier_hashes = j.earlier_hashes || j.hash,
        replaced_at_ms = j.replaced_at_ms || r.at_ms
      FROM lease, unnest(
        ${rows.map((row) => row.id)}::text[],
        ${rows.map((row) => row.raw)}::bytea[],
        ${rows.map((row) => row.hash)}::text[],
        ${rows.map((row) => row.replacedHash)}::text[],
        ${rows.map((row) => row.atMs)}::int8[]
      ) AS r (id, raw, hash, replaced_hash, at_ms)
      WHERE j.id = r.id AND j.hash = r.replaced_hash AND j.network = lease.network AND j.signer = lease.signer`)
    return written === rows.length
  }

  /** Records the outcomes of transactions; a lost record is made again from the chain. */
  async mark(marks: readonly Mark[]): Promise<void> {
    await this.#database.execute(sql`
      UPDATE ${journalTable} AS j SET state = m.state, block_number = m.block_number
      FROM unnest(
        ${marks.map((mark) => mark.id)}::text[],
        ${marks.map((mark) => mark.state)}::text[],
        ${marks.map((mark) => mark.blockNumber)}::int8[]
      ) AS m (id, state, block_number)
      WHERE j.id = m.id`)
  }
}
