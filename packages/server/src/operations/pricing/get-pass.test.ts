import { createData } from '@tollbase/testing/data'
import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('getPass', () =>
  withService((service) => {
    test('a pass that was never sold is not found, and neither is any pass of an application that is not there', async () => {
      const app = await createData(service())
      const id = `pay_${'0'.repeat(32)}`
      const at = (name: string) => service().request('GET', `/api/apps/${name}/passes/${id}`)
      expect(await at(app.appId)).toMatchObject({ status: 404, body: { code: 'PASS_NOT_FOUND' } })
      expect((await at('nobody')).body.code).toBe('APPLICATION_NOT_FOUND')
    })
  }))
