import { AsyncLocalStorage } from 'node:async_hooks'
import type { Queryable } from '../database/database.ts'
import { type SqlStatement, sql } from '../database/sql.ts'

const table = sql.id('operations', 'commit_note')

/** Names the work in hand; whatever that appends is noted under this id, until it is over. */
export type CommitNote = { readonly id: string; isOver: boolean }

const current = new AsyncLocalStorage<CommitNote | undefined>()

/** The ids of works of which a chain has entries: each is written with its block, so they are there or not together. */
export function buildCommitNoteTables(): SqlStatement[] {
  return [
    sql`CREATE TABLE ${table} (id text NOT NULL, CONSTRAINT commit_note_pkey PRIMARY KEY (id))`,
  ]
}

/** Runs the work; what it appends to chains until it ends is noted. */
export async function runNoted<T>(id: string, work: () => Promise<T>): Promise<T> {
  const note: CommitNote = { id, isOver: false }
  try {
    return await current.run(note, work)
  } finally {
    // Work that it left running, such as a chain that it opened, is not its own any more.
    note.isOver = true
  }
}

/** Runs work that the next try finds by itself, as it finds what a payment paid for: it is not noted. */
export function runUnnoted<T>(work: () => T): T {
  return current.run(undefined, work)
}

/** The id of the work in hand, where it is to be noted. */
export function getCurrentNote(): string | undefined {
  const note = current.getStore()
  return note === undefined || note.isOver ? undefined : note.id
}

/** Prints the statement that notes these works; there is at least one. */
export function printNoteInsertion(ids: readonly string[]): SqlStatement {
  return sql`INSERT INTO ${table} (id) SELECT DISTINCT unnest(${ids}::text[]) ON CONFLICT (id) DO NOTHING`
}

/** Prints the condition that a chain has entries of the work whose id this is. */
export function printNoteCondition(id: SqlStatement): SqlStatement {
  return sql`EXISTS (SELECT 1 FROM ${table} AS note WHERE note.id = ${id})`
}

/** Prints the statement that deletes the notes of these works, which have the column `id`. */
export function printNoteDeletion(works: SqlStatement): SqlStatement {
  return sql`DELETE FROM ${table} AS note USING ${works} AS ended WHERE note.id = ended.id`
}

/** Deletes the notes of works that a table with the column `id` does not name any more. */
export async function dropNotes(database: Queryable, kept: SqlStatement): Promise<void> {
  await database.execute(sql`
    DELETE FROM ${table} AS note WHERE NOT EXISTS (SELECT 1 FROM ${kept} AS kept WHERE kept.id = note.id)`)
}
