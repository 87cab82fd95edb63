import {
  argumentsMax,
  type FunctionDefinition,
  type ParameterKind,
} from '../tree/functions/function-definition.ts'
import {
  castTo,
  coerceTo,
  findItems,
  isTextLiteral,
  makeConstant,
  makeDocument,
  removePadding,
  TypeProblem,
  unifyTypes,
} from '../tree/make-expression.ts'
import { type Expression, nothing } from '../tree/query.ts'
import { readLiteral } from './read-literal.ts'
import { refuse, type SqlPlace } from './sql-reader.ts'

export type CallPlace = { readonly place: SqlPlace; readonly location?: number | undefined }
type Call = CallPlace & { readonly name: string }

/** Converts the arguments of a call to the types that its function takes, or refuses them. */
export function coerceArguments(
  args: readonly Expression[],
  definition: Pick<FunctionDefinition, 'parameters' | 'optional' | 'variadic'>,
  call: Call,
): readonly Expression[] {
  const { parameters, optional = 0, variadic = false } = definition
  const { name, place, location } = call
  const least = parameters.length - optional
  if (args.length < least || (!variadic && args.length > parameters.length)) {
    const most = variadic ? ' or more' : optional > 0 ? ` to ${parameters.length}` : ''
    throw refuse(place, location, `${name} of ${args.length} arguments; it takes ${least}${most}`)
  }
  if (args.length > argumentsMax)
    throw refuse(place, location, `${name} of more than ${argumentsMax} arguments`)
  const kinds = args.map((_, index) => getKind(parameters, index, variadic))
  const same = unifyTypes(args.filter((_, index) => kinds[index] === 'same'))
  let next = 0
  return args.map((arg, index) => {
    const kind = kinds[index] ?? 'same'
    return kind === 'same' ? (same[next++] ?? nothing) : coerceOne(arg, kind, call)
  })
}

/** Names and values alternate where the last two kinds of a variadic function differ: the last alone repeats. */
function getKind(parameters: readonly ParameterKind[], index: number, variadic: boolean) {
  const [first, last] = parameters.slice(-2)
  const isPair = variadic && first === 'printable' && last === 'json'
  if (isPair) return index % 2 === 0 ? first : last
  return parameters[Math.min(index, parameters.length - 1)] ?? 'same'
}

function coerceOne(arg: Expression, kind: Exclude<ParameterKind, 'same'>, call: Call): Expression {
  switch (kind) {
    case 'printable':
      // Definitions that were stored before arrays were told from lists wrote them as JSON.
      if (!call.place.reader.isStored) refuseArray(arg)
      return printsPlainly.has(call.name) ? printPlainly(arg) : castTo(arg, 'text')
    case 'time':
      return arg.type === 'interval' ? arg : coerceTo(arg, 'timestamp')
    case 'amount':
      return arg.type === 'interval' ? arg : coerceTo(arg, 'number')
    case 'unit':
      return arg
    case 'json':
      return (arg.kind === 'constant' || arg.kind === 'parameter') && arg.type === 'text'
        ? castTo(arg, 'json')
        : coerceTo(arg, 'json')
    case 'document':
      return coerceDocument(arg, call)
    case 'read json':
      return isTextLiteral(arg) ? makeDocument(arg.value) : coerceOne(arg, 'json', call)
    case 'number':
    case 'text':
    case 'boolean':
    case 'timestamp':
    case 'date':
    case 'interval':
      return coerceTo(removePadding(arg), kind)
    default: {
      const text = arg.kind === 'constant' && arg.type === 'text' ? arg.value : undefined
      if (typeof text !== 'string')
        throw refuse(call.place, call.location, `${call.name} with a ${kind} that is no literal`)
      return makeConstant('text', readLiteral(text, kind))
    }
  }
}

/** Refuses an array, which is a list here, where PostgreSQL would write it as a text. */
export function refuseArray(value: Expression): void {
  if (findItems(value) === undefined) return
  throw new TypeProblem(
    'an array that is to become a text; write (array)[1] for one of its elements, string_agg for texts that are gathered, or to_jsonb(array) for JSON',
  )
}

/** Functions that PostgreSQL gives values as they are printed, not cast. */
const printsPlainly: ReadonlySet<string> = new Set(['concat', 'concat_ws', 'format'])

/** A text keeps the blanks of a char(n), and a truth value is t or f. */
function printPlainly(arg: Expression): Expression {
  if (arg.type === 'text') return arg
  if (arg.type !== 'boolean') return castTo(arg, 'text')
  const branch = (kind: 'is-true' | 'is-false', word: string) =>
    Object.freeze({
      when: Object.freeze({ kind, type: 'boolean', argument: arg } as const),
      value: makeConstant('text', word),
    })
  return Object.freeze({
    kind: 'case',
    type: 'text',
    branches: Object.freeze([branch('is-true', 't'), branch('is-false', 'f')]),
    otherwise: undefined,
  })
}

/** A literal is JSON, as in PostgreSQL; a text that is given when the statement runs could be none. */
function coerceDocument(arg: Expression, { name, place, location }: Call): Expression {
  if (isTextLiteral(arg)) return makeDocument(arg.value)
  if (arg.type !== 'text') return coerceTo(arg, 'json')
  throw refuse(
    place,
    location,
    `a text beside ${name}; write a literal of JSON, or to_jsonb(text) for a JSON text`,
  )
}
