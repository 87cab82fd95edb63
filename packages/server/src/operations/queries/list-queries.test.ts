import { withService } from '@tollbase/testing/per-engine'
import { createQueryCalls } from '@tollbase/testing/queries'
import { describe, expect, test } from 'vitest'

describe('listQueries', () =>
  withService((service) => {
    test('the list shows outsiders the public queries, and keys of the application all of them', async () => {
      const { data, define, defineClosed } = await createQueryCalls(service())
      await define({ name: 'public-one', source_collection: 'open' })
      await defineClosed('inner')
      const other = await service().createApp()
      const listNames = async (headers: Readonly<Record<string, string>>) => {
        const path = `/api/apps/${data.appId}/queries`
        const { body } = await service().request('GET', path, { headers })
        return body.queries.map(({ name }: { name: string }) => name)
      }
      expect(await listNames({})).toEqual(['public-one'])
      expect(await listNames(other.headers)).toEqual(['public-one'])
      expect((await listNames(data.headers)).sort()).toEqual(['inner', 'public-one'])
    })
  }))
