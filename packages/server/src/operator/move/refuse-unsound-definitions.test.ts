import { limits } from '@tollbase/contract/limits'
import { expect, test } from 'vitest'
import { emptyCatalog } from '../../model/catalog.ts'
import type { KeptQuery } from '../../model/stored-query.ts'
import { refuseUnsoundDefinitions } from './refuse-unsound-definitions.ts'

test('definitionsBytesMax: an import whose definitions take more memory together than those of an application may is refused', async () => {
  const stored: KeptQuery = {
    name: 'q',
    version: 1,
    description: 'x'.repeat(limits.definitionsBytesMax),
    parameters: [],
    sources: [],
    created_at: '2026-01-31T12:00:00.000Z',
  }
  const catalog = { ...emptyCatalog, queries: new Map([['q', [stored]]]) }
  await expect(refuseUnsoundDefinitions({ app: 'shop', schema: 'app_1', catalog })).rejects.toThrow(
    /its definitions take \d+ bytes of memory/,
  )
})
