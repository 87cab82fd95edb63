import { parseFieldPath } from './field-path.ts'
import { printKeyExpression } from './index-key.ts'

/** Runs one statement; given by the test, since this room knows no database. */
export type RunSql = (
  text: string,
  values?: readonly unknown[],
) => Promise<readonly Record<string, unknown>[]>

export type TestVersion = {
  /** JSON text of the record. */
  readonly body: string
  readonly key?: string
  readonly deleted?: boolean
  readonly supersededBy?: number
}

/** A schema with a watermark at height 7, sequence 3, which is the leaf 99. */
export async function createTestSchema(run: RunSql, schema: string): Promise<void> {
  await run(`CREATE SCHEMA ${schema}`)
  await run(
    `CREATE TABLE ${schema}.watermark (id int2 PRIMARY KEY, height int8 NOT NULL, sequence int4 NOT NULL, leaf int8 NOT NULL)`,
  )
  await run(`INSERT INTO ${schema}.watermark VALUES (1, 7, 3, 100)`)
}

/** A collection's table as records are kept in; the leaf of each version is its place in the list, from 0. */
export async function createTestCollection(
  run: RunSql,
  table: string,
  versions: readonly TestVersion[],
): Promise<void> {
  await run(`CREATE TABLE ${table} (leaf int8 PRIMARY KEY, height int8 NOT NULL, sequence int4 NOT NULL, key text NOT NULL,
    deleted bool NOT NULL, superseded_by int8, data jsonb NOT NULL, body text NOT NULL)`)
  const index = `${table.split('.').at(-1)}_key`
  await run(`CREATE INDEX ${index} ON ${table} (key) WHERE superseded_by IS NULL`)
  await run(
    `INSERT INTO ${table} SELECT leaf - 1, 1, (leaf - 1)::int4, key, deleted, superseded_by, body::jsonb, body
     FROM unnest($1::text[], $2::text[], $3::bool[], $4::int8[]) WITH ORDINALITY
       AS version(body, key, deleted, superseded_by, leaf)`,
    [
      versions.map((version) => version.body),
      versions.map((version, leaf) => version.key ?? String(leaf)),
      versions.map((version) => version.deleted ?? false),
      versions.map((version) => version.supersededBy ?? null),
    ],
  )
  await run(`ANALYZE ${table}`)
}

/** An index over a field, as collections get them; its name is `<table>_<number>`. */
export async function indexTestCollection(
  run: RunSql,
  table: string,
  fields: readonly string[],
): Promise<void> {
  for (const [number, name] of fields.entries()) {
    const key = printKeyExpression(parseFieldPath(name, ''))
    const index = `${table.split('.').at(-1)}_${number}`
    await run(`CREATE INDEX ${index} ON ${table} ((${key}), leaf) WHERE superseded_by IS NULL`)
  }
  await run(`ANALYZE ${table}`)
}
