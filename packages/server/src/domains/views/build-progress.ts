import type { Fault } from '../../base/fault.ts'
import type { Queryable } from '../../database/database.ts'
import { sql } from '../../database/sql.ts'
import type { ViewPlace } from '../../views/view-program.ts'
import { viewSession } from '../tenancy/view-projection.ts'

/** How far one who builds a view is. It only grows; `done` may pass `total`, which is known about. */
export type Work = {
  /** What is gone through: a fill reads records, a change entries of the chain. */
  unit: 'records' | 'entries'
  done: number
  total: number
  /** The session that reads records, which counts them in its name. */
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
 * How far the work is at this moment; undefined before it is known how much there is to do. Costs one look into the
 * server's list of sessions.
 */
export async function progressOf(database: Queryable, work: Work): Promise<Progress | undefined> {
  const { unit, total, pid } = work
  if (total === 0) return undefined
  const read = pid === undefined ? 0 : await recordsRead(database, pid)
  const done = Math.min(work.done + read, total)
  const percent = Math.min(99, Math.floor((100 * done) / total))
  return { done, total, unit, percent }
}

/** One record in so many is counted. */
const sampled = 1024

/**
 * PostgreSQL does not tell how far a statement is. So the session writes it into its name, which others see at once:
 * a condition that always holds counts a sample of the records that pass by. Only a session that fills views does.
 */
const noted = `(hashint8(leaf) & ${sampled - 1} <> 0 OR CASE WHEN current_setting('application_name') ^@ '${viewSession}'
 THEN set_config('application_name', '${viewSession} ' || coalesce(substring(current_setting('application_name') FROM '[0-9]+$')::int8, 0) + 1, true)
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

async function recordsRead(database: Queryable, pid: number): Promise<number> {
  const [session] = await database.query<{ name: string }>(sql`
    SELECT application_name AS name FROM pg_catalog.pg_stat_activity WHERE pid = ${pid}::int4`)
  const count = session?.name.startsWith(`${viewSession} `) === true && /\d+$/.exec(session.name)
  return count ? Number(count[0]) * sampled : 0
}
