import { afterAll, beforeAll, describe, test } from 'vitest'
import { expectQuick, type HeldPlace, many, openHeldPlace, toObject } from './held-loop.ts'

let place: HeldPlace

/** An application may have 1,000 queries and 2,000 collections, which are longer still. */
const count = 150
const values = many(200, (at) => `value ${at}`)
const parameters = many(32, (at) => ({ name: `p${at}`, type: 'enum', values, default: values[0] }))
const names = parameters.map(({ name }) => `:${name}`).join(', ')

beforeAll(async () => {
  place = await openHeldPlace()
  for (let at = 0; at < count; at++) {
    await place.ask('POST', '/api/apps/loopy/queries', {
      name: `query_${at}`,
      sql: `SELECT a FROM loopy::open WHERE b IN (${names})`,
      parameters,
      example_response: many(8_000, (of) => of),
    })
    await place.ask('POST', '/api/apps/loopy/collections', {
      name: `open_${at}`,
      access_policy: 'public',
      schema_definition: {
        properties: toObject(1_000, (of) => [`f${of}`, { type: 'string', maxLength: of }]),
      },
    })
  }
}, 240_000)
afterAll(() => place?.close())

describe('a list of many large definitions does not hold the event loop', () => {
  test.each([
    '/api/apps/loopy/queries',
    '/api/queries/loopy/openapi.json',
    '/api/apps/loopy/collections',
    '/api/apps/loopy',
  ])('%s', async (path) => {
    await expectQuick(place.client, { method: 'GET', path })
    await expectQuick(place.client, { method: 'GET', path, headers: place.app.headers })
  })
})
