import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('getWellKnown', () =>
  withService((service) => {
    test('discovery names the key that signs, and a checkpoint of it', async () => {
      const { body } = await service().request('GET', '/.well-known/tollbase')
      expect(body.checkpoint).toContain(body.receipt_public_key.split('+')[0])
      expect(body.guide).toBe(`${service().url}/llms.txt`)
    })
  }))
