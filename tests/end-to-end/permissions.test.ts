import type { Route } from '@tollbase/contract/route'
import { describe, expect, test } from 'vitest'
import { routes } from '../support/contract-replies.ts'
import { withService } from '../support/per-engine.ts'
import type { TestService } from '../support/service.ts'

type Caller = { readonly name: string; readonly headers: Readonly<Record<string, string>> }

/** What each caller's credential is worth to the application, by the table of the interface. */
const holds: Readonly<Record<string, readonly string[]>> = {
  Read: ['Read'],
  Write: ['Write'],
  Admin: ['Admin', 'Write', 'Read'],
  Pay: [],
}

/** The callers of a new application, made anew for every endpoint: some endpoints end keys or the application. */
async function callersOf(service: TestService, other: string): Promise<[string, Caller[]]> {
  const app = await service.createApp()
  const keys = await Promise.all(
    Object.keys(holds).map(async (permission) => {
      const { body } = await service.request('POST', `/api/apps/${app.appId}/keys`, {
        body: { name: permission, permissions: [permission] },
        headers: app.headers,
      })
      return { name: permission, headers: { 'x-app-key': body.key } }
    }),
  )
  return [
    app.appId,
    [
      { name: 'none', headers: {} },
      { name: 'wrong', headers: { 'x-app-key': `app_${'x'.repeat(43)}` } },
      { name: 'other', headers: { 'x-app-key': other } },
      ...keys,
      { name: 'operator', headers: service.operator },
    ],
  ]
}

/** 401 or 403 where the caller is refused for what it is; undefined where it may go on. */
function refusal(route: Route, caller: string): number | undefined {
  if (caller === 'wrong') return 401
  if (route.access === 'public' || route.access === 'by-policy') return undefined
  if (caller === 'none') return 401
  if (caller === 'operator') return undefined
  if (route.access === 'operator' || route.access === 'owner') return 403
  if (caller === 'other') return 401
  return holds[caller]?.includes(route.access) ? undefined : 403
}

function urlOf(route: Route, app: string): string {
  return route.path
    .replace(':app', app)
    .replace(':key_hash', '0'.repeat(64))
    .replace(':height', '999')
    .replace(/:\w+/g, 'unknown')
}

describe('who may do what, by the contract', () =>
  withService((service) => {
    const ofApplications = routes.filter(([, route]) => route.path.includes(':app'))
    /** Those who may come last: one of them archives the application. */
    const refusedFirst = (route: Route, callers: readonly Caller[]) => [
      ...callers.filter(({ name }) => refusal(route, name) !== undefined),
      ...callers.filter(({ name }) => refusal(route, name) === undefined),
    ]

    test.each(ofApplications)(
      '%s refuses those who may not, before it judges the body',
      async (_operationId, route) => {
        const other = await service().createApp()
        const [app, callers] = await callersOf(service(), other.key)
        for (const caller of refusedFirst(route, callers)) {
          const { status, body } = await service().request(route.method, urlOf(route, app), {
            ...(route.body && { raw: '{"this is": not JSON' }),
            headers: caller.headers,
          })
          const expected = refusal(route, caller.name)
          const said = `${caller.name}: ${JSON.stringify(body)}`
          if (expected !== undefined) expect(status, said).toBe(expected)
          else if (route.body) expect(status, said).toBe(400)
          else expect([200, 400, 404, 409], said).toContain(status)
        }
      },
    )

    test.each(ofApplications.filter(([, route]) => route.access !== 'public'))(
      '%s of an application that is not there is 404 to the operator',
      async (_operationId, route) => {
        const { status, body } = await service().request(route.method, urlOf(route, 'not-there'), {
          ...(route.body && { body: { root: 'not-there::x', name: 'x', data: [{}] } }),
          headers: service().operator,
        })
        expect(status, JSON.stringify(body)).toBe(404)
      },
    )

    test('a store without any key, or with a wrong one, is refused before its body is judged', async () => {
      const store = (headers: Readonly<Record<string, string>>) =>
        service().request('POST', '/store', { raw: '{"root"', headers })
      expect((await store({})).status).toBe(401)
      expect((await store({ 'x-app-key': 'app_wrong' })).status).toBe(401)
      expect((await store((await service().createApp()).headers)).status).toBe(400)
    })

    test('a store needs Write of that application', async () => {
      const [app, callers] = await callersOf(service(), (await service().createApp()).key)
      const expected: Readonly<Record<string, number>> = {
        none: 401,
        wrong: 401,
        other: 401,
        Read: 403,
        Pay: 403,
        Write: 202,
        Admin: 202,
        operator: 202,
      }
      for (const { name, headers } of callers) {
        const body = { root: `${app}::notes`, data: [{ from: name }] }
        const { status } = await service().request('POST', '/store', { body, headers })
        expect(status, name).toBe(expected[name])
      }
    })

    test.each([
      ['public', { none: 200, other: 200, Read: 200, Admin: 200, Write: 200 }],
      ['key', { none: 401, other: 401, Read: 200, Admin: 200, Write: 403 }],
      ['private', { none: 404, other: 404, Read: 200, Admin: 200, Write: 403 }],
    ])('reading a %s collection: %j', async (read, expected) => {
      const [app, callers] = await callersOf(service(), (await service().createApp()).key)
      const admin = callers.find(({ name }) => name === 'Admin')?.headers ?? {}
      await service().request('POST', `/api/apps/${app}/collections`, {
        body: { name: 'notes', access_policy: { read } },
        headers: admin,
      })
      await service().request('POST', '/store?wait=true', {
        body: { root: `${app}::notes`, data: [{ id: 'a' }] },
        headers: admin,
      })
      for (const { name, headers } of callers) {
        const wanted = Object.entries(expected).find(([caller]) => caller === name)?.[1]
        if (wanted === undefined) continue
        const listed = await service().request('POST', '/list', {
          body: { root: `${app}::notes` },
          headers,
        })
        expect(listed.status, `list by ${name}`).toBe(wanted)
        if (wanted !== 200) expect(listed.body).not.toHaveProperty('records')
        const path = `/api/apps/${app}/collections/notes/records/a`
        const { status } = await service().request('GET', path, { headers })
        expect(status, `get by ${name}`).toBe(wanted)
      }
    })

    test('what a stranger may not know of answers like what is not there, word for word', async () => {
      const app = await service().createApp()
      await service().request('POST', `/api/apps/${app.appId}/collections`, {
        body: { name: 'hidden', access_policy: 'private' },
        headers: app.headers,
      })
      const ask = async (name: string) => {
        const path = `/api/apps/${app.appId}/collections/${name}`
        const replies = [
          await service().request('GET', path),
          await service().request('GET', `${path}/preview`),
          await service().request('GET', `${path}/records/a`),
          await service().request('POST', '/list', { body: { root: `${app.appId}::${name}` } }),
        ]
        return replies.map(({ status, body }) => ({
          status,
          body: JSON.stringify({ ...body, request_id: '' }).replaceAll(name, '?'),
        }))
      }
      expect(await ask('hidden')).toEqual(await ask('absent'))
      const listed = await service().request('GET', `/api/apps/${app.appId}/collections`)
      expect(listed.body).toEqual([])
    })

    test('the operator administers, and does not read private records', async () => {
      const app = await service().createApp()
      await service().request('POST', `/api/apps/${app.appId}/collections`, {
        body: { name: 'hidden', access_policy: 'private' },
        headers: app.headers,
      })
      await service().request('POST', '/store?wait=true', {
        body: { root: `${app.appId}::hidden`, data: [{ id: 'a', secret: 'xyzzy' }] },
        headers: app.headers,
      })
      const path = `/api/apps/${app.appId}/collections/hidden`
      const reads = [
        await service().request('POST', '/list', {
          body: { root: `${app.appId}::hidden` },
          headers: service().operator,
        }),
        ...(await Promise.all(
          ['/records/a', '/records/a/history', '/records/a/proof', '/preview'].map((one) =>
            service().request('GET', path + one, { headers: service().operator }),
          ),
        )),
      ]
      for (const { text } of reads) {
        expect(text).not.toContain('xyzzy')
        expect(text).not.toContain(Buffer.from('"secret":"xyzzy"').toString('base64').slice(4, 16))
      }
      const described = await service().request('GET', path, { headers: service().operator })
      expect(described.status).toBe(200)
    })
  }))
