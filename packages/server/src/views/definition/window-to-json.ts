import type { FuncCall, Node, WindowDef } from 'libpg-query'
import { assert } from '../../base/assert.ts'
import { readFrame } from '../../query/sql/read-frame.ts'
import { textsOf } from '../../query/sql/sql-reader.ts'
import type { FrameEnd } from '../../query/tree/query.ts'
import { looksDirected } from './read-order.ts'
import { countIn, type Given } from './translation-context.ts'
import type { Json } from './view-definition.ts'

/** A call of a function, an aggregate or a window function. */
export function jsonOfCall(node: FuncCall, given: Given): Json {
  const name = textsOf(node.funcname).at(-1)?.toLowerCase()
  const args = (node.args ?? []).map((each) => given.expression(each, given))
  const [only] = args
  const operand = node.agg_star ? '*' : only !== undefined && args.length === 1 ? only : args
  const order = (node.agg_order ?? []).map((each) => jsonOfOrder(each, given))
  return {
    [`$${name}`]: operand,
    ...(node.agg_distinct ? { distinct: true } : {}),
    ...(order.length === 0 ? {} : { order_by: order }),
    ...(node.agg_filter === undefined ? {} : { filter: given.expression(node.agg_filter, given) }),
    ...(node.over === undefined ? {} : { over: jsonOfWindow(node.over, given) }),
  }
}

/** One term of ORDER BY. */
export function jsonOfOrder(node: Node, given: Given): Json {
  assert('SortBy' in node && node.SortBy.node !== undefined, 'an order is of something')
  const { sortby_dir: direction, sortby_nulls: nulls } = node.SortBy
  const by = given.expression(node.SortBy.node, given)
  const isDescending = direction === 'SORTBY_DESC'
  const end =
    nulls === 'SORTBY_NULLS_FIRST' ? 'first' : nulls === 'SORTBY_NULLS_LAST' ? 'last' : undefined
  if (!isDescending && end === undefined && !looksDirected(by)) return by
  return {
    by,
    ...(isDescending ? { direction: 'desc' } : {}),
    ...(end === undefined ? {} : { nulls: end }),
  }
}

/** A window; one with a name is written out. */
function jsonOfWindow(over: WindowDef, given: Given): Json {
  const { name, refname } = over
  const base =
    name === undefined && refname === undefined ? over : given.windows.get(name ?? refname ?? '')
  assert(base !== undefined, 'a named window is defined')
  const partition = base.partitionClause ?? over.partitionClause ?? []
  const order = base.orderClause ?? over.orderClause ?? []
  const framed = name === undefined ? over : base
  const frame = readFrame(framed, {
    offset: (node) => countIn(given, node, framed.location) ?? 0,
    refuse: (problem) => given.refuse(framed.location, problem),
  })
  return {
    ...(partition.length === 0
      ? {}
      : { partition_by: partition.map((each) => given.expression(each, given)) }),
    ...(order.length === 0 ? {} : { order_by: order.map((each) => jsonOfOrder(each, given)) }),
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
  return typeof end === 'string' ? end.toLowerCase() : { [end.direction.toLowerCase()]: end.rows }
}
