import type { TypeCast, TypeName } from 'libpg-query'
import { castTo, makeConstant, markWhole, markZone, TypeProblem } from '../tree/make-expression.ts'
import type { Expression, ValueType } from '../tree/query.ts'
import { refuseArray } from './coerce-arguments.ts'
import { makeCall } from './read-call.ts'
import { readDocument } from './read-literal.ts'
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
export function readCast(node: TypeCast, place: SqlPlace, read: ReadExpression): Expression {
  const location = node.location !== undefined && node.location >= 0 ? node.location : undefined
  const field = findField(node, place)
  if (field !== undefined) return field
  const start = location ?? node.typeName?.location
  const { name, type } = readType(node.typeName, place, start)
  const value = read(node.arg, place)
  const { recordCalls, isStored } = place.reader
  if (type === 'json' && isComputedText(value) && !recordCalls && !isStored)
    throw refuse(place, start, jsonOfText)
  const cast = runAt(place, start, () => castAs(value, { name, type }))
  const sizes = readSizes(node.typeName, { place, location: start }, read)
  if (wholeTypes.has(name)) return markWhole(makeCall('round', [cast], { place }), true)
  if (name === 'float4' || name === 'real') return makeCall('real', [cast], { place })
  if (sizes.length > 0) return sized(cast, { name, sizes }, { place, location: start })
  return markWhole(cast, false)
}

const jsonOfText =
  'a text that is to become JSON, which PostgreSQL would read as JSON; only a literal is read so, and jsonb_build_array(a) -> 0 is a JSON text'

function isComputedText({ kind, type }: Expression): boolean {
  return type === 'text' && kind !== 'constant' && kind !== 'parameter'
}

/** Casts a value to a type; a literal that is cast to JSON is read as JSON, as in PostgreSQL. */
function castAs(value: Expression, { name, type }: NamedType): Expression {
  const isLiteral = value.kind === 'constant' && value.type === 'text'
  if (type === 'json' && isLiteral && typeof value.value === 'string')
    return makeConstant('json', readDocument(value.value))
  if (isLiteral && name !== 'timestamptz' && (type === 'timestamp' || type === 'date'))
    refuseOffset(String(value.value))
  if (type === 'text') refuseArray(value)
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
      `the type ${name}${typeName?.arrayBounds ? '[]' : ''}, which is not possible`,
    )
  return { name, type }
}

type CastPlace = { readonly place: SqlPlace; readonly location: number | undefined }

/** Reads the numbers in the brackets behind a type. */
function readSizes(
  typeName: TypeName | undefined,
  { place, location }: CastPlace,
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
  at: CastPlace,
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
