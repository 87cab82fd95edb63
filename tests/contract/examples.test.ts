import { type OperationId, tollbase } from '@tollbase/contract/contract'
import type { Route } from '@tollbase/contract/route'
import type { TSchema } from 'typebox'
import { describe, expect, test } from 'vitest'
import { refuseUnknown, toKnownMembers } from '../../packages/server/src/base/known-members.ts'
import { compileCheck } from '../../packages/server/src/http/validate.ts'

type Example = { readonly operationId: string; readonly schema: TSchema; readonly value: unknown }

const examples = Object.entries<Route>(tollbase).flatMap(([operationId, route]): Example[] =>
  [route.body, route.form, route.query].flatMap((schema) =>
    schema === undefined
      ? []
      : listExamples(schema).map((value) => ({ operationId, schema, value })),
  ),
)

describe('the examples of the interface', () => {
  test.each(examples.map(({ operationId, ...example }, at) => [operationId, at, example] as const))(
    'the request of %s (%i) is one that the service takes',
    (_operationId, _at, { schema, value }) => {
      compileCheck(schema)(value, '')
      refuseUnknown(toKnownMembers(schema), value, '')
    },
  )

  test('an operation that newcomers begin with has an example of its own', () => {
    const have = new Set(examples.map(({ operationId }) => operationId))
    expect(first.filter((operationId) => !have.has(operationId))).toEqual([])
  })
})

/** Operations whose request would say nothing with the needed members alone. */
const first: readonly OperationId[] = [
  ...(['createApplication', 'createKey', 'createCollection', 'storeRecords'] as const),
  ...(['executeBatch', 'listRecords', 'querySql', 'createIndex', 'createQuery'] as const),
  ...(['executeQuery', 'createView', 'createViewFromSql', 'setPricing'] as const),
  ...(['updatePricing', 'simulatePricing', 'quotePrice', 'createAuthorization'] as const),
  ...(['setPayoutSettings', 'requestPayout', 'refundSale', 'depositToWallet'] as const),
  ...(['withdrawFromWallet', 'createGrant', 'createApiCollection', 'setRetention'] as const),
  ...(['eraseSubject', 'updateEncryption', 'createDataSet', 'createRelation'] as const),
  'uploadBlob',
]

function listExamples(schema: TSchema): readonly unknown[] {
  return 'examples' in schema && Array.isArray(schema.examples) ? schema.examples : []
}
