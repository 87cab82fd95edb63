import { dayMs, hourMs } from '../../base/durations.ts'
import { makeInvalidFault } from '../../base/fault.ts'
import type { SalesPeriod } from '../../projections/read-sales.ts'
import type { Uses } from '../call.ts'

export type PeriodQuery = { readonly from?: string; readonly to?: string }

/** The end of all times that a period can have. */
const latestMs = Date.UTC(9999, 11, 31)

/** Opens the books of an application, with all that was sold until now. */
export async function openPeriod(
  { tenants }: Uses<'tenants'>,
  app: string,
  times: Pick<SalesPeriod, 'fromMs' | 'toMs'>,
): Promise<SalesPeriod> {
  tenants.requireRecord(app)
  const { chain, schema } = tenants.system
  await chain.whenApplied(chain.head().height)
  return { schema, app, ...times }
}

/** Parses a period of any times; all times where none are given. */
export function parsePeriod({ from, to }: PeriodQuery): Pick<SalesPeriod, 'fromMs' | 'toMs'> {
  const fromMs = from === undefined ? 0 : parseMoment(from, '/query/from')
  const toMs = to === undefined ? latestMs : parseMoment(to, '/query/to')
  if (fromMs > toMs) throw makeInvalidFault('/query/from', 'must not be after to')
  return { fromMs, toMs }
}

const lastDays = 30

/** Parses a period of any times in a body: until now where no end is given, and of the last 30 days without a beginning. */
export function parseLastDays(
  { from, to }: PeriodQuery,
  nowMs: number,
): Pick<SalesPeriod, 'fromMs' | 'toMs'> {
  const toMs = to === undefined ? nowMs : parseMoment(to, '/to')
  const fromMs = from === undefined ? toMs - lastDays * dayMs : parseMoment(from, '/from')
  if (fromMs > toMs) throw makeInvalidFault('/from', 'must not be after to')
  return { fromMs, toMs }
}

/** Parses a period of whole hours, since sums are kept by the hour. */
export function parseWholeHours(query: PeriodQuery): Pick<SalesPeriod, 'fromMs' | 'toMs'> {
  const period = parsePeriod(query)
  for (const [name, ms] of [
    ['from', period.fromMs],
    ['to', period.toMs],
  ] as const)
    if (ms % hourMs !== 0)
      throw makeInvalidFault(`/query/${name}`, 'must be a whole hour, because sums are by the hour')
  return period
}

/** Parses a period of whole hours; without a beginning it is the month of its end, without an end the present month. */
export function parseMonth(
  { from, to }: PeriodQuery,
  nowMs: number,
): Pick<SalesPeriod, 'fromMs' | 'toMs'> {
  const now = new Date(nowMs)
  const nextMonth = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1)).toISOString()
  const until = to ?? nextMonth
  const last = new Date(parseMoment(until, '/query/to') - 1)
  const month = new Date(Date.UTC(last.getUTCFullYear(), last.getUTCMonth())).toISOString()
  return parseWholeHours({ from: from ?? month, to: until })
}

/** Parses a day or a time in UTC, the form of which the contract has checked. */
function parseMoment(text: string, pointer: string): number {
  const ms = Date.parse(text.includes('T') ? text : `${text}T00:00Z`)
  // Date.parse takes the 31st of a short month for a day of the next one.
  if (Number.isNaN(ms) || new Date(ms).toISOString().slice(0, 10) !== text.slice(0, 10))
    throw makeInvalidFault(pointer, 'is not a time that exists')
  return ms
}
