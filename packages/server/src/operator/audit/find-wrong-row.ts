import type { Database } from '../../database/database.ts'
import type { SqlStatement } from '../../database/sql.ts'

type Difference = Readonly<Record<string, unknown>>

/** Tables of the service's own chain, made from its whole log. */
export type LogTables = Readonly<
  Record<
    'paid' | 'posting' | 'sale' | 'transfer' | 'reversal' | 'key' | 'authorization',
    SqlStatement
  >
>

type WrongRow = {
  readonly row: string
  readonly field: string
  readonly expected: string | null
  readonly found: string | null
}

/** Returns the first wrong row that a statement finds. Text that cannot be read in its form is wrong too. */
export async function findWrongRow(
  database: Database,
  table: string,
  statement: SqlStatement,
): Promise<Difference | undefined> {
  try {
    const [wrong] = await database.query<WrongRow>(statement)
    if (wrong === undefined) return undefined
    const { row, field, expected, found } = wrong
    return {
      what: `table ${table}`,
      row,
      field,
      expected: expected ?? 'none',
      found: found ?? 'none',
    }
  } catch (error) {
    // Class 22 is "data exception".
    if (!(error instanceof Error && 'code' in error && String(error.code).startsWith('22')))
      throw error
    return { what: `table ${table}`, expected: 'values in their form', found: error.message }
  }
}
