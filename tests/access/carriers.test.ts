import { request } from 'node:http'
import { beforeAll, describe, expect, test } from 'vitest'
import { withService } from '../support/per-engine.ts'
import type { TestApp } from '../support/service.ts'

type Carried = { readonly headers?: Readonly<Record<string, string>>; readonly query?: string }
type Carrier = (key: string) => Carried

/** The ways in which a key of an application may be sent. */
const carriers: Readonly<Record<string, Carrier>> = {
  'X-App-Key': (key) => ({ headers: { 'x-app-key': key } }),
  'X-API-Key': (key) => ({ headers: { 'x-api-key': key } }),
  Bearer: (key) => ({ headers: { authorization: `Bearer ${key}` } }),
  'bearer in small letters': (key) => ({ headers: { authorization: `bearer  ${key} ` } }),
  api_key: (key) => ({ query: `?api_key=${key}` }),
}
/** The ways of a key that pays. */
const payers: Readonly<Record<string, Carrier>> = {
  'X-Agent-Key': (key) => ({ headers: { 'x-agent-key': key } }),
  'X-User-Key': (key) => ({ headers: { 'x-user-key': key } }),
}
const all = Object.entries({ ...carriers, ...payers })

describe('the carriers of a key', () =>
  withService((service) => {
    let app: TestApp
    let other: TestApp
    beforeAll(async () => {
      app = await service().createApp()
      other = await service().createApp()
    })
    const send = (path: string, ...carried: readonly Carried[]) => {
      const query = carried.map((one) => one.query ?? '').join('')
      const headers = Object.assign({}, ...carried.map((one) => one.headers))
      return service().request('GET', path + query.replaceAll(/(?<=.)\?/g, '&'), { headers })
    }
    const inside = (...carried: readonly Carried[]) =>
      send(`/api/apps/${app.appId}/keys`, ...carried)
    const openly = (...carried: readonly Carried[]) => send(`/api/apps/${app.appId}`, ...carried)

    test.each(all)('%s carries a key', async (_, carrier) => {
      expect((await inside(carrier(app.key))).status).toBe(200)
      expect((await openly(carrier(app.key))).body).toHaveProperty('owner_address')
      const stranger = await openly(carrier(other.key))
      expect(stranger.status).toBe(200)
      expect(stranger.body).not.toHaveProperty('owner_address')
    })

    test.each(all)('a wrong key in %s is 401 on public paths too', async (_, carrier) => {
      for (const key of ['app_wrong', `${app.key}x`, app.key.toLowerCase(), app.keyHash]) {
        expect((await openly(carrier(key))).status, key).toBe(401)
        expect((await inside(carrier(key))).status).toBe(401)
        expect((await send('/health', carrier(key))).status).toBe(401)
      }
    })

    test.each(all)('%s without a key counts as absent', async (_, carrier) => {
      const empty = carrier('')
      const reply = await openly(empty)
      expect(reply.status).toBe(200)
      expect(reply.body).not.toHaveProperty('owner_address')
      expect((await inside(empty)).status).toBe(401)
      expect((await inside(empty, { headers: { 'x-app-key': app.key } })).status).toBe(200)
    })

    test('every two carriers say the same, or the request is refused', async () => {
      for (const family of [carriers, payers]) {
        const list = Object.entries(family)
        for (const [name, first] of list) {
          for (const [beside, second] of list) {
            const [one, two] = [first(app.key), second(other.key)]
            if (sameCarrier(one, two)) continue
            const what = `${name} beside ${beside}`
            expect((await inside(one, second(app.key))).status, what).toBe(200)
            for (const path of [inside, openly]) {
              const reply = await path(one, two)
              expect(reply.status, what).toBe(400)
              expect(reply.body.code).toBe('CREDENTIALS_CONFLICT')
            }
          }
        }
      }
    })

    test('two different keys in one address are refused, and the same key twice is one', async () => {
      const twice = (second: string) => inside({ query: `?api_key=${app.key}&api_key=${second}` })
      expect((await twice(app.key)).status).toBe(200)
      expect((await twice(other.key)).body.code).toBe('CREDENTIALS_CONFLICT')
    })

    test('a header that comes twice never lets a second key in', async () => {
      for (const name of ['X-App-Key', 'X-API-Key', 'X-Agent-Key']) {
        const path = `/api/apps/${app.appId}/keys`
        expect(await readStatus(`${service().url}${path}`, [name, other.key, name, app.key])).toBe(
          401,
        )
        expect(await readStatus(`${service().url}${path}`, [name, app.key, name, app.key])).toBe(
          401,
        )
      }
    })

    test('a key in the address is not written into an error', async () => {
      const { text, status } = await service().request('GET', `/nowhere?api_key=${app.key}`)
      expect(status).toBe(404)
      expect(text).not.toContain(app.key)
    })

    test('both prefixes, and doubled or trailing slashes, reach the same endpoint with the same checks', async () => {
      const paths = [
        `/apps/${app.appId}/keys`,
        `/api/apps/${app.appId}/keys/`,
        `//api/apps/${app.appId}//keys`,
        `/apps//${app.appId}/keys/`,
      ]
      for (const path of paths) {
        const reply = await service().request('GET', path, { headers: app.headers })
        expect(reply.status, path).toBe(200)
        expect((await service().request('GET', path)).status, path).toBe(401)
      }
    })
  }))

function sameCarrier(one: Carried, two: Carried): boolean {
  const names = (carried: Carried) => Object.keys(carried.headers ?? { query: '' }).join()
  return names(one) === names(two)
}

/** Sends by Node's own client: `fetch` would join two headers of one name before it sends them. */
function readStatus(url: string, headers: readonly string[]): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { headers: [...headers, 'Host', new URL(url).host] }, (reply) => {
      reply.resume()
      resolve(reply.statusCode ?? 0)
    })
    sent.on('error', reject)
    sent.end()
  })
}
