import type { Queryable } from '../../packages/server/src/database/database.ts'
import { sql } from '../../packages/server/src/database/sql.ts'
import type { CompiledStatement } from '../../packages/server/src/query/sql-text.ts'
import type { ViewProgram } from '../../packages/server/src/views/view-program.ts'
import { type EnginePlace, runStatements } from './engine-place.ts'
import { getErrorKind, Mismatch } from './mismatch.ts'

/** A view at a position. */
export type EngineView = {
  readonly program: ViewProgram
  readonly number: number
  /** The description in a failure. */
  readonly about: string
  /** The same rows in plain PostgreSQL over the live records, as the column `row`; where it can be stated. */
  readonly plain: string | undefined
  at: number
}

/** Makes the tables and fills them as of the view's position. */
export async function begin(tx: Queryable, place: EnginePlace, view: EngineView): Promise<void> {
  const own = place.view(view.number)
  const { program } = view
  await describeFailure(view, () =>
    runStatements(tx, [...program.tables(own), ...program.fill(own, () => view.at)]),
  )
  await check(tx, place, view)
}

/** Brings the view to a position: by the change where that is possible and wanted, otherwise by a fill. */
export async function bring(
  tx: Queryable,
  place: EnginePlace,
  { view, to, isFill = false }: { view: EngineView; to: number; isFill?: boolean },
): Promise<void> {
  const own = place.view(view.number)
  const { program, at } = view
  const statements =
    isFill || program.notIncrementalReason !== undefined
      ? program.fill(own, () => to)
      : program.advance(
          own,
          () => at,
          () => to,
        )
  await describeFailure(view, () => runStatements(tx, statements))
  view.at = to
  await check(tx, place, view)
}

/** Sets the planner as the service does before it advances live views, or resets it. */
export async function settle(tx: Queryable, asService = true): Promise<void> {
  const [mode, scans] = asService ? ['force_generic_plan', 'off'] : ['auto', 'on']
  await tx.query(
    sql`SELECT set_config('plan_cache_mode', ${mode}, true), set_config('enable_seqscan', ${scans}, true)`,
  )
}

async function describeFailure(view: EngineView, work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error)
    throw new Mismatch(`an error, ${getErrorKind(error)}`, `${view.about}\n${text}`, error)
  }
}

/**
 * Checks that the rows equal a recomputation to the byte, and at the newest position the rows that plain SQL gives.
 */
async function check(tx: Queryable, place: EnginePlace, view: EngineView): Promise<void> {
  const { program, number, at, about, plain } = view
  const own = place.view(number)
  const rows = `${own.schema}.v_${number} WHERE NOT deleted`
  const recomputed = program.recompute(own, () => at)
  const bodies = (from: string) =>
    `coalesce((SELECT array_agg(body ORDER BY body COLLATE "C") FROM ${from}), '{}')`
  const difference = (one: string, other: string) =>
    `(SELECT coalesce(jsonb_agg(row), '[]') FROM (${one} EXCEPT ALL ${other}) AS difference(row))`
  const data = `SELECT data FROM ${rows}`
  const isPlain = plain !== undefined && at === place.size()
  const more = isPlain
    ? `, ${difference(plain, data)} AS missing, ${difference(data, plain)} AS surplus`
    : ''
  const text = `SELECT ${bodies(rows)} AS have, ${bodies(`(${recomputed.text}) AS recomputed`)} AS want${more}`
  const [row] = await runQuery(tx, { text, values: recomputed.values })
  const [have, want] = [JSON.stringify(row?.have), JSON.stringify(row?.want)]
  const told = `${about}\nat ${at}`
  if (have !== want)
    throw new Mismatch('not what is recomputed', `${told}\nhas ${have}\nnot ${want}`)
  if (isPlain && `${row?.missing} ${row?.surplus}` !== '[] []')
    throw new Mismatch(
      'not what plain SQL says',
      `${told}\nlacks ${row?.missing}\nbeyond ${row?.surplus}`,
    )
}

/** Checks that a fill finds nothing to do: it leaves the tables as they are, with no row made anew. */
export async function checkFill(
  tx: Queryable,
  place: EnginePlace,
  view: EngineView,
): Promise<void> {
  const own = place.view(view.number)
  const tables = view.program.tableNames(view.number).filter((name) => !/^s_.*d$/.test(name))
  const all = tables.map(
    (name) => `SELECT '${name}' AS name, t::text AS line FROM ${own.schema}.${name} AS t`,
  )
  const content = { text: `${all.join(' UNION ALL ')} ORDER BY name, line`, values: [] }
  const before = await runQuery(tx, content)
  await describeFailure(view, () =>
    runStatements(
      tx,
      view.program.fill(own, () => view.at),
    ),
  )
  const [had, has] = [JSON.stringify(before), JSON.stringify(await runQuery(tx, content))]
  if (had !== has)
    throw new Mismatch('a fill changes tables', `${view.about}\nhad ${had}\nhas ${has}`)
}

export async function runQuery(tx: Queryable, { text, values }: CompiledStatement) {
  return tx.query<Record<string, unknown>>(sql.compiled(text, values))
}
