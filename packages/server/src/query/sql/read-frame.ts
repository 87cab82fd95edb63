import type { Node, WindowDef } from 'libpg-query'
import type { Frame, FrameEnd, TypedConstant } from '../tree/query.ts'

/** Bits of frameOptions (PostgreSQL's parsenodes.h, FRAMEOPTION_...). */
const bits = {
  nonDefault: 0x1,
  range: 0x2,
  rows: 0x4,
  groups: 0x8,
  startUnboundedPreceding: 0x20,
  endUnboundedFollowing: 0x100,
  startCurrentRow: 0x200,
  endCurrentRow: 0x400,
  startOffsetPreceding: 0x800,
  endOffsetPreceding: 0x1000,
  startOffsetFollowing: 0x2000,
  endOffsetFollowing: 0x4000,
  excludeCurrentRow: 0x8000,
  excludeGroup: 0x10000,
  excludeTies: 0x20000,
} as const

/** Reads the frame of a window; undefined for the default one. */
export function readFrame(
  window: WindowDef,
  tools: {
    readonly offset: (node: Node | undefined) => number
    readonly distance: (node: Node | undefined) => TypedConstant
  },
): Frame | undefined {
  const options = window.frameOptions ?? 0
  const has = (bit: number) => (options & bit) !== 0
  if (!has(bits.nonDefault)) return undefined
  const mode = has(bits.rows) ? 'ROWS' : has(bits.groups) ? 'GROUPS' : 'RANGE'
  const end = (node: Node | undefined, preceding: boolean): FrameEnd => {
    const direction = preceding ? 'PRECEDING' : 'FOLLOWING'
    return mode === 'RANGE'
      ? { distance: tools.distance(node), direction }
      : { rows: tools.offset(node), direction }
  }
  const from: FrameEnd = has(bits.startUnboundedPreceding)
    ? 'UNBOUNDED PRECEDING'
    : has(bits.startCurrentRow)
      ? 'CURRENT ROW'
      : end(window.startOffset, has(bits.startOffsetPreceding))
  const to: FrameEnd = has(bits.endUnboundedFollowing)
    ? 'UNBOUNDED FOLLOWING'
    : has(bits.endCurrentRow)
      ? 'CURRENT ROW'
      : end(window.endOffset, has(bits.endOffsetPreceding))
  const exclude = has(bits.excludeCurrentRow)
    ? ' EXCLUDE CURRENT ROW'
    : has(bits.excludeGroup)
      ? ' EXCLUDE GROUP'
      : has(bits.excludeTies)
        ? ' EXCLUDE TIES'
        : ''
  return Object.freeze({ mode, from, to, exclude })
}
