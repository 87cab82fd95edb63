import { request } from 'node:http'
import { describe, expect, test } from 'vitest'
import { createData } from '../support/data.ts'
import { idleNetwork } from '../support/idle-network.ts'
import { openMarket } from '../support/market.ts'
import { withService } from '../support/per-engine.ts'

describe('methods that an endpoint does not have', () =>
  withService(
    (service) => {
      test.each([
        ['DELETE', '/list', 'OPTIONS, POST'],
        ['GET', '/store', 'OPTIONS, POST'],
        ['PUT', '//list/', 'OPTIONS, POST'],
        ['POST', '/openapi.json', 'GET, HEAD, OPTIONS'],
        ['POST', '/.well-known/tollbase?x=1', 'GET, HEAD, OPTIONS'],
        ['DELETE', '/api/apps/abc/collections', 'GET, HEAD, OPTIONS, POST'],
        ['DELETE', '/apps/abc/collections', 'GET, HEAD, OPTIONS, POST'],
        ['PATCH', '/api/apps/abc/views/some', 'DELETE, GET, HEAD, OPTIONS'],
        ['PUT', '/api/apps/abc/collections/c/records/k', 'GET, OPTIONS'],
      ])('%s %s is 405 and lists %s', async (method, path, allow) => {
        const reply = await service().request(method, path)
        expect(reply).toMatchObject({
          status: 405,
          body: { code: 'METHOD_NOT_ALLOWED', details: { allow: allow.split(', ') } },
        })
        expect(reply.headers.get('allow')).toBe(allow)
      })

      test('a caller who tries to delete or change a record by its address is told how it is done', async () => {
        const app = await createData(service())
        await app.store('c', [{ id: 'k', n: 1 }])
        const path = `/api/apps/${app.appId}/collections/c/records/k`
        for (const method of ['DELETE', 'PUT', 'PATCH', 'POST']) {
          const reply = await service().request(method, path, { headers: app.headers })
          expect(reply.status).toBe(405)
          expect(reply.body.error).toContain('POST /store')
          expect(reply.body.error).toContain('"deleted": true')
        }
        await app.store('c', [{ id: 'k', deleted: true }])
        expect((await app.list('c')).body.records).toEqual([])
      })

      test('HEAD answers as GET does without its body, but is 405 where an answer can cost money', async () => {
        const get = await service().request('GET', '/health')
        const head = await service().request('HEAD', '/health')
        expect(head).toMatchObject({ status: 200, text: '' })
        expect(head.headers.get('content-length')).toBe(String(get.text.length))
        expect((await service().request('HEAD', '/api/apps/nowhere')).status).toBe(404)
        const { appId, collection } = await openMarket(service())
        for (const path of [`/api/apps/${appId}/collections/${collection}/records/c0`, '/list']) {
          const reply = await service().request('HEAD', path)
          expect(reply, path).toMatchObject({ status: 405, text: '' })
          expect(reply.headers.get('allow'), path).not.toContain('HEAD')
        }
      })

      test('OPTIONS tells nothing about the requested thing', async () => {
        const { appId } = await openMarket(service())
        for (const path of ['/list', `/api/apps/${appId}`, '/nowhere', '/store']) {
          const reply = await service().request('OPTIONS', path)
          expect(reply).toMatchObject({ status: 200, text: '{}' })
          expect(reply.headers.get('access-control-allow-methods')).toContain('POST')
        }
      })

      test('no trick with path or method gets what has a price without paying', async () => {
        const secret = 'only-for-money'
        const market = await openMarket(service(), {
          price: { per_access: '1' },
          records: [{ id: 'k1', name: secret }],
        })
        const record = `/api/apps/${market.appId}/collections/${market.collection}/records/k1`
        const body = JSON.stringify({ root: market.root })
        const paths = {
          '/list': [
            '/list',
            '/list/',
            '//list',
            '/%6cist',
            '/LIST',
            '/./list',
            '/x/../list',
            '/list?',
            '/list%2f',
            '/list%',
            '/list%c0',
            `${service().url}/list`,
          ],
          record: [
            record,
            `${record}/`,
            record.replaceAll('/', '//'),
            record.replace('k1', '%6b1'),
            `${record}%2f`,
            `${record}%2fhistory`,
            record.replace('/api', ''),
            `${service().url}${record}`,
          ],
        }
        const requests = [...paths['/list'], ...paths.record].flatMap((path) =>
          ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND'].map(
            (method) => ({ method, path }),
          ),
        )
        for (const { method, path } of requests) {
          const reply = await rawly(service().url, { method, path, body })
          const said = `${method} ${path}: ${reply.status} ${reply.text}`
          expect(reply.text, said).not.toContain(secret)
          if (method !== 'OPTIONS') expect(reply.status, said).toBeGreaterThanOrEqual(400)
          expect(reply.status, said).toBeLessThan(500)
        }
      })
    },
    { config: { networks: [idleNetwork] } },
  ))

/** The path is sent as it is: fetch would normalize it. */
function rawly(
  url: string,
  asked: { method: string; path: string; body: string },
): Promise<{ status: number; text: string }> {
  const { hostname, port } = new URL(url)
  const hasBody = !['GET', 'HEAD', 'TRACE'].includes(asked.method)
  const headers = {
    'content-type': 'application/json',
    'x-http-method-override': 'POST',
    'x-method-override': 'GET',
    connection: 'close',
    ...(hasBody && { 'content-length': Buffer.byteLength(asked.body) }),
  }
  return new Promise((resolve, reject) => {
    const { method, path } = asked
    const sent = request({ hostname, port, method, path, headers }, (reply) => {
      const parts: Buffer[] = []
      reply.on('data', (part: Buffer) => parts.push(part))
      reply.on('end', () =>
        resolve({ status: reply.statusCode ?? 0, text: Buffer.concat(parts).toString() }),
      )
    })
    sent.on('error', reject)
    sent.end(hasBody ? asked.body : undefined)
  })
}
