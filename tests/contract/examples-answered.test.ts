import { type OperationId, tollbase } from '@tollbase/contract/contract'
import type { Route } from '@tollbase/contract/route'
import type { TSchema } from 'typebox'
import { describe, expect, test } from 'vitest'
import { withService } from '../support/per-engine.ts'

/** Requests that need no money, each of which may need what those before it made. */
const inOrder: readonly OperationId[] = [
  ...(['createCollection', 'storeRecords', 'executeBatch', 'listRecords', 'querySql'] as const),
  ...(['createIndex', 'getIndex', 'createQuery', 'executeQuery', 'createView'] as const),
  ...(['queryView', 'createViewFromSql', 'setPricing', 'updatePricing'] as const),
  ...(['simulatePricing', 'quotePrice', 'createRelation', 'createDataSet'] as const),
  ...(['createKey', 'createAuthorization', 'setPayoutSettings', 'createApiCollection'] as const),
  ...(['validateRecord', 'migrateCollection', 'explainQuery', 'setSharding'] as const),
  ...(['createGrant', 'setRetention', 'eraseSubject'] as const),
]

describe('the examples of /docs', () =>
  withService((service) => {
    test('a newcomer who sends them one after the other is answered as the contract says', async () => {
      const made = await service().request('POST', '/api/apps', {
        headers: service().operator,
        body: getExample(tollbase.createApplication.body),
      })
      expect(made.status, made.text).toBe(201)
      await service().createApp('maps')
      const headers = { 'x-app-key': made.body.app_key }
      for (const operationId of inOrder) {
        const route: Route = tollbase[operationId]
        const reply = await service().request(route.method, makePath(route), {
          headers,
          ...(route.body && { body: getExample(route.body) }),
        })
        expect([200, 201], `${operationId}: ${reply.text}`).toContain(reply.status)
      }
    })
  }))

/** Makes the path of an example, with its query string. */
function makePath({ path, params, query }: Route): string {
  const names: Readonly<Record<string, unknown>> = { app: 'weather', collection: 'stations' }
  const filled = path.replace(/:(\w+)/g, (_, name: string) =>
    String(names[name] ?? getExample(params?.properties[name])),
  )
  const sent = new URLSearchParams()
  const add = (values: object) => {
    for (const [name, value] of Object.entries(values)) sent.set(name, String(value))
  }
  for (const [name, schema] of Object.entries(query?.properties ?? {})) {
    const value = getExample(schema)
    if (value !== undefined) add({ [name]: value })
  }
  add(getExample(query) ?? {})
  return sent.size === 0 ? filled : `${filled}?${sent}`
}

function getExample(schema: TSchema | undefined): object | undefined {
  return schema !== undefined && 'examples' in schema && Array.isArray(schema.examples)
    ? schema.examples[0]
    : undefined
}
