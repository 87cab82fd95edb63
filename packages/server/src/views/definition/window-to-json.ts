import type { FuncCall, Node, WindowDef } from 'libpg-query'
import { assert } from '../../base/assert.ts'
import { isRecord } from '../../base/is-record.ts'
import { findWindow } from '../../query/sql/named-windows.ts'
import { placeArguments } from '../../query/sql/place-arguments.ts'
import { readFrame } from '../../query/sql/read-frame.ts'
import { listTexts } from '../../query/sql/sql-reader.ts'
import { functions } from '../../query/tree/functions/all-functions.ts'
import { makeConstant } from '../../query/tree/make-expression.ts'
import type { FrameEnd, TypedConstant } from '../../query/tree/query.ts'
import { isDirected } from './read-order.ts'
import { readCount, type TranslationContext, toNumberJson } from './translation-context.ts'
import type { Json } from './view-definition.ts'

/** Returns the JSON of a call of a function, an aggregate or a window function. */
export function toCallJson(node: FuncCall, given: TranslationContext): Json {
  const name = listTexts(node.funcname).at(-1)?.toLowerCase() ?? ''
  const placed = placeArguments(node.args ?? [], functions.get(name) ?? {}, name)
  const args = placed.map((each) => given.expression(each, given))
  const [only] = args
  const operand = node.agg_star ? '*' : only !== undefined && args.length === 1 ? only : args
  const order = (node.agg_order ?? []).map((each) => toOrderJson(each, given))
  return {
    [`$${name}`]: operand,
    ...(node.agg_distinct ? { distinct: true } : {}),
    ...(order.length === 0 ? {} : { order_by: order }),
    ...(node.agg_filter === undefined ? {} : { filter: given.expression(node.agg_filter, given) }),
    ...(node.over === undefined ? {} : { over: toWindowJson(node.over, given) }),
  }
}

/** Returns the JSON of one term of ORDER BY. */
export function toOrderJson(node: Node, given: TranslationContext): Json {
  assert('SortBy' in node && node.SortBy.node !== undefined, 'an order is of something')
  const { sortby_dir: direction, sortby_nulls: nulls } = node.SortBy
  const by = given.expression(node.SortBy.node, given)
  const isDescending = direction === 'SORTBY_DESC'
  const end =
    nulls === 'SORTBY_NULLS_FIRST' ? 'first' : nulls === 'SORTBY_NULLS_LAST' ? 'last' : undefined
  if (!isDescending && end === undefined && !isDirected(by)) return by
  return {
    by,
    ...(isDescending ? { direction: 'desc' } : {}),
    ...(end === undefined ? {} : { nulls: end }),
  }
}

/** Returns the JSON of a window; a named one is written out. */
function toWindowJson(over: WindowDef, given: TranslationContext): Json {
  const window = findWindow(over, given.windows, given.refuse)
  const { partitionClause: partition = [], orderClause: order = [] } = window
  const frame = readFrame(window, {
    offset: (node) => readCount(given, node, window.location) ?? 0,
    distance: (node) => toDistance(node, given),
  })
  return {
    ...(partition.length === 0
      ? {}
      : { partition_by: partition.map((each) => given.expression(each, given)) }),
    ...(order.length === 0 ? {} : { order_by: order.map((each) => toOrderJson(each, given)) }),
    ...(frame === undefined
      ? {}
      : {
          frame: {
            mode: frame.mode.toLowerCase(),
            from: jsonOfEnd(frame.from),
            to: jsonOfEnd(frame.to),
            ...(frame.exclude === ''
              ? {}
              : { exclude: frame.exclude.replace(' EXCLUDE ', '').toLowerCase() }),
          },
        }),
  }
}

function jsonOfEnd(end: FrameEnd): Json {
  if (typeof end === 'string') return end.toLowerCase()
  const direction = end.direction.toLowerCase()
  if ('rows' in end) return { [direction]: end.rows }
  const { type, value } = end.distance
  return { [direction]: type === 'interval' ? value : toNumberJson(String(value)) }
}

/** The distance of a RANGE that has been checked: a number, or an interval. */
function toDistance(node: Node | undefined, given: TranslationContext): TypedConstant {
  const json = node === undefined ? null : given.expression(node, given)
  if (typeof json === 'number') return makeConstant('number', String(json))
  const { $cast: of, $number: digits } = isRecord(json) ? json : {}
  if (typeof digits === 'string') return makeConstant('number', digits)
  const text = isRecord(of) ? of.$literal : undefined
  if (typeof text !== 'string')
    throw given.refuse(undefined, 'RANGE with an offset that is computed, in a view')
  return makeConstant('interval', text)
}
