/** Keywords of JSON Schema 2020-12, and those of draft 7 that mean the same, by the kind of their values. */
const byKind = {
  any: ['default', 'const', '$vocabulary'],
  boolean: ['deprecated', 'readOnly', 'writeOnly', 'uniqueItems'],
  count: [
    ...['minLength', 'maxLength', 'minItems', 'maxItems', 'minProperties', 'maxProperties'],
    ...['minContains', 'maxContains'],
  ],
  divisor: ['multipleOf'],
  format: ['format'],
  id: ['$id'],
  list: ['enum', 'examples'],
  name: ['$anchor', '$dynamicAnchor'],
  names: ['required'],
  'names by name': ['dependentRequired'],
  number: ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum'],
  pattern: ['pattern'],
  reference: ['$ref', '$dynamicRef'],
  schema: [
    ...['additionalProperties', 'unevaluatedProperties', 'propertyNames', 'additionalItems'],
    ...['unevaluatedItems', 'contains', 'not', 'if', 'then', 'else', 'contentSchema'],
  ],
  'schema or schemas': ['items'],
  schemas: ['allOf', 'anyOf', 'oneOf', 'prefixItems'],
  'schemas by name': ['properties', '$defs', 'definitions', 'dependentSchemas'],
  'schemas by pattern': ['patternProperties'],
  'schemas or names by name': ['dependencies'],
  text: [...['$schema', '$comment', 'title', 'description', 'contentEncoding', 'contentMediaType']],
  types: ['type'],
} as const satisfies Record<string, readonly string[]>

export type KeywordKind = keyof typeof byKind

/** The kind of each keyword's value. */
export const keywords: ReadonlyMap<string, KeywordKind> = new Map(
  (Object.keys(byKind) as KeywordKind[]).flatMap((kind) =>
    byKind[kind].map((name): [string, KeywordKind] => [name, kind]),
  ),
)

export const jsonTypes = [
  'string',
  'number',
  'integer',
  'boolean',
  'object',
  'array',
  'null',
] as const

export type JsonType = (typeof jsonTypes)[number]
