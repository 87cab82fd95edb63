import { requirePresent } from '../base/assert.ts'
import { Fault } from '../base/fault.ts'
import type { AppliedEntry } from '../chain/applier.ts'
import type { Queryable } from '../database/database.ts'
import { CommitUnknownError, findStorageProblem, isTransient } from '../database/errors.ts'
import { sql } from '../database/sql.ts'
import type { Catalog } from '../model/catalog.ts'
import type { StoredView } from '../model/definitions.ts'
import type { PlannedView } from '../model/view-plan.ts'
import type { CompiledStatement } from '../query/sql-text.ts'
import type { Sent } from './project-records.ts'
import {
  getPositionAfter,
  markAt,
  markBehind,
  markStale,
  type Position,
  readLive,
} from './view-state.ts'
import { makeViewPlace, runViewStatement } from './view-tables.ts'
import type { Decision } from './waiting-views.ts'

/** Time that one live view may add to a turn of the writes, and all live views of an application together. */
export const viewAdvanceMs = 1_000
export const viewAdvancesMs = 5_000

/** The applier's clock for keeping live views up, and its callback for views that it leaves stale. */
export type LiveViews = {
  /** Milliseconds since 1970. */
  readonly now: () => number
  readonly onStale: (view: StoredView, reason: string, error: unknown) => void
}

type LiveViewsRun = {
  readonly schema: string
  readonly catalog: Catalog
  readonly entries: readonly AppliedEntry[]
  /** Sends the statements that make the last of the entries into rows, without waiting for their answers. */
  readonly send: () => Promise<Sent>
  /** Where the tables are at the end. */
  readonly at: Position
  readonly decision: Decision
  readonly live: LiveViews
}

/**
 * Applies a run, and brings the live views that are due to its end. Each has a bounded time and is rolled back if
 * it fails: a view that fails goes stale with its reason, one for which the time is too short is caught up beside the
 * writes, and neither holds up anything else. True if some view is left to be caught up.
 */
export async function applyWithLiveViews(tx: Queryable, applying: LiveViewsRun): Promise<boolean> {
  const { schema, entries, send, at, live } = applying
  const { due, unchanged } = applying.decision
  if (due.length === 0 && unchanged.length === 0) {
    const rows = await send()
    await rows.done
    return false
  }
  // The reads are answered while the rows are made, so that the database continues with the views without a pause.
  const asked = Promise.all([readLive(tx, schema), due.length > 0 ? readSettings(tx, limited) : {}])
  // Awaited below; a refusal must not end the process meanwhile.
  asked.catch(() => undefined)
  const rows = await send()
  const applied = Promise.all([rows.done, due.length > 0 && setSettings(tx, limited)])
  let appliedMs: number | undefined
  applied.then(
    () => {
      appliedMs = live.now()
    },
    () => undefined,
  )
  const [leaves, before] = await asked
  const last = entries.at(-1)
  const to = last === undefined ? at : getPositionAfter(last)
  const advances = due.flatMap((planned) => {
    const from = leaves.get(planned.view.id)
    return from === undefined ? [] : [{ planned, from, to: to.leaf }]
  })
  const finish = async ({ done, behind }: Outcome) => {
    const still = unchanged.filter(({ view }) => leaves.has(view.id))
    const there = [...done, ...still.map(({ view }) => view.id)]
    const mark = { views: there, at: to, status: 'live', now: live.now() } as const
    await Promise.all([
      due.length > 0 && setSettings(tx, before),
      there.length > 0 && markAt(tx, schema, mark),
      behind.length > 0 && markBehind(tx, schema, behind),
    ])
    return behind.length > 0
  }
  const elapsedMs = () => (appliedMs === undefined ? 0 : live.now() - appliedMs)
  const turn = { ...applying, advances, finish, elapsedMs }
  return (await advanceTogether(tx, turn, applied)) ?? finish(await advanceOneByOne(tx, turn))
}

/** A view that is to be brought from one leaf of the chain to another. */
type Advance = { readonly planned: PlannedView; readonly from: number; readonly to: number }

type Turn = LiveViewsRun & {
  readonly advances: readonly Advance[]
  /** Since the rows are there. */
  readonly elapsedMs: () => number
  /** Sends the statements that follow the views; true if some view is left to be caught up. */
  readonly finish: (outcome: Outcome) => Promise<boolean>
}

/** Ids of views: those that are where they belong, and those that there was no time for. */
type Outcome = { readonly done: readonly string[]; readonly behind: readonly string[] }

/**
 * Advances all views, and sends what follows them, as if none could fail, so that each costs its own statements and
 * nothing else; while one statement runs, the next one is already there. Undefined where one has failed, and
 * everything is as before.
 */
async function advanceTogether(
  tx: Queryable,
  turn: Turn,
  applied: Promise<unknown>,
): Promise<boolean | undefined> {
  const [done, behind]: [string[], string[]] = [[], []]
  if (turn.advances.length === 0) {
    const [isBehind] = await Promise.all([turn.finish({ done, behind }), applied])
    return isBehind
  }
  let previous: Promise<unknown> = tx.execute(sql`SAVEPOINT live_views`)
  previous.catch(() => undefined)
  try {
    for (const each of turn.advances) {
      const { id } = each.planned.view
      // The rows are there, as a statement behind them was answered; the time of the views begins to count.
      if (done.length > 0) await applied
      if (isTurnOver(turn)) {
        behind.push(id)
        continue
      }
      for (const statement of listStatements(turn, each)) {
        const sent = runViewStatement(tx, statement)
        // If the statement before it fails, this one fails too, with no news.
        sent.catch(() => undefined)
        await previous
        previous = sent
      }
      done.push(id)
    }
    const released = tx.execute(sql`RELEASE SAVEPOINT live_views`)
    const [, , isBehind] = await Promise.all([previous, released, turn.finish({ done, behind })])
    return isBehind
  } catch (error) {
    await applied
    if (isTransactionError(error)) throw error
    await tx.execute(sql`ROLLBACK TO SAVEPOINT live_views`)
    return undefined
  }
}

/** Advances one view after the other, so that it is known which of them fails, and why. */
async function advanceOneByOne(tx: Queryable, turn: Turn): Promise<Outcome> {
  const [done, behind]: [string[], string[]] = [[], []]
  for (const each of turn.advances) {
    const { id } = each.planned.view
    const outcome = isTurnOver(turn) ? 'behind' : await advanceOne(tx, turn, each)
    if (outcome === 'behind') behind.push(id)
    else if (outcome === 'done') done.push(id)
  }
  return { done, behind }
}

function isTurnOver({ elapsedMs }: Turn): boolean {
  return elapsedMs() >= viewAdvancesMs
}

async function advanceOne(
  tx: Queryable,
  turn: Turn,
  each: Advance,
): Promise<'done' | 'behind' | 'stale'> {
  const { view } = each.planned
  await tx.execute(sql`SAVEPOINT live_view`)
  try {
    for (const statement of listStatements(turn, each)) await runViewStatement(tx, statement)
    await tx.execute(sql`RELEASE SAVEPOINT live_view`)
    return 'done'
  } catch (error) {
    if (isTransactionError(error)) throw error
    await tx.execute(sql`ROLLBACK TO SAVEPOINT live_view`)
    if (isTooSlow(error)) return 'behind'
    const reason = describeReason(error, view)
    await markStale(tx, turn.schema, { view: view.id, reason })
    turn.live.onStale(view, reason, error)
    return 'stale'
  }
}

/** Throws where the view's time is over before a statement. */
function* listStatements(
  { schema, catalog, elapsedMs }: Turn,
  { planned: { view, plan }, from, to }: Advance,
): Generator<CompiledStatement> {
  const { program } = requirePresent(plan, 'the program of a live view')
  const startedMs = elapsedMs()
  const place = makeViewPlace(schema, view, catalog)
  for (const statement of program.advance(
    place,
    () => from,
    () => to,
  )) {
    if (elapsedMs() - startedMs >= viewAdvanceMs) throw new Error(tooSlow)
    yield statement
  }
}

const tooSlow = `a change of it took longer than ${viewAdvanceMs} ms; as a lazy view it has more time`

/** Returns true if the whole transaction is to be tried again, because the error is not the view's. */
export function isTransactionError(error: unknown): boolean {
  return (
    isTransient(error) ||
    findStorageProblem(error) !== undefined ||
    error instanceof CommitUnknownError
  )
}

/** Describes an error to a seller: PostgreSQL's message may hold values, which must be the seller's own. */
export function describeReason(error: unknown, { app, reads }: StoredView): string {
  if (!(error instanceof Error)) return unknownReason
  if (error instanceof Fault) return error.message
  if (isTooSlow(error)) return tooSlow
  const state = 'code' in error ? String(error.code) : ''
  const isOwn = reads.every((source) => source.app === app)
  return state !== '' && isOwn ? error.message.slice(0, 300) : unknownReason
}

/** Returns true where the time of a view ran out, before a statement or in one (query_canceled). */
function isTooSlow(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  return error.message === tooSlow || ('code' in error && error.code === '57014')
}

const unknownReason = 'something went wrong on our side'

type Settings = Readonly<Record<string, string>>

/**
 * Statements of views find rows by indexes, few for each of many keys. So a plan is made once, and one made while a
 * table was small does for a large one too; and a bitmap of pages, made for each key anew, costs more than it saves.
 */
export const planning: Settings = {
  plan_cache_mode: 'force_generic_plan',
  enable_seqscan: 'off',
  enable_bitmapscan: 'off',
}

const limited: Settings = { ...planning, statement_timeout: String(viewAdvanceMs) }

/** The values of settings now. */
async function readSettings(tx: Queryable, settings: Settings): Promise<Settings> {
  const rows = await tx.query<{ name: string; value: string }>(sql`
    SELECT name, current_setting(name) AS value FROM unnest(${Object.keys(settings)}::text[]) AS name`)
  return Object.fromEntries(rows.map(({ name, value }) => [name, value]))
}

/** Changes settings up to the end of the transaction. */
export async function setSettings(tx: Queryable, settings: Settings): Promise<void> {
  await tx.query(sql`
    SELECT set_config(name, value, true)
    FROM unnest(${Object.keys(settings)}::text[], ${Object.values(settings)}::text[]) AS setting (name, value)`)
}
