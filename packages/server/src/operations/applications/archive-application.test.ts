import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('archiveApplication', () =>
  withService((service) => {
    test('an archived application answers 404 everywhere, and its id stays taken', async () => {
      const app = await service().createApp()
      await service().request('POST', '/store?wait=true', {
        body: { root: `${app.appId}::notes`, data: [{ id: 'a' }] },
        headers: app.headers,
      })
      const path = `/api/apps/${app.appId}`
      const archived = await service().request('DELETE', path, { headers: app.headers })
      expect(archived.body.success).toBe(true)
      const reads: [string, string, object?][] = [
        ['GET', path],
        ['GET', `${path}/collections`],
        ['POST', `${path}/keys`],
        ['GET', `${path}/chain/checkpoint`],
        ['POST', '/list', { root: `${app.appId}::notes` }],
        ['POST', '/store', { root: `${app.appId}::notes`, data: [{ id: 'b' }] }],
        ['DELETE', path],
      ]
      for (const [method, url, body] of reads) {
        const { status } = await service().request(method, url, {
          ...(body && { body }),
          headers: app.headers,
        })
        expect(status, `${method} ${url}`).toBe(404)
      }
      const again = { name: 'Again', app_id: app.appId }
      const taken = await service().request('POST', '/api/apps', {
        body: again,
        headers: service().operator,
      })
      expect(taken.status).toBe(409)
    })
  }))
