import { interfaceVersion, tollbase } from '@tollbase/contract/contract'
import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('getOpenapi', () =>
  withService((service) => {
    test('openapi.json describes every endpoint', async () => {
      const { body } = await service().request('GET', '/openapi.json')
      expect(body.openapi).toMatch(/^3\.1/)
      expect(body.info.version).toBe(interfaceVersion)
      const described = Object.values(
        body.paths as Record<string, Record<string, { operationId?: string }>>,
      )
        .flatMap((methods) => Object.values(methods))
        .map(({ operationId }) => operationId)
      for (const id of Object.keys(tollbase)) expect(described).toContain(id)
    })
  }))
