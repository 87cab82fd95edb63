import type { Fault } from '../../base/fault.ts'
import type { Queryable } from '../../database/database.ts'
import { sql } from '../../database/sql.ts'
import type { StoredView } from '../../model/definitions.ts'
import { viewSession } from '../../projections/view-sessions.ts'
import type { ViewPlace } from '../../views/view-program.ts'
import type { Tenant } from '../applications/tenants.ts'

/** The progress of a view's build. It only grows; `done` may pass `total`, which is approximate. */
export type BuildWork = {
  /** The unit of progress: a fill reads records, a change reads entries of the chain. */
  unit: 'records' | 'entries'
  done: number
  total: number
  /** The session that does the work. */
  pid: number | undefined
  /** The reason why it was stopped, if it was. */
  stopped: Fault | undefined
}

export type BuildProgress = {
  readonly done: number
  readonly total: number
  readonly unit: BuildWork['unit']
  /** From 0 to 99, since work under way is not finished. */
  readonly percent: number
}

export function makeWork(): BuildWork {
  return { unit: 'records', done: 0, total: 0, pid: undefined, stopped: undefined }
}

/**
 * Makes the name of the session that builds a view. Every process sees it at once, and it costs no row, so it names
 * the view and its progress. PostgreSQL keeps 63 characters of it, which the numbers fit into.
 */
export function makeSessionName(
  { application }: Pick<Tenant, 'application'>,
  view: StoredView,
  work: BuildWork,
): string {
  return `${makeSessionPrefix(application, view)}${work.unit} ${work.total} ${work.done}`
}

function makeSessionPrefix({ number }: Tenant['application'], view: StoredView): string {
  return `${viewSession} ${number}.${view.number} `
}

/**
 * Reads the present progress of the work on a view, whichever process does it; undefined where there is none, or
 * before its total is known. Costs one look into the server's list of sessions.
 */
export async function readBuildProgress(
  database: Queryable,
  { application }: Pick<Tenant, 'application'>,
  view: StoredView,
): Promise<BuildProgress | undefined> {
  const begin = makeSessionPrefix(application, view)
  const sessions = await database.query<{ name: string }>(sql`
    SELECT application_name AS name FROM pg_catalog.pg_stat_activity
    WHERE datname = current_database() AND application_name ^@ ${begin}`)
  // The session of a killed process may survive it for a while, beside the one that begins again.
  const known = sessions.map(({ name }) => parseProgress(name.slice(begin.length)))
  return known.reduce(
    (most, one) => (one && one.percent >= (most?.percent ?? 0) ? one : most),
    undefined,
  )
}

function parseProgress(text: string): BuildProgress | undefined {
  const found = /^(records|entries) (\d+) (\d+)$/.exec(text)
  if (found === null) return undefined
  const unit = found[1] === 'records' ? 'records' : 'entries'
  const total = Number(found[2])
  if (total === 0) return undefined
  const done = Math.min(Number(found[3]), total)
  return { done, total, unit, percent: Math.min(99, Math.floor((100 * done) / total)) }
}

/** One record in this many is counted. */
const sampled = 1024

/**
 * PostgreSQL does not tell how far a statement is. So the session writes it into its name: a condition that always
 * holds counts a sample of the records that pass by. Only a session that fills views does.
 */
const noted = `(hashint8(leaf) & ${sampled - 1} <> 0 OR CASE WHEN current_setting('application_name') ^@ '${viewSession}'
 THEN set_config('application_name', substring(current_setting('application_name') FROM '^.* ')
  || substring(current_setting('application_name') FROM '[0-9]+$')::int8 + ${sampled}, true)
 END IS DISTINCT FROM '')`

/** Makes a place whose sources count how much of them is read; `reads` gets how often each is read, by model. */
export function makeCountedPlace(place: ViewPlace, reads: Map<string, number>): ViewPlace {
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
