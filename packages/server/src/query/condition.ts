/** Names of nested fields from the record's root: ['address', 'city']. */
export type FieldPath = readonly [string, ...string[]]

export type Scalar = string | number | boolean

/** One end of a range. */
export type Bound = { readonly value: Scalar; readonly inclusive: boolean }

/**
 * A condition on a record. Nodes are frozen and hold the meaning, not the client's spelling: several operators
 * become one kind. Every condition is true or false for a record, never unknown.
 */
export type Condition =
  | { readonly kind: 'always' }
  | { readonly kind: 'never' }
  | { readonly kind: 'all'; readonly conditions: readonly Condition[] }
  | { readonly kind: 'any'; readonly conditions: readonly Condition[] }
  | { readonly kind: 'not'; readonly condition: Condition }
  | FieldCondition

/** A condition on the value of one field. */
export type FieldCondition = { readonly path: FieldPath } & FieldTest

export type FieldTest =
  /** The value is one of these, of the same JSON type. At least one. */
  | { readonly kind: 'one-of'; readonly values: readonly Scalar[] }
  /** The field is missing or JSON null. */
  | { readonly kind: 'null' }
  /** The field is there, be it null. */
  | { readonly kind: 'exists' }
  /** The value is between bounds of one JSON type; at least one is given. */
  | { readonly kind: 'range'; readonly from?: Bound; readonly to?: Bound }
  /** A string that starts or ends with the text. */
  | { readonly kind: 'starts' | 'ends'; readonly text: string; readonly ignoreCase: boolean }
  /** A string with the text inside, or an array with the value as an element. */
  | { readonly kind: 'includes'; readonly value: Scalar; readonly ignoreCase: boolean }
  /** A string that has all words of the text; see search.ts. */
  | { readonly kind: 'search'; readonly text: string }
  /** A string that the regular expression matches; the pattern is already PostgreSQL's. */
  | { readonly kind: 'matches'; readonly pattern: string }
  /** A string that is an IP address inside the block. */
  | { readonly kind: 'in-block'; readonly block: string }
  /** A string that is an IP address of a private (or, if not `local`, a public) network. */
  | { readonly kind: 'address'; readonly local: boolean }
  /** The value is in the data set of this name; with a country, an address that the set says is there. */
  | { readonly kind: 'in-data-set'; readonly set: string; readonly country?: string }
  /** Compares with a value that is given when the statement runs. */
  | {
      readonly kind: 'parameter'
      readonly test: ParameterTest
      readonly ignoreCase: boolean
      readonly parameter: ParameterRef
    }
  /** Compares with a field of the record that is joined to; false where either is null or missing. */
  | { readonly kind: 'reference'; readonly relation: ReferenceRelation; readonly to: FieldPath }

/**
 * `in`: the other field is an array with the value as an element; `includes`: the other way round, or a text inside
 * a text.
 */
export type ReferenceRelation = '=' | '<' | '<=' | '>' | '>=' | 'in' | 'includes'

/** A value that a stored query leaves open when its statement is compiled: once, before any value is known. */
export type ParameterRef = {
  readonly name: string
  readonly type: 'text' | 'number' | 'boolean' | 'timestamp' | 'date'
  /** The most UTF-16 code units of a text. */
  readonly charsMax: number
  /** Stands for several values. */
  readonly list: boolean
}

/** `in`: the value is one of a list; the last three are for strings, `includes` for arrays too. */
export type ParameterTest = '=' | '<' | '<=' | '>' | '>=' | 'in' | 'starts' | 'ends' | 'includes'

export const always: Condition = Object.freeze({ kind: 'always' })
export const never: Condition = Object.freeze({ kind: 'never' })

/** Combines conditions by AND; none gives `always`. */
export function combineAll(conditions: readonly Condition[]): Condition {
  const [only] = conditions
  if (only !== undefined && conditions.length === 1) return only
  const kept = conditions.flatMap((each) => {
    if (each.kind === 'always') return []
    return each.kind === 'all' ? each.conditions : [each]
  })
  if (kept.some((each) => each.kind === 'never')) return never
  const [first, second] = kept
  if (first === undefined) return always
  return second === undefined
    ? first
    : Object.freeze({ kind: 'all', conditions: Object.freeze(kept) })
}

/** Combines conditions by OR; none gives `never`. */
export function combineAny(conditions: readonly Condition[]): Condition {
  const kept = conditions.flatMap((each) => {
    if (each.kind === 'never') return []
    return each.kind === 'any' ? each.conditions : [each]
  })
  if (kept.some((each) => each.kind === 'always')) return always
  const [first, second] = kept
  if (first === undefined) return never
  return second === undefined
    ? first
    : Object.freeze({ kind: 'any', conditions: Object.freeze(kept) })
}

export function negate(condition: Condition): Condition {
  if (condition.kind === 'always') return never
  if (condition.kind === 'never') return always
  return condition.kind === 'not' ? condition.condition : Object.freeze({ kind: 'not', condition })
}

export function testField(path: FieldPath, test: FieldTest): Condition {
  return Object.freeze({ path, ...test })
}

/** Lists the dotted names of the fields that the condition uses, each once. */
export function listConditionPaths(condition: Condition): readonly string[] {
  return collectTexts(condition, (each) => each.path.join('.'))
}

/** Lists the dotted names of the fields of the record joined to that the condition compares with, each once. */
export function listReferencedPaths(condition: Condition): readonly string[] {
  return collectTexts(condition, (each) =>
    each.kind === 'reference' ? each.to.join('.') : undefined,
  )
}

/** Lists the names of the data sets that the condition uses, each once. */
export function listDataSetNames(condition: Condition): readonly string[] {
  return collectTexts(condition, (each) => (each.kind === 'in-data-set' ? each.set : undefined))
}

function collectTexts(
  condition: Condition,
  textOf: (field: FieldCondition) => string | undefined,
): readonly string[] {
  const texts = new Set<string>()
  const visit = (each: Condition): void => {
    switch (each.kind) {
      case 'always':
      case 'never':
        return
      case 'all':
      case 'any':
        each.conditions.forEach(visit)
        return
      case 'not':
        visit(each.condition)
        return
      default: {
        const text = textOf(each)
        if (text !== undefined) texts.add(text)
      }
    }
  }
  visit(condition)
  return [...texts]
}
