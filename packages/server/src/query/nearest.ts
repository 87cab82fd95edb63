import { limits } from '@tollbase/contract/limits'
import { makeInvalidFault } from '../base/fault.ts'
import { isRecord } from '../base/is-record.ts'
import type { FieldPath } from './condition.ts'
import { parseFieldPath } from './field-path.ts'
import { printValueExpression } from './index-key.ts'
import type { Parameters } from './sql-text.ts'
import { type Measure, printDistance, printNumbers, vectorDigitsMax } from './vector.ts'

/** A list in the order of how near a field, a list of numbers, is to another list; frozen. */
export type Nearest = {
  readonly path: FieldPath
  readonly to: readonly number[]
  readonly measure: Measure
  /** The member of each record that gets its distance. */
  readonly as: string | undefined
  /** True if an index may choose the records, and leave some of the nearest out. */
  readonly approximate: boolean
}

const measures: ReadonlyMap<unknown, Measure> = new Map<unknown, Measure>([
  [undefined, 'cosine'],
  [null, 'cosine'],
  ['cosine', 'cosine'],
  ['l2', 'l2'],
  ['inner_product', 'inner_product'],
])

/** Finds a measure by its name; cosine where none is given. */
export function findMeasure(sent: unknown): Measure | undefined {
  return measures.get(sent)
}

/** Parses the `nearest` of a request; throws a 400 that names the place. */
export function parseNearest(sent: unknown): Nearest | undefined {
  if (sent === undefined || sent === null) return undefined
  if (!isRecord(sent)) throw makeInvalidFault('/nearest', 'must be an object with field and to')
  const { field, as, approximate = null } = sent
  const measure = findMeasure(sent.measure)
  if (typeof field !== 'string')
    throw makeInvalidFault('/nearest/field', 'must be the name of a field')
  if (measure === undefined)
    throw makeInvalidFault('/nearest/measure', 'must be cosine, l2 or inner_product')
  if (as !== undefined && as !== null && (typeof as !== 'string' || !/^\w{1,64}$/.test(as)))
    throw makeInvalidFault('/nearest/as', 'must be 1 to 64 letters, digits and _')
  if (approximate !== null && typeof approximate !== 'boolean')
    throw makeInvalidFault('/nearest/approximate', 'must be true or false')
  return Object.freeze({
    path: parseFieldPath(field, '/nearest/field'),
    to: parseNumbers(sent.to),
    measure,
    as: typeof as === 'string' ? as : undefined,
    approximate: approximate === true,
  })
}

function parseNumbers(sent: unknown): readonly number[] {
  const list: readonly unknown[] = Array.isArray(sent) ? sent : []
  const most = 10 ** vectorDigitsMax
  const numbers = list.filter((each) => typeof each === 'number')
  const areWithin = numbers.every(
    (each) => each === 0 || (Math.abs(each) < most && Math.abs(each) > 1 / most),
  )
  if (numbers.length === 0 || numbers.length < list.length || !areWithin)
    throw makeInvalidFault(
      '/nearest/to',
      `must be a list of numbers, each 0 or of less than ${vectorDigitsMax} digits on either side of the point`,
    )
  if (numbers.length > limits.vectorNumbersMax)
    throw makeInvalidFault('/nearest/to', `has more than ${limits.vectorNumbersMax} numbers`)
  return Object.freeze(numbers)
}

/** Prints the number by which rows are sorted: the distance, and of inner products the negative one. */
export function printNearness(
  { path, to, measure }: Nearest,
  { record, parameters }: { readonly record: string; readonly parameters: Parameters },
): string {
  const numbers = printNumbers(printValueExpression(path, record))
  const distance = printDistance(measure, numbers, parameters.add(to, 'float8[]'))
  return measure === 'inner_product' ? `- ${distance}` : distance
}
