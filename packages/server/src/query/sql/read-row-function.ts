import type { FuncCall, Node, RangeFunction } from 'libpg-query'
import { findSuggestion, formatSuggestion } from '../../base/known-members.ts'
import {
  chooseRowFunction,
  listRowFunctions,
  type RowFunctionDefinition,
  rowFunctions,
} from '../tree/functions/row.ts'
import { areWhole, findItems, unifyTypes } from '../tree/make-expression.ts'
import type { Expression, OutputColumn, Relation, Typed } from '../tree/query.ts'
import { coerceArguments } from './coerce-arguments.ts'
import { describeConstruct } from './describe-construct.ts'
import { otherRowFunctions } from './other-dialects.ts'
import { toTyped } from './read-columns.ts'
import { findLocation, readExpression } from './read-expression.ts'
import { findList } from './read-in.ts'
import type { ScopeRelation } from './scope.ts'
import { findFirstLocation, listTexts, refuse, runAt, type SqlPlace } from './sql-reader.ts'

type FunctionRelation = Extract<Relation, { kind: 'function' }>

/** Reads a function that gives rows in FROM, `unnest(o.tags) WITH ORDINALITY AS t (tag, place)`. */
export function readRowFunction(
  node: RangeFunction,
  place: SqlPlace,
): { readonly relation: FunctionRelation; readonly named: ScopeRelation } {
  const call = readFunctionNode(node, place)
  const { location } = call
  const asked = listTexts(call.funcname)
    .filter((part) => part !== 'pg_catalog')
    .join('.')
    .toLowerCase()
  const known = listRowFunctions()
  if (!known.includes(asked)) {
    const way = otherRowFunctions.get(asked)
    const hint =
      way === undefined ? formatSuggestion(findSuggestion(asked, known)) : `; write ${way}`
    throw refuse(place, location, `the function ${asked} in FROM, which does not exist here${hint}`)
  }
  place.reader.spendUse(location)
  const inside: SqlPlace = {
    ...place,
    location,
    without: { aggregates: 'a function in FROM', windows: 'a function in FROM' },
  }
  const { name, args, results } = runAt(inside, location, () =>
    asked === 'unnest'
      ? readUnnest(call, inside)
      : readArguments(
          asked,
          (call.args ?? []).map((each) => readExpression(each, inside)),
          inside,
        ),
  )
  const id = place.reader.nextId()
  const hasOrdinality = node.ordinality === true
  const alias = node.alias?.aliasname
  const { column = alias ?? asked, second } = rowFunctions.get(asked) ?? {}
  const names = [column, ...(second === undefined ? [] : [second.name])]
  const columns: readonly OutputColumn[] = [
    ...results.map((result, at) => toOutput(names[at] ?? asked, result)),
    ...(hasOrdinality ? [toOutput('ordinality', { type: 'number', isWhole: true })] : []),
  ]
  return {
    relation: Object.freeze({
      kind: 'function',
      id,
      name,
      arguments: Object.freeze([...args]),
      results,
      hasOrdinality,
    }),
    named: {
      id,
      name: alias ?? asked,
      app: undefined,
      columns,
      isNamed: true,
      isScalar: columns.length === 1,
      hasRecord: false,
      types: undefined,
    },
  }
}

function toOutput(name: string, typed: Typed): OutputColumn {
  return { ...typed, name, path: [name] }
}

/** The parts of a call that mean something in FROM. */
const callParts: ReadonlySet<string> = new Set(['funcname', 'args', 'funcformat', 'location'])

function readFunctionNode(node: RangeFunction, place: SqlPlace): FuncCall {
  const [list, second] = node.functions ?? []
  const call = list !== undefined && 'List' in list ? list.List.items?.[0] : undefined
  const location = findFirstLocation(node.functions)
  if (node.is_rowsfrom || second !== undefined)
    throw refuse(place, location, 'ROWS FROM, which is not possible')
  if (node.coldeflist !== undefined)
    throw refuse(
      place,
      location,
      "names of columns with types behind a function; write jsonb_array_elements(list) AS item, and (item ->> 'name')::text for a column",
    )
  if (call === undefined || !('FuncCall' in call))
    throw refuse(place, location, `${describeConstruct(call)} in FROM, which is not possible`)
  const foreign = Object.keys(call.FuncCall).find((part) => !callParts.has(part))
  if (foreign !== undefined)
    throw refuse(place, location, 'a function in FROM with more than its arguments')
  return call.FuncCall
}

type ReadCall = {
  readonly name: string
  readonly args: readonly Expression[]
  readonly results: readonly Typed[]
}

function readArguments(asked: string, given: readonly Expression[], place: SqlPlace): ReadCall {
  const name = chooseRowFunction(asked, given)
  const definition = rowFunctions.get(name)
  if (definition === undefined) throw new Error(`there is no row of ${name}`)
  const args = coerceArguments(given, definition, {
    name: asked,
    place,
    location: place.location,
  })
  const problem = definition.check?.(args)
  if (problem !== undefined) throw refuse(place, place.location, problem)
  return { name, args, results: findResults(definition, args) }
}

function findResults(
  { result, whole, zone, second }: RowFunctionDefinition,
  args: readonly Expression[],
): readonly Typed[] {
  const [first] = args
  const type = result === 'same' ? (first?.type ?? 'text') : result
  const isWhole = whole === 'same' && areWhole(args)
  const own = {
    type,
    ...(isWhole && { isWhole }),
    ...(zone === 'same' && first?.zone !== undefined && { zone: first.zone }),
  }
  return second === undefined ? [own] : [own, { type: second.result }]
}

/** Reads unnest of ARRAY[…], of a list of parameters, or of a JSON list. */
function readUnnest({ args = [], location }: FuncCall, place: SqlPlace): ReadCall {
  const [only, second] = args
  if (only === undefined || second !== undefined)
    throw refuse(place, location, `unnest of ${args.length} arguments; it takes 1`)
  const values = readItems(only, place)
  if (values !== undefined) {
    if (values.length === 0) return readArguments('jsonb_array_elements', [emptyList], place)
    const items = unifyTypes(values).map(toTyped)
    return {
      name: 'unnest',
      args: items,
      results: [{ type: items[0]?.type ?? 'text', ...(areWhole(items) && { isWhole: true }) }],
    }
  }
  const list = readExpression(only, place)
  const isOfTexts = findItems(list)?.type === 'text'
  if (list.type !== 'json' && list.type !== 'null')
    throw refuse(place, location, 'unnest of something that is no list')
  return readArguments(
    isOfTexts ? 'jsonb_array_elements_text' : 'jsonb_array_elements',
    [list],
    place,
  )
}

const emptyList: Expression = Object.freeze({ kind: 'constant', type: 'json', value: '[]' })

/** Reads the values of ARRAY[…] or of a parameter that is a list; undefined for anything else. */
function readItems(node: Node, place: SqlPlace): readonly Expression[] | undefined {
  if ('A_ArrayExpr' in node)
    return (node.A_ArrayExpr.elements ?? []).map((each) => readExpression(each, place))
  const list = findList(node, place)
  if (list === undefined) return undefined
  if ('values' in list) return list.values
  throw refuse(place, findLocation(node), 'unnest of a list that each call of the query gives')
}
