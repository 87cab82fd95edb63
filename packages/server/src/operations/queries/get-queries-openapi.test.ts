import { Validator } from '@seriousme/openapi-schema-validator'
import { idleNetwork } from '@tollbase/testing/idle-network'
import { withService } from '@tollbase/testing/per-engine'
import { createQueryCalls } from '@tollbase/testing/queries'
import { describe, expect, test } from 'vitest'

describe('getQueriesOpenapi', () =>
  withService(
    (service) => {
      test('the document is valid OpenAPI 3.1 with an operation for each public query, and without those that are not public', async () => {
        const { data, define, defineClosed } = await createQueryCalls(service())
        await defineClosed('inner')
        await define({
          name: 'described',
          source_collection: 'open',
          parameters: [
            { name: 'id', field_path: 'id', type: 'list', maxItems: 3, required: false },
            {
              name: 'secret',
              field_path: 'secret',
              type: 'enum',
              values: ['a', 'b'],
              default: 'a',
            },
            { name: 'n', field_path: 'n.$gte', type: 'integer', min: 1, max: 5, required: false },
          ],
        })
        const { body } = await service().request('GET', `/api/queries/${data.appId}/openapi.json`)
        const result = await new Validator().validate(structuredClone(body))
        expect(result.errors).toBeUndefined()
        const operation = body.paths[`/api/queries/${data.appId}/described/data`].get
        expect(operation.parameters.slice(0, 3)).toEqual([
          expect.objectContaining({ name: 'id', in: 'query', required: false }),
          expect.objectContaining({
            name: 'secret',
            schema: expect.objectContaining({ enum: ['a', 'b'], default: 'a' }),
          }),
          expect.objectContaining({
            name: 'n',
            schema: { type: 'integer', minimum: 1, maximum: 5 },
          }),
        ])
        expect(body.paths[`/api/queries/${data.appId}/inner/data`]).toBeUndefined()
      })
    },
    { config: { networks: [idleNetwork] } },
  ))
