import { beforeAll, expect, test } from 'vitest'
import { routes } from '../support/contract-replies.ts'
import { withService } from '../support/per-engine.ts'
import type { TestReply, TestService } from '../support/service.ts'
import type { Credential, Request } from './credentials.ts'
import { allowedUpstreams, makeExample, openScene, type Scene } from './scene.ts'

/** The name is as long as `private`, so that only the name itself can differ. */
const absent = 'missing'
const secret = 'xyzzy'

/** Endpoints that name the collection in their body. */
const byBody = ['listRecords', 'querySql', 'storeRecords', 'quotePrice']

withService(
  (service) => {
    let scene: Scene
    const by = (standing: string) => {
      const found = scene.credentials.find((one) => one.standing === standing)
      if (found === undefined) throw new Error(`nobody is ${standing}`)
      return found
    }
    beforeAll(async () => {
      scene = await openScene(service())
      await service().request('POST', '/store?wait=true', {
        body: { root: `${scene.app.appId}::private`, data: [{ id: 'a', n: 1, text: secret }] },
        headers: scene.app.headers,
      })
    })

    const addressing = routes.filter(
      ([operation, route]) => route.path.includes(':collection') || byBody.includes(operation),
    )

    test.each(addressing)(
      '%s answers outsiders for a private collection as for one that is not there, to the byte',
      async (operation, route) => {
        const { requests } = makeExample([operation, route], { scene, kind: 'private' })
        for (const request of requests) {
          for (const variant of listVariants(request)) {
            for (const standing of ['nobody', 'stranger', 'wallet', 'dead']) {
              const hidden = await ask(service(), variant, by(standing))
              const gone = await ask(service(), renamed(variant), by(standing))
              const what = `${variant.method} ${variant.path} by ${standing}`
              expect(hidden.status, what).toBeGreaterThan(399)
              expect(shown(hidden), what).toEqual(shown(gone))
            }
          }
        }
      },
    )

    test('no list shows outsiders that a private collection exists', async () => {
      const at = `/api/apps/${scene.app.appId}`
      const rules = ['private', 'key', 'free'].map((collection) => ({
        target: { collection },
        operation: 'write',
        model: 'per_record',
        amount: '5',
      }))
      const { headers } = scene.app
      await service().request('PUT', `${at}/pricing`, { body: { rules }, headers })
      const own = await service().request('GET', `${at}/pricing`, { headers })
      expect(own.body.rules).toEqual(rules)
      for (const path of ['/collections', '/collections?include_stats=true', '', '/pricing']) {
        for (const standing of ['nobody', 'stranger', 'wallet']) {
          const request = { method: 'GET', path: at + path }
          const { text, status } = await ask(service(), request, by(standing))
          expect(status).toBe(200)
          expect(text, path).not.toMatch(/private"|"key"/)
        }
      }
    })

    test.each(['Write', 'Pay', 'operator'])(
      'no endpoint shows the records of a private collection to %s',
      async (standing) => {
        for (const one of addressing) {
          const { requests } = makeExample(one, { scene, kind: 'private' })
          for (const request of requests.slice(0, 1)) {
            const { text } = await ask(service(), request, by(standing))
            expect(text, request.path).not.toContain(secret)
            expect(text).not.toContain(Buffer.from(`"${secret}"`).toString('base64').slice(2, 8))
          }
        }
      },
    )

    test('an archived application answers as one that never was', async () => {
      const gone = await openScene(service())
      const path = `/api/apps/${gone.app.appId}`
      await service().request('DELETE', path, { headers: gone.app.headers })
      const never = 'n'.repeat(gone.app.appId.length)
      for (const one of addressing) {
        const { requests } = makeExample(one, { scene: gone, kind: 'free' })
        for (const request of requests) {
          const of = (app: string): Request => ({
            ...request,
            path: request.path.replace(gone.app.appId, app),
            ...(request.raw && { raw: request.raw.replace(gone.app.appId, app) }),
          })
          const [archived, unknown] = [
            await ask(service(), request, by('nobody')),
            await ask(service(), of(never), by('nobody')),
          ]
          const mask = (reply: TestReply) => shown(reply).text.replaceAll(/app-\d+|n{4,}/g, '?')
          expect(archived.status, request.path).toBe(unknown.status)
          expect(mask(archived), request.path).toBe(mask(unknown))
        }
      }
    })
  },
  { config: { allowedUpstreams } },
)

/** The request, and its variants by which one might find out more. */
function listVariants(request: Request): Request[] {
  const and = request.path.includes('?') ? '&' : '?'
  const read = request.raw?.includes('"limit":1') ? request.raw : undefined
  const more = read
    ? [
        { ...request, raw: read.replace('"limit":1', '"limit":0') },
        { ...request, raw: read.replace('"limit":1', '"limit":-1') },
        { ...request, raw: read.replace('"limit":1', '"include_history":true,"find":{"n":1}') },
      ]
    : []
  return [request, { ...request, path: `${request.path}${and}include_stats=true` }, ...more]
}

function renamed(request: Request): Request {
  const { path, raw } = request
  return {
    ...request,
    path: path.replace('/private', `/${absent}`),
    ...(raw !== undefined && { raw: raw.replace('private', absent) }),
  }
}

async function ask(
  service: TestService,
  request: Request,
  { headers }: Credential,
): Promise<TestReply> {
  const { method, path, raw } = request
  return service.request(method, path, {
    headers: await headers(request),
    ...(raw !== undefined && { raw }),
  })
}

/** Removes from a reply the parts that are new in every one: ids, times, and the remaining quota. */
function shown({ status, text, headers }: TestReply) {
  const known = [...headers].filter(([name]) => !/^(x-request-id|date|ratelimit)/.test(name))
  const masked = text
    .replace(/"request_id":"[^"]*"/, '"request_id":""')
    .replaceAll('private', '?')
    .replaceAll(absent, '?')
  return { status, text: masked, headers: Object.fromEntries(known) }
}
