import { requirePresent } from '../base/assert.ts'
import type { FieldPath, ReferenceRelation } from './condition.ts'
import { printKeyExpression, printTextExpression, printValueExpression } from './index-key.ts'

type Field = {
  readonly key: string
  readonly value: string
  readonly text: string
  readonly parent?: string | undefined
}

/**
 * Compiles a comparison of a field with one of the record joined to. Equality and membership compare keys, so that
 * an index serves them and a join can hash; the values decide.
 */
export function compileReference(
  condition: { readonly relation: ReferenceRelation; readonly to: FieldPath },
  field: Field,
): string {
  const parent = requirePresent(field.parent, 'the record that a reference compares with')
  const { relation, to } = condition
  const other = `(${printValueExpression(to, parent)})`
  switch (relation) {
    case '=':
      return `(${field.key} = (${printKeyExpression(to, parent)}) AND ${field.value} = ${other})`
    case 'in':
      return `(${field.key} = ANY (ARRAY(SELECT ${printKeyExpression(['e'], `jsonb_build_object('e', item.value)`)}
  FROM jsonb_array_elements(CASE jsonb_typeof${other} WHEN 'array' THEN ${other} ELSE '[]' END) AS item(value)))
 AND ${isScalar(field.value)} AND ${other} @> ${field.value})`
    case 'includes':
      return `CASE jsonb_typeof${field.value}
 WHEN 'array' THEN ${isScalar(other)} AND ${field.value} @> ${other}
 WHEN 'string' THEN jsonb_typeof${other} = 'string' AND strpos(${field.text}, ${printTextExpression(to, parent)}) > 0
 ELSE FALSE END`
    default:
      return `CASE WHEN jsonb_typeof${field.value} = jsonb_typeof${other} AND ${isScalar(other)}
 THEN ${field.value} ${relation} ${other} ELSE FALSE END`
  }
}

function isScalar(value: string): string {
  return `jsonb_typeof${value} IN ('string', 'number', 'boolean')`
}
