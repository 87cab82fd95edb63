import type { FuncCall, Node } from 'libpg-query'
import { type Condition, listConditionPaths, listDataSetNames } from '../condition.ts'
import { parseFind, parseResolve } from '../find.ts'
import { coerceTo, makeConstant } from '../tree/make-expression.ts'
import type { Expression } from '../tree/query.ts'
import { resolveRelation, type ScopeRelation } from './scope.ts'
import { listTexts, refuse, runAt, type SqlPlace } from './sql-reader.ts'

/**
 * Functions for what a view's definition can state and SQL cannot: the conditions of a request's `find`, a whole
 * record, its place in the order of storing. Their SQL is printed from the JSON of a definition, never sent.
 */
export const recordCalls = {
  /** `(relation, find as JSON text [, the relation that references compare with])` */
  find: 'tollbase_find',
  record: 'tollbase_record',
  place: 'tollbase_place',
} as const

/** Reads the call's expression; undefined for any other function. */
export function readRecordCall(
  name: string,
  node: FuncCall,
  place: SqlPlace,
): Expression | undefined {
  const { location, args = [] } = node
  const relation = (arg: Node | undefined) =>
    runAt(place, location, () =>
      resolveRelation(
        arg !== undefined && 'ColumnRef' in arg ? listTexts(arg.ColumnRef.fields) : [],
        place.scope,
      ),
    )
  const [of, text, parent] = args
  switch (name) {
    case recordCalls.find: {
      const condition = parseRecordCondition(text, parent === undefined ? parseFind : parseResolve)
      if (listDataSetNames(condition).length > 0)
        throw refuse(
          place,
          location,
          'a data set, but a view may change with nothing but its sources',
        )
      const other = parent === undefined ? undefined : relation(parent)
      if (other !== undefined && !other.hasRecord)
        throw refuse(
          place,
          location,
          `$data of ${other.name}, whose rows are no records; write $eq`,
        )
      return conditionOn(relation(of), condition, other)
    }
    case recordCalls.record:
    case recordCalls.place: {
      const { id, name: called, model, hasRecord } = relation(of)
      const isRecord = name === recordCalls.record
      if (isRecord ? !hasRecord : model === undefined)
        throw refuse(
          place,
          location,
          isRecord
            ? `records of ${called}, which has columns; name one`
            : `an order of storing, which ${called} has not; give order_by`,
        )
      return isRecord
        ? Object.freeze({ kind: 'record', type: 'json', relation: id })
        : Object.freeze({ kind: 'leaf', type: 'number', relation: id })
    }
    default:
      return undefined
  }
}

function parseRecordCondition(text: Node | undefined, parse: typeof parseResolve): Condition {
  const json = text !== undefined && 'A_Const' in text ? text.A_Const.sval?.sval : undefined
  return parse(JSON.parse(json ?? '{}'), '')
}

function conditionOn(
  relation: ScopeRelation,
  condition: Condition,
  parent: ScopeRelation | undefined,
): Expression {
  const made: Expression = {
    kind: 'condition',
    type: 'boolean',
    relation: relation.id,
    model: relation.model,
    condition,
    parent: parent?.id,
  }
  return Object.freeze(
    relation.hasRecord ? made : { ...made, record: buildRecord(relation, condition) },
  )
}

/** Builds one object from the columns that the condition uses. */
function buildRecord(relation: ScopeRelation, condition: Condition): Expression {
  const used = new Set(listConditionPaths(condition).map((path) => path.split('.')[0]))
  const members = relation.columns.flatMap(({ name, type }, column) => {
    if (!used.has(name)) return []
    const value: Expression = { kind: 'column', type, relation: relation.id, column }
    return [makeConstant('text', name), Object.freeze(coerceTo(value, 'json'))]
  })
  return Object.freeze({
    kind: 'call',
    type: 'json',
    name: '{}',
    arguments: Object.freeze(members),
  })
}
