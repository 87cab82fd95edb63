import type { Frame, Query, WindowCall } from '../query/tree/query.ts'
import { mapQuery } from './map-expression.ts'

/** Functions of the place of a row, in which their frame has no part. */
const placed: ReadonlySet<string> = new Set(['row_number', 'ntile', 'lag', 'lead'])
/** The same, but of rows that are equal they say the same. */
const ranked: ReadonlySet<string> = new Set(['rank', 'dense_rank'])
/** Functions and aggregates whose value depends on the order of the rows of their frame. */
const ordered: ReadonlySet<string> = new Set([
  'first_value',
  'last_value',
  'nth_value',
  'array_agg',
  'json_agg',
  'jsonb_agg',
  'string_agg',
])

/**
 * How the value of a window call is decided where rows are equal in its order: as it is; by an order of these rows
 * among themselves after its own, with a frame that has the same meaning then; or not at all (undefined), as an order
 * would change which rows are in its frame.
 */
export function decidedWindow(
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

/** A window call in the query whose value nothing decides, in words for the seller; undefined where there is none. */
export function undecidedWindow(query: Query): string | undefined {
  let found: string | undefined
  mapQuery(query, (each) => {
    if (each.kind === 'window' && decidedWindow(each) === undefined) found ??= wordsFor(each)
    return undefined
  })
  return found
}

const wholeEnds = { from: 'UNBOUNDED PRECEDING', to: 'UNBOUNDED FOLLOWING' } as const

/** What a window without a frame has. */
const usualFrame: Frame = {
  mode: 'RANGE',
  from: 'UNBOUNDED PRECEDING',
  to: 'CURRENT ROW',
  exclude: '',
}

/** Whether every row has all rows of its partition in its frame, exclusions aside; without an order all are equal. */
function holdsAll({ mode, from, to }: Frame, isUnordered: boolean): boolean {
  const areAllPeers = isUnordered && mode !== 'ROWS'
  const begins = from === 'UNBOUNDED PRECEDING' || (areAllPeers && from === 'CURRENT ROW')
  const ends = to === 'UNBOUNDED FOLLOWING' || (areAllPeers && to === 'CURRENT ROW')
  return begins && ends
}

/** The first row of all, or the last, is the same wherever else the frame ends. */
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
