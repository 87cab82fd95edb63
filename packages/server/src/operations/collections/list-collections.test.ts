import { createData } from '@tollbase/testing/data'
import { withService } from '@tollbase/testing/per-engine'
import type { Json } from '@tollbase/testing/service'
import { describe, expect, test } from 'vitest'

describe('listCollections', () =>
  withService((service) => {
    test('an application lists all its collections to its keys, and to strangers only those that are open', async () => {
      const app = await createData(service())
      await app.create({ name: 'plain' })
      await app.create({ name: 'hidden', access_policy: 'private' })
      await app.create({ name: 'open', access_policy: 'public' })
      const path = `/api/apps/${app.appId}/collections`
      const other = await createData(service())
      const names = async (headers: Readonly<Record<string, string>>) =>
        (await service().request('GET', path, { headers })).body.map(({ name }: Json) => name)
      expect(await names(app.headers)).toEqual(['plain', 'hidden', 'open'])
      expect(await names({})).toEqual(['open'])
      expect(await names(other.headers)).toEqual(['open'])
    })
  }))
