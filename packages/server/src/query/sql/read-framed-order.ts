import { limits } from '@tollbase/contract/limits'
import type { Node, WindowDef } from 'libpg-query'
import { coerceTo } from '../tree/make-expression.ts'
import type { Frame, FrameEnd, Order, TypedConstant } from '../tree/query.ts'
import { isIntervalWithin } from '../tree/time-bounds.ts'
import { readFrame } from './read-frame.ts'
import { readOrder } from './read-order.ts'
import type { ReadExpression } from './sql-reader.ts'
import { readWholeNumber, refuse, runAt, type SqlPlace } from './sql-reader.ts'

/** Reads the order and the frame of a window, which have to fit each other. */
export function readFramedOrder(
  window: WindowDef,
  place: SqlPlace,
  read: ReadExpression,
): { readonly frame: Frame | undefined; readonly orderBy: readonly Order[] } {
  const { location } = window
  const frame = readFrame(window, {
    offset: (node) => {
      const rows = readWholeNumber(read(node, place), limits.offsetMax)
      if (rows === undefined)
        throw refuse(place, location, 'a frame whose offset is no whole number')
      return rows
    },
    distance: (node) => readDistance(node, { place, location }, read),
  })
  const orderBy = readOrder(window.orderClause, place, read)
  if (frame?.mode === 'GROUPS' && orderBy.length === 0)
    throw refuse(place, location, 'GROUPS in a window without ORDER BY')
  const [distance] = [frame?.from, frame?.to].flatMap((end) => findDistance(end))
  if (distance === undefined) return { frame, orderBy }
  const [order] = orderBy
  if (order === undefined || orderBy.length > 1)
    throw refuse(place, location, 'RANGE with an offset in a window without one ORDER BY')
  const { expression } = order
  const type = distance.type === 'interval' ? 'timestamp' : 'number'
  const measured = runAt(place, location, () => coerceTo(expression, type))
  return { frame, orderBy: Object.freeze([Object.freeze({ ...order, expression: measured })]) }
}

function findDistance(end: FrameEnd | undefined): readonly TypedConstant[] {
  return typeof end === 'object' && 'distance' in end ? [end.distance] : []
}

/** The longest interval with which no time that a query can have leaves PostgreSQL's calendar. */
const yearsMax = 1_500

function readDistance(
  node: Node | undefined,
  { place, location }: { readonly place: SqlPlace; readonly location: number | undefined },
  read: ReadExpression,
): TypedConstant {
  const given = read(node, place)
  const value = given.kind === 'constant' && given.value !== null ? given : undefined
  const isNumber = value?.type === 'number' && Number(value.value) >= 0
  const isInterval =
    value?.type === 'interval' &&
    !String(value.value).includes('-') &&
    isIntervalWithin(value, yearsMax)
  if (value === undefined || !(isNumber || isInterval))
    throw refuse(
      place,
      location,
      'RANGE with an offset that is no number from 0 and no interval of up to 1,500 years, written out',
    )
  return value
}
