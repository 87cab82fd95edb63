import { createData } from '@tollbase/testing/data'
import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('getApiCollection', () =>
  withService((service) => {
    test('an API collection is told as it was defined: where its data is, its prices, and how long an answer is kept', async () => {
      const app = await createData(service())
      const made = await app.call('POST', '/api-collections', {
        name: 'weather',
        upstream: { url: 'https://api.example.com/a/{city}' },
        parameters: [{ name: 'city' }],
        price: { per_access: '5' },
        cache_seconds: 60,
      })
      expect(made.status, made.text).toBe(201)
      expect(made.body).toMatchObject({
        description: null,
        endpoint: `/api/apps/${app.appId}/api-collections/weather/data`,
        price: { per_access: '5', per_row: '0', per_kb: '0' },
        cache_seconds: 60,
      })
      expect((await app.call('GET', '/api-collections/weather')).body).toEqual(made.body)
    })
  }))
