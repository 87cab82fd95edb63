import { AsyncLocalStorage } from 'node:async_hooks'
import { Fault } from '../base/fault.ts'
import type { Queryable } from '../database/database.ts'
import { type SqlStatement, sql } from '../database/sql.ts'

const table = sql.id('operations', 'commit_note')

/**
 * The id of the current work. Everything that the work appends is noted under this id, until the work ends.
 */
type CommitNote = {
  readonly id: string
  /** A chain has entries of it already: it appends no more of its own. */
  readonly isDone: boolean
  isOver: boolean
}

/** While the note is at rest, nothing is noted. */
const current = new AsyncLocalStorage<
  { readonly note: CommitNote; readonly isAtRest: boolean } | undefined
>()

/**
 * The ids of the work that a chain has entries of. Each id is written in one statement with its block, so both are
 * stored or neither.
 */
export function buildCommitNoteTables(): SqlStatement[] {
  return [
    sql`CREATE TABLE ${table} (id text NOT NULL, CONSTRAINT commit_note_pkey PRIMARY KEY (id))`,
  ]
}

/**
 * Runs the work, and notes everything that it appends to chains until it ends. Work that is already done may look up
 * its result; if it tries to append again, it is refused with 410 ANSWER_LOST.
 */
export async function runWithCommitNote<T>(
  { id, isDone }: { readonly id: string; readonly isDone: boolean },
  work: () => Promise<T>,
): Promise<T> {
  const note: CommitNote = { id, isDone, isOver: false }
  try {
    return await current.run({ note, isAtRest: false }, work)
  } finally {
    // Work that it left running, such as a chain that it opened, is not its own any more.
    note.isOver = true
  }
}

/**
 * Runs work without a note. A repetition finds the result of such work by other means, for example by the payment that
 * paid for it.
 */
export function runWithoutCommitNote<T>(work: () => T): T {
  const noting = current.getStore()
  return current.run(noting && { ...noting, isAtRest: true }, work)
}

/** Runs a part of unnoted work that is noted nevertheless: a write that is paid for. */
export function runWithCommitNoteAgain<T>(work: () => T): T {
  const noting = current.getStore()
  return current.run(noting && { ...noting, isAtRest: false }, work)
}

/** The id of the work in hand, where it is to be noted. */
export function getCurrentNote(): string | undefined {
  const noting = current.getStore()
  if (noting === undefined || noting.isAtRest || noting.note.isOver) return undefined
  refuseRepetition()
  return noting.note.id
}

/** Throws where the work in hand is done already, and this would do it again. */
export function refuseRepetition(): void {
  const note = current.getStore()?.note
  if (note?.isDone === true && !note.isOver) throw new Fault('ANSWER_LOST')
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
