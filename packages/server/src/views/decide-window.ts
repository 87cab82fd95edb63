import { mapQuery } from '../query/tree/map-expression.ts'
import type { Frame, Query, WindowCall } from '../query/tree/query.ts'

/** Functions of a row's place, which ignore their frame. */
const placed: ReadonlySet<string> = new Set(['row_number', 'ntile', 'lag', 'lead'])
/** Functions of a row's place that give equal rows the same value. */
const ranked: ReadonlySet<string> = new Set(['rank', 'dense_rank', 'percent_rank', 'cume_dist'])
/** Functions and aggregates whose value depends on the order of the rows in their frame. */
const ordered: ReadonlySet<string> = new Set([
  'first_value',
  'last_value',
  'nth_value',
  'array_agg',
  'json_agg',
  'jsonb_agg',
  'jsonb_object_agg',
  'json_object_agg',
  'string_agg',
])

/**
 * Decides a window call's value for rows that are equal in its order. The result is 'as it is' if the value does
 * not depend on their order; or a frame of the same meaning, to be used after these rows are ordered among
 * themselves too; or undefined if such an order would change which rows are in its frame.
 */
export function decideWindow(
  call: WindowCall,
): 'as it is' | { readonly frame: Frame | undefined } | undefined {
  const { name } = call
  if (ranked.has(name)) return 'as it is'
  if (placed.has(name)) return { frame: undefined }
  const frame = call.frame ?? usualFrame
  const { mode, exclude } = frame
  const isWhole = holdsAll(frame, call.orderBy.length === 0)
  const excludesPeers = exclude === ' EXCLUDE GROUP' || exclude === ' EXCLUDE TIES'
  if (!ordered.has(name) && (mode !== 'ROWS' || isWhole)) return 'as it is'
  if (excludesPeers) return undefined
  if (mode === 'ROWS') return { frame }
  if (isWhole) return { frame: { mode: 'ROWS', ...wholeEnds, exclude } }
  return exclude === '' ? endValueFrame(name, frame) : undefined
}

/**
 * Finds a window call in the query whose value nothing decides, and describes it for the seller; undefined if there
 * is none.
 */
export function findUndecidedWindow(query: Query): string | undefined {
  let found: string | undefined
  mapQuery(query, (each) => {
    if (each.kind === 'window' && decideWindow(each) === undefined) found ??= wordsFor(each)
    return undefined
  })
  return found
}

const wholeEnds = { from: 'UNBOUNDED PRECEDING', to: 'UNBOUNDED FOLLOWING' } as const

/** The frame of a window that states none. */
const usualFrame: Frame = {
  mode: 'RANGE',
  from: 'UNBOUNDED PRECEDING',
  to: 'CURRENT ROW',
  exclude: '',
}

/**
 * Returns true if every row has all rows of its partition in its frame, exclusions aside; without an order all rows
 * are equal.
 */
function holdsAll({ mode, from, to }: Frame, isUnordered: boolean): boolean {
  const areAllPeers = isUnordered && mode !== 'ROWS'
  const begins = from === 'UNBOUNDED PRECEDING' || (areAllPeers && from === 'CURRENT ROW')
  const ends = to === 'UNBOUNDED FOLLOWING' || (areAllPeers && to === 'CURRENT ROW')
  return begins && ends
}

/** Returns the frame for the first row of all, or the last, which is the same wherever the frame's other end is. */
function endValueFrame(name: string, { from, to }: Frame): { readonly frame: Frame } | undefined {
  const isTo = (end: typeof to, direction: 'PRECEDING' | 'FOLLOWING') =>
    end === 'CURRENT ROW' || (typeof end !== 'string' && end.direction === direction)
  const ends = { mode: 'ROWS', exclude: '' } as const
  if (name === 'first_value' && from === 'UNBOUNDED PRECEDING' && isTo(to, 'FOLLOWING'))
    return { frame: { ...ends, from, to: 'CURRENT ROW' } }
  if (name === 'last_value' && to === 'UNBOUNDED FOLLOWING' && isTo(from, 'PRECEDING'))
    return { frame: { ...ends, from: 'CURRENT ROW', to } }
  return undefined
}

function wordsFor({ name, frame }: WindowCall): string {
  const { mode, exclude } = frame ?? usualFrame
  const what = frame === undefined ? 'the usual frame (RANGE up to the current row)' : mode
  const advice =
    exclude === ' EXCLUDE GROUP' || exclude === ' EXCLUDE TIES'
      ? 'leave out EXCLUDE'
      : 'say ROWS BETWEEN …'
  return `${name} over ${what}${exclude}, where the order of rows that are equal in the window's ORDER BY is open; ${advice}`
}
