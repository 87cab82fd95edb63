import type { Queryable } from '../../database/database.ts'
import { type SqlStatement, sql } from '../../database/sql.ts'
import type { WrappedKey } from '../../sealing/local-master-keys.ts'

const table = sql.id('operations', 'data_key')

/**
 * The keys of encrypted collections, wrapped. They are in no chain, so that they can be deleted: what a deleted key
 * sealed is lost for good, wherever its ciphertext is. Epoch 0 is the collection's key of tokens, which never
 * changes; from 1 on they seal records. `reserved` is an upper bound of what a key has sealed.
 */
export function buildDataKeyTables(): SqlStatement[] {
  return [
    sql`CREATE TABLE ${table} (
      app text NOT NULL, collection text NOT NULL, epoch int4 NOT NULL, master_key text NOT NULL,
      wrapped bytea NOT NULL, reserved int8 NOT NULL, created_at int8 NOT NULL,
      CONSTRAINT data_key_pkey PRIMARY KEY (app, collection, epoch))`,
  ]
}

/** A collection whose keys are meant. */
export type KeyOwner = { readonly app: string; readonly collection: string }

export type DataKeyRow = WrappedKey &
  KeyOwner & {
    readonly epoch: number
    readonly reserved: number
    readonly createdAtMs: number
  }

type Row = {
  readonly app: string
  readonly collection: string
  readonly epoch: number
  readonly master_key: string
  readonly wrapped: Buffer
  readonly reserved: bigint
  readonly created_at: bigint
}

const columns = sql`app, collection, epoch, master_key, wrapped, reserved, created_at`

/** The keys of a collection in the order of their epochs. */
export async function readDataKeys(
  database: Queryable,
  { app, collection }: KeyOwner,
): Promise<DataKeyRow[]> {
  const rows = await database.query<Row>(sql`
    SELECT ${columns} FROM ${table} WHERE app = ${app} AND collection = ${collection} ORDER BY epoch`)
  return rows.map(toDataKeyRow)
}

/** Keys that another master key than this one wraps. */
export async function readKeysNotUnder(
  database: Queryable,
  masterKey: string,
  limit: number,
): Promise<DataKeyRow[]> {
  const rows = await database.query<Row>(sql`
    SELECT ${columns} FROM ${table} WHERE master_key <> ${masterKey}
    ORDER BY app, collection, epoch LIMIT ${limit}`)
  return rows.map(toDataKeyRow)
}

export async function hasDataKeys(database: Queryable): Promise<boolean> {
  return (await database.query(sql`SELECT epoch FROM ${table} LIMIT 1`)).length > 0
}

/** Ids of the collections of an application that have keys. */
export async function listKeyOwners(database: Queryable, app: string): Promise<string[]> {
  const rows = await database.query<{ collection: string }>(
    sql`SELECT DISTINCT collection FROM ${table} WHERE app = ${app}`,
  )
  return rows.map(({ collection }) => collection)
}

/** The newest epoch of each collection. */
export async function readEpochs(
  database: Queryable,
  app: string,
): Promise<ReadonlyMap<string, number>> {
  const rows = await database.query<{ collection: string; epoch: number }>(
    sql`SELECT collection, max(epoch) AS epoch FROM ${table} WHERE app = ${app} GROUP BY collection`,
  )
  return new Map(rows.map(({ collection, epoch }) => [collection, epoch]))
}

export async function insertDataKey(database: Queryable, row: DataKeyRow): Promise<void> {
  await database.execute(sql`
    INSERT INTO ${table} (${columns}) VALUES (${row.app}, ${row.collection}, ${row.epoch},
      ${row.masterKey}, ${row.wrapped}, ${row.reserved}, ${row.createdAtMs})`)
}

/** Wraps a key anew, where it is still wrapped as before. */
export async function replaceWrapping(
  database: Queryable,
  { app, collection, epoch, masterKey }: DataKeyRow,
  after: WrappedKey,
): Promise<void> {
  await database.execute(sql`
    UPDATE ${table} SET master_key = ${after.masterKey}, wrapped = ${after.wrapped}
    WHERE app = ${app} AND collection = ${collection} AND epoch = ${epoch} AND master_key = ${masterKey}`)
}

/** Reserves so many uses of a key, before any of them; the bound that it then has, or undefined without the key. */
export async function reserveUses(
  database: Queryable,
  { app, collection }: KeyOwner,
  { epoch, count }: { readonly epoch: number; readonly count: number },
): Promise<number | undefined> {
  const [row] = await database.query<{ reserved: bigint }>(sql`
    UPDATE ${table} SET reserved = reserved + ${count}
    WHERE app = ${app} AND collection = ${collection} AND epoch = ${epoch} RETURNING reserved`)
  return row && Number(row.reserved)
}

export async function deleteDataKeys(
  database: Queryable,
  app: string,
  collections: readonly string[],
): Promise<void> {
  await database.execute(
    sql`DELETE FROM ${table} WHERE app = ${app} AND collection = ANY(${collections}::text[])`,
  )
}

function toDataKeyRow(row: Row): DataKeyRow {
  const { app, collection, epoch, wrapped, master_key: masterKey } = row
  const reserved = Number(row.reserved)
  return {
    app,
    collection,
    epoch,
    wrapped,
    masterKey,
    reserved,
    createdAtMs: Number(row.created_at),
  }
}
