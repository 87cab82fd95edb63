import type { Node, TypeCast, TypeName } from 'libpg-query'
import {
  castTo,
  makeConstant,
  makeDocument,
  markHeld,
  markWhole,
  markZone,
  TypeProblem,
} from '../tree/make-expression.ts'
import type { Expression, ValueType } from '../tree/query.ts'
import { type CallPlace, refuseArray } from './coerce-arguments.ts'
import { expandInterval } from './expand-interval.ts'
import { otherTypes } from './other-dialects.ts'
import { makeArray, makeCall } from './read-call.ts'
import { readName } from './read-name.ts'
import type { ReadExpression } from './sql-reader.ts'
import { listTexts, readWholeNumber, refuse, runAt, type SqlPlace } from './sql-reader.ts'

const wholeTypes: ReadonlySet<string> = new Set(
  'int2 int4 int8 int integer bigint smallint'.split(' '),
)

/** The types that a value can be cast to, by name. The documentation is made from it. */
export const castTypes: ReadonlyMap<string, ValueType> = new Map<string, ValueType>([
  ...(['numeric', 'decimal', 'float4', 'float8', 'real'] as const).map(
    (name) => [name, 'number'] as const,
  ),
  ...[...wholeTypes].map((name) => [name, 'number'] as const),
  ...(['text', 'varchar', 'bpchar'] as const).map((name) => [name, 'text'] as const),
  ['bool', 'boolean'],
  ['boolean', 'boolean'],
  ['timestamp', 'timestamp'],
  ['timestamptz', 'timestamp'],
  ['date', 'date'],
  ['interval', 'interval'],
  ['json', 'json'],
  ['jsonb', 'json'],
])

/** Reads a cast; or a field, as `app::collection.field` reads like a cast of `app` to the type `collection.field`. */
export function readCast(given: TypeCast, place: SqlPlace, read: ReadExpression): Expression {
  const location = given.location !== undefined && given.location >= 0 ? given.location : undefined
  const at = location ?? given.typeName?.location
  const node = runAt(place, at, () => expandInterval(given)) ?? given
  const array = readArrayCast(node, { place, location: at }, read)
  if (array !== undefined) return array
  const field = findField(node, place)
  if (field !== undefined) return field
  const start = location ?? node.typeName?.location
  const { name, type } = readType(node.typeName, place, start)
  const value = read(node.arg, place)
  const { recordCalls, isStored } = place.reader
  if (type === 'json' && isComputedText(value) && !recordCalls && !isStored)
    throw refuse(place, start, jsonOfText)
  const cast = runAt(place, start, () => {
    if (type === 'text' && !isStored) refuseArray(value)
    return castAs(value, { name, type })
  })
  if (cast.type === 'json')
    return cast.held === 'document' ? cast : makeCall('jsonb', [cast], { place })
  const sizes = readSizes(node.typeName, { place, location: start }, read)
  if (wholeTypes.has(name)) return markWhole(makeCall('round', [cast], { place }), true)
  if (name === 'float4' || name === 'real') return makeCall('real', [cast], { place })
  if (sizes.length > 0) return sized(cast, { name, sizes }, { place, location: start })
  return markWhole(cast, false)
}

/** Reads `ARRAY[…]::int[]`, whose elements are cast, or `NULL::int[]`; undefined for anything else. */
function readArrayCast(
  { arg, typeName, ...node }: TypeCast,
  at: CallPlace,
  read: ReadExpression,
): Expression | undefined {
  if (typeName?.arrayBounds?.length !== 1 || arg === undefined) return undefined
  const { arrayBounds: _, ...own } = typeName
  const cast = (each: Node) => readCast({ ...node, arg: each, typeName: own }, at.place, read)
  const like = cast({ A_Const: { isnull: true } })
  if ('A_ArrayExpr' in arg) return makeArray((arg.A_ArrayExpr.elements ?? []).map(cast), at, like)
  const isNull = 'A_Const' in arg && arg.A_Const.isnull === true
  return isNull ? markHeld(makeConstant('json', null), makeArray([], at, like).held) : undefined
}

const jsonOfText =
  'a text that is to become JSON, which PostgreSQL would read as JSON; only a literal is read so, and to_jsonb(a) is a JSON text'

function isComputedText({ kind, type }: Expression): boolean {
  return type === 'text' && kind !== 'constant' && kind !== 'parameter'
}

/** Casts a value to a type; a literal that is cast to JSON is read as JSON, as in PostgreSQL. */
function castAs(value: Expression, { name, type }: NamedType): Expression {
  const isLiteral = value.kind === 'constant' && value.type === 'text'
  if (type === 'json' && isLiteral && typeof value.value === 'string')
    return makeDocument(value.value)
  if (isLiteral && name !== 'timestamptz' && (type === 'timestamp' || type === 'date'))
    refuseOffset(String(value.value))
  const cast = castTo(value, type)
  if (type !== 'timestamp') return cast
  return markZone(cast, name === 'timestamptz' ? 'moment' : 'local')
}

/** PostgreSQL leaves the offset out without a word, so the time would be another one than was written. */
function refuseOffset(text: string): void {
  if (!/:\d.*[+-](?!00(:?00)?$)\d\d(:?\d\d)?$/.test(text)) return
  throw new TypeProblem(
    `'${text.slice(0, 40)}' as a time without a zone, which would lose its offset; write timestamptz '…'`,
  )
}

type NamedType = { readonly name: string; readonly type: ValueType }

function findField(node: TypeCast, place: SqlPlace): Expression | undefined {
  const collection = listTexts(node.typeName?.names)
  const { arg } = node
  if (collection[0] === 'pg_catalog' || arg === undefined || !('ColumnRef' in arg)) return undefined
  const app = listTexts(arg.ColumnRef.fields)
  if (app.length !== 1 || !hasCollection([...app, ...collection], place)) return undefined
  return readName([...app, ...collection], place, arg.ColumnRef.location)
}

function hasCollection([app, name, field]: readonly string[], place: SqlPlace): boolean {
  for (let scope = place.scope; ; scope = scope.outer) {
    if (scope.relations.some((each) => each.app === app && each.name === name))
      return field !== undefined
    if (scope.outer === undefined) return false
  }
}

function readType(
  typeName: TypeName | undefined,
  place: SqlPlace,
  location: number | undefined,
): NamedType {
  const names = listTexts(typeName?.names)
  const name = (names[0] === 'pg_catalog' ? names.slice(1) : names).join('.').toLowerCase()
  const type = castTypes.get(name)
  if (type === undefined || typeName?.arrayBounds !== undefined || typeName?.setof === true)
    throw refuse(
      place,
      location,
      `the type ${name}${typeName?.arrayBounds ? '[]' : ''}, which is not possible${describeOther(name)}`,
    )
  return { name, type }
}

function describeOther(name: string): string {
  const other = otherTypes.get(name)
  return other === undefined ? '' : `; write ${other}`
}

/** Reads the numbers in the brackets behind a type. */
function readSizes(
  typeName: TypeName | undefined,
  { place, location }: CallPlace,
  read: ReadExpression,
): readonly number[] {
  return (typeName?.typmods ?? []).map((each) => {
    const size = readWholeNumber(read(each, place), sizeMax)
    if (size === undefined)
      throw refuse(place, location, `a size of a type that is no whole number up to ${sizeMax}`)
    return size
  })
}

/** The most that PostgreSQL takes, of varchar(n). */
const sizeMax = 10_485_760

/** Cuts or rounds a value to the size of its type, as PostgreSQL's casts do. */
function sized(
  cast: Expression,
  { name, sizes }: { readonly name: string; readonly sizes: readonly number[] },
  at: CallPlace,
): Expression {
  const [first = 0, scale = 0] = sizes
  if (cast.type === 'number')
    return makeCall('round', [cast, makeConstant('number', String(scale))], at)
  if (name === 'varchar' || name === 'bpchar') {
    const length = makeConstant('number', String(first))
    if (name === 'varchar') return makeCall('left', [cast, length], at)
    return makeCall('char', [cast, length], at)
  }
  throw refuse(
    at.place,
    at.location,
    `a size or unit of the type ${name}, which is not possible; cut a time with date_trunc`,
  )
}
