import { readChain } from '@tollbase/testing/chains'
import { createData } from '@tollbase/testing/data'
import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('listCosignatures', () =>
  withService((service) => {
    test('a service without witnesses has an empty list, for those who may see the chain', async () => {
      const app = await createData(service())
      await app.create({ name: 'closed', access_policy: 'private' })
      const own = await app.call('GET', '/chain/cosignatures')
      expect([own.status, own.body]).toEqual([200, { cosignatures: [] }])
      expect(await readChain(service(), app, '/cosignatures')).toMatchObject({
        code: 'UNAUTHORIZED',
      })
    })
  }))
