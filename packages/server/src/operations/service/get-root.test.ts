import { interfaceVersion } from '@tollbase/contract/contract'
import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('getRoot', () =>
  withService((service) => {
    test('the service says that it is there, on every path that clients ask', async () => {
      for (const [method, path] of [
        ['GET', '/'],
        ['GET', '/health'],
        ['POST', '/health'],
      ] as const) {
        const { status, body } = await service().request(method, path)
        expect(status).toBe(200)
        expect(body.status).toBe('ok')
      }
      const info = await service().request('POST', '/info', { body: {} })
      expect(info.body.interface_version).toBe(interfaceVersion)
      expect((await service().request('GET', '/ready')).body.ready).toBe(true)
    })
  }))
