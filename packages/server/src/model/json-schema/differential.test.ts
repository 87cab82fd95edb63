import { Ajv2020 } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { checkJsonSchema } from './check-definition.ts'
import { isRight } from './judging.test-support.ts'

const names = ['a', 'b', 'ab'] as const
const name = fc.constantFrom(...names)
const small = fc.integer({ min: 0, max: 3 })
const plain = fc.constantFrom<unknown>(null, true, 0, 1, 1.5, 3, '', 'a', 'ab', 'ä💶', '1')

/** Values in which equal members, items and names are frequent. */
const { value } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    plain,
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(name, tie('value'), { maxKeys: 3, noNullPrototype: true }),
  ),
}))

/** Keywords of all kinds over few names, so that they meet in one value; references lead to `$defs` and to the whole. */
const { schema } = fc.letrec<{ schema: boolean | Record<string, unknown> }>((tie) => {
  const inner = tie('schema')
  const byName = fc.dictionary(name, inner, { maxKeys: 2, noNullPrototype: true })
  const list = fc.array(inner, { minLength: 1, maxLength: 3 })
  const listOfNames = fc.uniqueArray(name, { maxLength: 2 })
  const type = fc.constantFrom('null', 'boolean', 'integer', 'number', 'string', 'array', 'object')
  const keywords = {
    type: fc.oneof(type, fc.uniqueArray(type, { minLength: 1, maxLength: 3 })),
    enum: fc.uniqueArray(value, {
      minLength: 1,
      maxLength: 3,
      selector: (one) => JSON.stringify(one),
    }),
    const: value,
    minimum: small,
    maximum: small,
    exclusiveMinimum: small,
    exclusiveMaximum: small,
    multipleOf: fc.constantFrom(1, 0.5, 2),
    minLength: small,
    maxLength: small,
    pattern: fc.constantFrom('^a', 'b$', '[0-9]'),
    minItems: small,
    maxItems: small,
    uniqueItems: fc.boolean(),
    minProperties: small,
    maxProperties: small,
    required: listOfNames,
    dependentRequired: fc.dictionary(name, listOfNames, { maxKeys: 2, noNullPrototype: true }),
    dependentSchemas: byName,
    properties: byName,
    patternProperties: fc.dictionary(fc.constantFrom('^a', 'b'), inner, {
      maxKeys: 2,
      noNullPrototype: true,
    }),
    additionalProperties: inner,
    propertyNames: inner,
    unevaluatedProperties: inner,
    items: inner,
    prefixItems: list,
    contains: inner,
    minContains: small,
    maxContains: small,
    unevaluatedItems: inner,
    allOf: list,
    anyOf: list,
    oneOf: list,
    not: inner,
    if: inner,
    // biome-ignore lint/suspicious/noThenProperty: it is a keyword
    then: inner,
    else: inner,
    $ref: fc.constantFrom('#/$defs/one', '#/$defs/two'),
  }
  const some = fc
    .subarray(Object.keys(keywords) as (keyof typeof keywords)[], { minLength: 1, maxLength: 4 })
    .chain((chosen) =>
      fc.record(Object.fromEntries(chosen.map((keyword) => [keyword, keywords[keyword]]))),
    )
  return { schema: fc.oneof({ depthSize: 'small', maxDepth: 3 }, fc.boolean(), some) }
})

const root = fc
  .tuple(schema, schema, schema)
  .map(([whole, one, two]) => ({ allOf: [whole], $defs: { one, two } }))
  .filter(meansOneThing)

/** For Ajv, `contains` judges all items, where 2020-12 says those that it finds; `unevaluatedItems` shows it. */
function meansOneThing(definition: unknown): boolean {
  const text = JSON.stringify(definition)
  return !(text.includes('"contains":') && text.includes('"unevaluatedItems":'))
}

const undecided = 'undecided'

/**
 * Those that lead to themselves without a step into the value judge without end, in any implementation. Ajv makes code
 * that does not run (`props0 is not defined`, `Cannot set properties of undefined`) of one schema in a thousand.
 */
function ask(judge: () => boolean, errors: readonly (typeof Error)[]): boolean | typeof undecided {
  try {
    return judge()
  } catch (error) {
    if (errors.some((one) => error instanceof one)) return undecided
    throw error
  }
}

test('random JSON Schemas judge random values as another implementation does', async () => {
  await fc.assert(
    fc.asyncProperty(
      root,
      fc.array(value, { minLength: 1, maxLength: 8 }),
      async (definition, values) => {
        await checkJsonSchema(definition, '/schema')
        const ajv = new Ajv2020({ strict: false, validateSchema: true, logger: false })
        const expected = ajv.compile(definition)
        for (const one of values) {
          const ours = ask(() => isRight(definition, one), [RangeError])
          const theirs = ask(() => expected(one), [RangeError, ReferenceError, TypeError])
          if (ours !== undecided && theirs !== undecided)
            expect(ours, JSON.stringify(one)).toBe(theirs)
        }
      },
    ),
    { numRuns: 300 },
  )
}, 300_000)
