import { type IncomingHttpHeaders, request } from 'node:http'
import { withService } from '@tollbase/testing/per-engine'
import type { TestService } from '@tollbase/testing/service'
import { describe, expect, test } from 'vitest'

describe('getMetrics', () =>
  withService((service) => {
    test('metrics are text that names no key of an application', async () => {
      const app = await service().createApp()
      await service().request('GET', `/api/apps/${app.appId}/keys?api_key=${app.key}`)
      const metrics = await service().request('GET', '/metrics')
      expect(metrics.headers.get('content-type')).toContain('text/plain')
      expect(metrics.text).toMatch(/^# (HELP|TYPE) /m)
      expect(metrics.text).not.toContain(app.key)
    })

    test('metrics are for the operator and for loopback, and not for a caller who comes through a proxy', async () => {
      const forwarded = { 'x-forwarded-for': '192.0.2.1' }
      const refused = await service().request('GET', '/metrics', { headers: forwarded })
      expect(refused.status).toBe(401)
      const operator = { ...forwarded, ...service().operator }
      expect((await service().request('GET', '/metrics', { headers: operator })).status).toBe(200)
    })

    test('metrics are not for a web page that is open on the same machine', async () => {
      const { port } = new URL(service().url)
      const own = [`localhost:${port}`, `127.0.0.1:${port}`, `[::1]:${port}`, '127.0.0.2']
      for (const host of own) expect((await readHead(service(), { host }))[0], host).toBe(200)
      const pages: Readonly<Record<string, string>>[] = [
        { origin: 'https://evil.example' },
        { origin: 'null' },
        { origin: `http://127.0.0.1:${port}` },
        { 'sec-fetch-site': 'cross-site' },
        // Another port of localhost is the same site.
        { 'sec-fetch-site': 'same-site' },
        { host: `evil.example:${port}` },
        { host: `127.0.0.1.evil.example:${port}` },
        { host: `localhost.:${port}` },
        { 'x-real-ip': '192.0.2.1' },
      ]
      for (const headers of pages)
        expect((await readHead(service(), headers))[0], JSON.stringify(headers)).toBe(401)
      const typed = { 'sec-fetch-site': 'none' }
      expect((await readHead(service(), typed))[0]).toBe(200)
    })

    test('metrics bear no header that lets a page read them, to nobody', async () => {
      for (const path of ['/metrics', '/metrics/', '//metrics?x=1']) {
        for (const method of ['GET', 'HEAD', 'OPTIONS']) {
          const [, headers] = await readHead(service(), service().operator, { method, path })
          expect(Object.keys(headers), `${method} ${path}`).toContain('x-request-id')
          expect(Object.keys(headers).join()).not.toContain('access-control')
        }
      }
      const [, headers] = await readHead(service(), {}, { method: 'OPTIONS', path: '/list' })
      expect(headers['access-control-allow-origin']).toBe('*')
    })
  }))

/** Sends by Node's own client: `fetch` sets the Host itself. */
function readHead(
  service: TestService,
  headers: Readonly<Record<string, string>>,
  { method, path }: { method: string; path: string } = { method: 'GET', path: '/metrics' },
): Promise<[number, IncomingHttpHeaders]> {
  const { hostname, port } = new URL(service.url)
  return new Promise((resolve, reject) => {
    const sent = request({ hostname, port, method, path, headers, agent: false }, (reply) => {
      reply.resume()
      resolve([reply.statusCode ?? 0, reply.headers])
    })
    sent.on('error', reject)
    sent.end()
  })
}
