import type { Fault } from '../../base/fault.ts'
import type { Queryable } from '../../database/database.ts'
import { sql } from '../../database/sql.ts'
import type { StoredView } from '../../model/definitions.ts'
import { viewSession } from '../../projections/view-projection.ts'
import type { ViewPlace } from '../../views/view-program.ts'
import type { Tenant } from '../applications/tenancy.ts'

/** How far one who builds a view is. It only grows; `done` may pass `total`, which is known about. */
export type Work = {
  /** What is gone through: a fill reads records, a change entries of the chain. */
  unit: 'records' | 'entries'
  done: number
  total: number
  /** The session that is at it. */
  pid: number | undefined
  /** Why it was ended, where somebody did. */
  stopped: Fault | undefined
}

export type Progress = {
  readonly done: number
  readonly total: number
  readonly unit: Work['unit']
  /** From 0 to 99: what is under way is not at its end. */
  readonly percent: number
}

export function newWork(): Work {
  return { unit: 'records', done: 0, total: 0, pid: undefined, stopped: undefined }
}

/**
 * The name of the session that builds a view. Others see it at once, in whatever process they are, and it costs no row:
 * so it says what is built, and how far that is. PostgreSQL keeps 63 characters of it, which numbers fit into.
 */
export function sessionName(
  { application }: Pick<Tenant, 'application'>,
  view: StoredView,
  work: Work,
): string {
  return `${beginOf(application, view)}${work.unit} ${work.total} ${work.done}`
}

function beginOf({ number }: Tenant['application'], view: StoredView): string {
  return `${viewSession} ${number}.${view.number} `
}

/**
 * How far the work on a view is at this moment, whichever process does it; undefined where there is none, or before it
 * is known how much there is to do. Costs one look into the server's list of sessions.
 */
export async function progressOf(
  database: Queryable,
  { application }: Pick<Tenant, 'application'>,
  view: StoredView,
): Promise<Progress | undefined> {
  const begin = beginOf(application, view)
  const sessions = await database.query<{ name: string }>(sql`
    SELECT application_name AS name FROM pg_catalog.pg_stat_activity
    WHERE datname = current_database() AND application_name ^@ ${begin}`)
  // A process that was killed may be survived by its session for a while, beside the one that begins again.
  const known = sessions.map(({ name }) => progressIn(name.slice(begin.length)))
  return known.reduce(
    (most, one) => (one && one.percent >= (most?.percent ?? 0) ? one : most),
    undefined,
  )
}

function progressIn(text: string): Progress | undefined {
  const found = /^(records|entries) (\d+) (\d+)$/.exec(text)
  if (found === null) return undefined
  const unit = found[1] === 'records' ? 'records' : 'entries'
  const total = Number(found[2])
  if (total === 0) return undefined
  const done = Math.min(Number(found[3]), total)
  return { done, total, unit, percent: Math.min(99, Math.floor((100 * done) / total)) }
}

/** One record in so many is counted. */
const sampled = 1024

/**
 * PostgreSQL does not tell how far a statement is. So the session writes it into its name: a condition that always
 * holds counts a sample of the records that pass by. Only a session that fills views does.
 */
const noted = `(hashint8(leaf) & ${sampled - 1} <> 0 OR CASE WHEN current_setting('application_name') ^@ '${viewSession}'
 THEN set_config('application_name', substring(current_setting('application_name') FROM '^.* ')
  || substring(current_setting('application_name') FROM '[0-9]+$')::int8 + ${sampled}, true)
 END IS DISTINCT FROM '')`

/** The place with sources that count how much of them is read; `reads` gets how often each is read, by model. */
export function countedPlace(place: ViewPlace, reads: Map<string, number>): ViewPlace {
  return {
    ...place,
    resolve: (model) => {
      const source = place.resolve(model)
      if (source === undefined) return undefined
      reads.set(model, (reads.get(model) ?? 0) + 1)
      return { ...source, noted }
    },
  }
}
