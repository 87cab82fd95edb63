import type { Node, TypeCast, TypeName } from 'libpg-query'
import { castTo, makeConstant } from '../tree/make-expression.ts'
import type { Expression, ValueType } from '../tree/query.ts'
import { makeCall } from './read-call.ts'
import { resolveName } from './scope.ts'
import { listTexts, readWholeNumber, refuse, runAt, type SqlPlace } from './sql-reader.ts'

type ReadExpression = (node: Node | undefined, place: SqlPlace) => Expression

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
  const cast = runAt(place, start, () => castTo(value, type))
  if (!wholeTypes.has(name)) return rounded(cast, readScale(node.typeName, place, read), place)
  return cast.kind === 'constant' && cast.type === 'null'
    ? cast
    : makeCall('round', [cast], { place })
}

function findField(node: TypeCast, place: SqlPlace): Expression | undefined {
  const collection = listTexts(node.typeName?.names)
  const { arg } = node
  if (collection[0] === 'pg_catalog' || arg === undefined || !('ColumnRef' in arg)) return undefined
  const app = listTexts(arg.ColumnRef.fields)
  if (app.length !== 1 || !hasCollection([...app, ...collection], place)) return undefined
  return runAt(place, arg.ColumnRef.location, () =>
    resolveName([...app, ...collection], place.scope),
  )
}

function hasCollection([app, name, field]: readonly string[], place: SqlPlace): boolean {
  for (let scope = place.scope; ; scope = scope.outer) {
    if (scope.relations.some((each) => each.app === app && each.name === name))
      return field !== undefined
    if (scope.outer === undefined) return false
  }
}

function readType(typeName: TypeName | undefined, place: SqlPlace, location: number | undefined) {
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

/** Reads the decimals of numeric(10, 2); other sizes change nothing. */
function readScale(typeName: TypeName | undefined, place: SqlPlace, read: ReadExpression) {
  const [, scale] = typeName?.typmods ?? []
  return scale === undefined ? undefined : readWholeNumber(read(scale, place), 100)
}

function rounded(cast: Expression, digits: number | undefined, place: SqlPlace): Expression {
  if (cast.type !== 'number' || digits === undefined) return cast
  return makeCall('round', [cast, makeConstant('number', String(digits))], { place })
}
