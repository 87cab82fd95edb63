import { verifyCheckpoint } from '@tollbase/verify/checkpoint'
import { describe, expect, test } from 'vitest'
import { createOpenData, readChain } from '../support/chains.ts'
import { withService } from '../support/per-engine.ts'

describe("the service's own chain", () =>
  withService((service) => {
    test('the head of every application comes into the service`s own chain', async () => {
      const app = await createOpenData(service())
      await app.store('notes', [{ id: 'a' }])
      const { size } = await readChain(service(), app, '/checkpoint')
      const system = async () =>
        (await service().request('GET', '/api/apps/system/chain/checkpoint')).body
      const before = (await system()).size
      await service().running.service.tenants.announceHeads()
      const after = await system()
      expect(after.size).toBe(before + 1)
      expect(verifyCheckpoint(after.checkpoint, after.key).ok).toBe(true)
      const known = await service().request('GET', '/.well-known/tollbase')
      expect(known.body.receipt_public_key).toBe(after.key)
      await service().running.service.tenants.announceHeads()
      expect((await system()).size, 'nothing grew, nothing is written').toBe(after.size)
      expect(size).toBeGreaterThan(0)
    })

    test('the application `system` is a chain and nothing else', async () => {
      for (const path of ['', '/collections', '/keys', '/stats', '/tasks']) {
        const reply = await service().request('GET', `/api/apps/system${path}`, {
          headers: service().operator,
        })
        expect(reply.status, path).toBe(404)
      }
      const store = await service().request('POST', '/store', {
        body: { root: 'system::application', data: [{}] },
        headers: service().operator,
      })
      expect(store.status).toBe(404)
    })
  }))
