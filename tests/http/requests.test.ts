import { request as rawRequest } from 'node:http'
import { limits } from '@tollbase/contract/limits'
import { describe, expect, test } from 'vitest'
import { withService } from '../support/per-engine.ts'

describe('requests over HTTP', () =>
  withService((service) => {
    test('a browser of any origin may send keys and payments, and read receipts', async () => {
      const asked = await fetch(`${service().url}/list`, {
        method: 'OPTIONS',
        headers: {
          origin: 'https://shop.example',
          'access-control-request-method': 'POST',
          'access-control-request-headers': 'content-type,x-app-key,x-payment',
        },
      })
      expect(asked.status).toBe(200)
      const allowed = asked.headers.get('access-control-allow-headers')?.toLowerCase() ?? ''
      const names = ['content-type', 'x-app-key', 'x-signature', 'authorization', 'x-payment']
      for (const name of [...names, 'if-match', 'content-digest', 'upload-offset', 'x-request-id'])
        expect(allowed.split(', ')).toContain(name)
      // Libraries add headers of their own, such as traceparent; the star does not stand for Authorization.
      expect(allowed.split(', ')).toContain('*')
      expect(asked.headers.get('access-control-allow-methods')).toContain('DELETE')
      const answer = await service().request('GET', '/nowhere', {
        headers: { origin: 'https://shop.example' },
      })
      expect(answer.headers.get('access-control-allow-origin')).toBe('*')
      const exposed = answer.headers.get('access-control-expose-headers')?.toLowerCase() ?? ''
      for (const name of ['x-payment-response', 'x-receipt-id', 'x-request-id', 'retry-after'])
        expect(exposed).toContain(name)
    })

    test('every error is JSON with error, code and the id of the request, and never records', async () => {
      const app = await service().createApp()
      const replies = [
        await service().request('GET', '/nowhere'),
        await service().request('GET', '/api/apps/not-there'),
        await service().request('GET', `/api/apps/${app.appId}/keys`),
        await service().request('POST', '/list', { raw: '{' }),
        await service().request('POST', '/list', { body: { root: 'x' } }),
        await service().request('POST', '/list', { body: { root: `${app.appId}::none` } }),
        await service().request('DELETE', '/list'),
        await service().request('GET', '/task/unknown'),
        await service().request('GET', `/api/apps/${app.appId}/chain/blocks/77`),
        await service().request('GET', '/%'),
        await service().request('GET', `/api/apps/${'a'.repeat(2000)}`),
      ]
      for (const { status, body, text, headers } of replies) {
        expect(status, text).toBeGreaterThanOrEqual(400)
        expect(status, text).toBeLessThan(500)
        expect(body, text).toMatchObject({
          error: expect.any(String),
          code: expect.stringMatching(/^[A-Z_]+$/),
          request_id: headers.get('x-request-id'),
        })
        expect(body).not.toHaveProperty('records')
      }
    })

    test.each([
      ['GET', '/api/nowhere'],
      ['DELETE', '/api/apps/abc/nowhere'],
      ['PUT', '/storage'],
      ['HEAD', '/stores'],
    ])('%s %s is 404, and the answer says where to look', async (method, path) => {
      const { status, body } = await service().request(method, path)
      expect(status).toBe(404)
      if (method !== 'HEAD')
        expect(body).toMatchObject({
          code: 'ROUTE_NOT_FOUND',
          error: expect.stringContaining(`${method} ${path}`),
        })
    })

    test.each([
      ['not JSON', '{"root": }'],
      ['cut off', '{"root": "a::b"'],
      ['not UTF-8', Uint8Array.of(0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d)],
      ['nothing', ''],
      ['a number', '7'],
      ['a list', '[1]'],
    ])('a body that is %s is 400', async (_what, raw) => {
      const { status, body } = await service().request('POST', '/list', { raw })
      expect(status).toBe(400)
      expect(body.code).toBe('VALIDATION_FAILED')
    })

    test('an empty body with a JSON content type is accepted where a body is optional', async () => {
      const app = await service().createApp()
      const headers = { ...app.headers, 'content-type': 'application/json' }
      const read = await service().request('GET', `/api/apps/${app.appId}/keys`, { headers })
      expect(read.status).toBe(200)
      await service().request('POST', `/api/apps/${app.appId}/collections`, {
        body: { name: 'gone' },
        headers,
      })
      const path = `/api/apps/${app.appId}/collections/gone`
      expect((await service().request('DELETE', path, { headers })).status).toBe(200)
    })

    test('the form type of curl is read as JSON, and an empty list as an empty object where that is optional', async () => {
      const app = await service().createApp()
      const { status } = await service().request('POST', '/list', {
        raw: JSON.stringify({ root: `${app.appId}::none` }),
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
      })
      expect(status).toBe(404)
      const php = await service().request('POST', '/info', { raw: '[]' })
      expect(php.status).toBe(200)
    })

    test.each([
      ['/store', limits.bodyBytesMax],
      ['/list', limits.plainBodyBytesMax],
    ])('a body to %s of the largest size is read, and one byte more is 413', async (path, most) => {
      const body = (bytes: number) => {
        const head = '{"root":"not-there::x","find":{"id":"'
        return `${head}${'a'.repeat(bytes - head.length - 3)}"}}`
      }
      const at = await service().request('POST', path, { raw: body(most) })
      expect(at.status, at.text).toBe(path === '/store' ? 401 : 404)
      const past = await service().request('POST', path, { raw: body(most + 1) })
      expect(past).toMatchObject({ status: 413, body: { code: 'PAYLOAD_TOO_LARGE' } })
    })

    test('two values of a header that carries a key are refused', async () => {
      const app = await service().createApp()
      const status = await new Promise((resolve, reject) => {
        const sent = rawRequest(`${service().url}/api/apps/${app.appId}/keys`, (reply) => {
          reply.resume()
          resolve(reply.statusCode)
        })
        sent.on('error', reject)
        sent.setHeader('x-app-key', [app.key, 'app_other'])
        sent.end()
      })
      expect([400, 401]).toContain(status)
    })

    test('a repeated query parameter is refused', async () => {
      const app = await service().createApp()
      const path = `/api/apps/${app.appId}/tasks?limit=1&limit=2`
      const { status, body } = await service().request('GET', path, { headers: app.headers })
      expect(status).toBe(400)
      expect(body.details.field).toBe('/query/limit')
    })
  }))
