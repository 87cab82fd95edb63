import type { Readable, Writable } from 'node:stream'
import { Client } from 'pg'
import { from as copyFrom, to as copyTo } from 'pg-copy-streams'
import { type DatabaseConnection, makeClientConfig } from './connection.ts'
import type { Queryable } from './queryable.ts'
import type { Row } from './send-query.ts'
import { type SqlStatement, sql } from './sql.ts'

/** A table and the columns that are copied, in order. */
export type CopiedTable = {
  readonly schema: string
  readonly name: string
  readonly columns: readonly string[]
}

type LockedTable = Pick<CopiedTable, 'schema' | 'name'>

/** One connection, in one transaction, that moves whole tables as streams in PostgreSQL's binary form. */
export type CopySession = Queryable & {
  /** Streams a table out, as the transaction's snapshot shows it. */
  readonly copyOut: (table: CopiedTable) => Readable
  /** Takes rows into a table; they are there when the stream has finished. */
  readonly copyIn: (table: CopiedTable) => Writable
  /**
   * Reads tables while nobody can drop them or write them anew, and then lets them go. Throws a TableChangedError where one
   * was written anew since the snapshot, which has it as empty.
   */
  readonly readLocked: <T>(tables: readonly LockedTable[], read: () => Promise<T>) => Promise<T>
}

/** A table is another one than in the snapshot of the session; a new session has it. */
export class TableChangedError extends Error {
  constructor({ schema, name }: LockedTable) {
    super(`the table ${schema}.${name} was written anew meanwhile`)
  }
}

/** Runs the work in one transaction on one snapshot, without time-outs; commits unless it throws. */
export async function runCopySession<T>(
  connection: DatabaseConnection,
  work: (session: CopySession) => Promise<T>,
): Promise<T> {
  // A copy has the connection to itself, so nothing may be sent ahead of it.
  const client = new Client({ ...makeClientConfig(connection), pipeline: false })
  // A connection that breaks fails the statement under way; an event nobody hears would end the process.
  client.on('error', () => undefined)
  await client.connect()
  try {
    await client.query('SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0')
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ')
    const send = ({ text, values }: SqlStatement) => client.query({ text, values: [...values] })
    const result = await work({
      // pg gives rows untyped; the caller states the shape that its SELECT list has.
      query: async <R extends Row>(statement: SqlStatement) => (await send(statement)).rows as R[],
      execute: async (statement) => (await send(statement)).rowCount ?? 0,
      copyOut: (table) => client.query(copyTo(formatCopy(table, 'TO STDOUT'))),
      copyIn: (table) => client.query(copyFrom(formatCopy(table, 'FROM STDIN'))),
      readLocked: async (tables, read) => {
        // A lock ends with the savepoint that it was taken under.
        await client.query('SAVEPOINT locked')
        for (const table of tables) await lockTable(client, table)
        const result = await read()
        await client.query('ROLLBACK TO SAVEPOINT locked; RELEASE SAVEPOINT locked')
        return result
      },
    })
    await client.query('COMMIT')
    return result
  } finally {
    await client.end().catch(() => undefined)
  }
}

/** A table that is written anew gets another file: the catalog shows the one of the snapshot, the function that of now. */
async function lockTable(client: Client, table: LockedTable): Promise<void> {
  const { schema, name } = table
  await client.query(sql`LOCK TABLE ${sql.id(schema, name)} IN ACCESS SHARE MODE`.text)
  const { text, values } = sql`
    SELECT FROM pg_catalog.pg_class AS class JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = relnamespace
    WHERE nspname = ${schema} AND relname = ${name} AND relfilenode = pg_catalog.pg_relation_filenode(class.oid)`
  const { rowCount } = await client.query({ text, values: [...values] })
  if (rowCount !== 1) throw new TableChangedError(table)
}

function formatCopy({ schema, name, columns }: CopiedTable, way: string): string {
  const list = sql.join(columns.map((column) => sql.id(column)))
  return `${sql`COPY ${sql.id(schema, name)} (${list})`.text} ${way} (FORMAT binary)`
}
