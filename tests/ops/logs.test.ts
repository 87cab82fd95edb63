import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { createLog } from '../../packages/server/src/operator/log.ts'
import { ask, createFundedBuyer, list, makeBuyer, quote } from '../support/buyer.ts'
import { openMarket } from '../support/market.ts'
import { type Json, startTestService, type TestService } from '../support/service.ts'
import { makeTestWallet } from '../support/wallet.ts'

type Line = Readonly<Record<string, Json>>

describe('the log', () => {
  let text = ''
  let service: TestService
  beforeAll(async () => {
    const write = (line: string) => {
      text += line
      return true
    }
    service = await startTestService({
      devnet: true,
      config: { accessLog: true },
      log: createLog('trace', { write }),
    })
  })
  afterAll(() => service?.close())

  const lines = (): Line[] =>
    text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line))
  /** Answers are logged when they are complete, which may be a moment after the client has them. */
  const waitForLine = async (requestId: string | null): Promise<Line> => {
    for (let tries = 0; tries < 100; tries++) {
      const found = lines().find((line) => line.msg === 'request' && line.requestId === requestId)
      if (found !== undefined) return found
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
    throw new Error(`no line of request ${requestId}`)
  }

  test('a proxy that is not trusted is named once', async () => {
    const headers = { 'x-forwarded-for': '192.0.2.1' }
    for (const _ of [1, 2]) await service.request('GET', '/health', { headers })
    const said = lines().filter(({ msg }) => /proxy that trust_proxy does not name/.test(msg))
    expect(said).toMatchObject([{ proxy: '127.0.0.1' }])
  })

  test('the log has one line for each request, with what an operator looks for', async () => {
    const app = await service.createApp()
    const path = `/apps/${app.appId}/tasks?api_key=${app.key}&limit=1`
    const reply = await service.request('GET', path)
    const line = await waitForLine(reply.headers.get('x-request-id'))
    expect(line).toMatchObject({
      level: 30,
      method: 'GET',
      operation: 'listTasks',
      route: '/apps/:app/tasks',
      path: `/apps/${app.appId}/tasks?api_key=***&limit=***`,
      status: 200,
      bytes: Buffer.byteLength(reply.text),
      app: app.appId,
      caller: 'key',
      key: app.key.slice(0, 8),
      address: '127.0.0.1',
    })
    expect(line.ms).toBeGreaterThan(0)
  })

  test('a line names the application that a body names, and the kind of caller', async () => {
    const market = await openMarket(service)
    const listed = await service.request('POST', '/list', { body: { root: market.root, limit: 1 } })
    expect(await waitForLine(listed.headers.get('x-request-id'))).toMatchObject({
      operation: 'listRecords',
      app: market.appId,
      caller: 'anonymous',
    })
    const all = await service.request('GET', '/api/apps', { headers: service.operator })
    expect(await waitForLine(all.headers.get('x-request-id'))).toMatchObject({ caller: 'operator' })
    const gone = await service.request('GET', '/nowhere')
    expect(await waitForLine(gone.headers.get('x-request-id'))).toMatchObject({
      status: 404,
      path: '/nowhere',
    })
    const broken = await service.request('GET', '/%')
    expect(await waitForLine(broken.headers.get('x-request-id'))).toMatchObject({ status: 400 })
  })

  test('no line has the key of a record, the id of a blob or the value of a parameter, whichever way a request names it', async () => {
    const app = await service.createApp()
    const base = `/api/apps/${app.appId}`
    for (const [method, path, logged] of [
      [
        'GET',
        '/collections/notes/records/kq7Zw2/history',
        '/collections/notes/records/***/history',
      ],
      ['GET', '/collections/records/records/kq7Zw2', '/collections/records/records/***'],
      ['GET', '/collections/notes//records//kq7Zw2', '/collections/notes//records//***'],
      ['DELETE', '/collections/notes/records/kq7Zw2', '/collections/notes/records/***'],
      ['GET', '/collections/notes/records/%zzkq7Zw2', '/collections/notes/records/***'],
      ['GET', '/collections/notes/%72ecords/kq7Zw2', '/collections/notes/%72ecords/***'],
      ['GET', '/c%6Fllections/notes/records/kq7Zw2', '/c%6Fllections/notes/records/***'],
      ['GET', '/collections/notes/records%2FkZw', '/collections/notes/***'],
      ['GET', '/blobs/scans/blob_kq7Zw2?wait=true', '/blobs/scans/***?wait=***'],
      ['GET', '/blobs/scans/uploads/upload_1', '/blobs/scans/uploads/upload_1'],
      ['GET', '/chain/proof?collection=a&key=kq7Zw2', '/chain/proof?collection=***&key=***'],
      ['GET', '/chain/proof?k%65y=kq7Zw2&kq7%20Zw2&n', '/chain/proof?key=***&***&n=***'],
      ['GET', '/queries/by-city?city=kq7Zw2', '/queries/by-city?city=***'],
    ] as const) {
      const reply = await service.request(method, base + path, { headers: app.headers })
      const line = await waitForLine(reply.headers.get('x-request-id'))
      expect(line.path).toBe(base + logged)
    }
  })

  test('a line takes the id that a request brings, if it is one', async () => {
    const withId = async (id: string) => {
      const reply = await service.request('GET', '/nowhere', { headers: { 'x-request-id': id } })
      expect(reply.body.request_id).toBe(reply.headers.get('x-request-id'))
      await waitForLine(reply.body.request_id)
      return reply.body.request_id
    }
    for (const id of ['abcd.EF-01_2', 'x'.repeat(64), '12345678']) expect(await withId(id)).toBe(id)
    for (const id of [
      'short',
      'x'.repeat(65),
      'with space',
      'new"quote"',
      '../../etc',
      'äöüäöüäöü',
    ])
      expect(await withId(Buffer.from(id).toString('latin1'))).toMatch(/^[0-9a-f]{24}$/)
  })

  test('the log tells of a payment by its id, in the lines of the requests that it was made with', async () => {
    const market = await openMarket(service, { price: { per_row: '100' } })
    const buyer = await createFundedBuyer(service)
    const bought = await buyer.buy(service, list({ root: market.root, limit: 2 }))
    expect(bought.status, bought.text).toBe(200)
    expect(await waitForLine(bought.headers.get('x-request-id'))).toMatchObject({
      payment: bought.headers.get('x-payment-id'),
    })
  })

  test('the log holds no secret of any request, by whatever way it was carried', async () => {
    const market = await openMarket(service, { price: { per_row: '100' } })
    const secrets: string[] = [market.key, service.operatorKey]
    const keep = (secret: string) => {
      secrets.push(secret)
      return secret
    }
    const at = `/api/apps/${market.appId}`
    // Keys in each carrier, right and wrong ones, and keys in wrong places.
    const wrong = keep(`app_${'Wr0ngK3yText'.repeat(3)}1234567`)
    for (const key of [market.key, wrong]) {
      for (const name of ['x-app-key', 'x-api-key', 'x-agent-key', 'x-user-key'])
        await service.request('GET', `${at}/keys`, { headers: { [name]: key } })
      await service.request('GET', `${at}/keys`, { headers: { authorization: `Bearer ${key}` } })
      for (const path of [
        `${at}/keys?api_key=${key}`,
        `${at}/keys?api%5Fkey=${key}`,
        `${at}/keys?%61pi_key=${key}&x=1`,
        `${at}/keys?key=${key}`,
        `/api/apps/${key}`,
        `/${key}/nowhere?api_key=${key}`,
      ])
        await service.request('GET', path)
    }
    await service.request('GET', `${at}?api_key=${service.operatorKey}`)
    await service.request('GET', `/${service.operatorKey}`)
    // Each character of base64url may stand anywhere in a key.
    for (const key of [
      'op_uN_Xt8dc-rSxueqKVaB6HseCmJkpUQwLnWoOrObV4Gw',
      'op_-_-_abcdefghijklmnopqrstuvwxyz',
    ])
      await service.request('GET', `/${keep(key)}`)
    await service.request('GET', `${at}/keys?api_key=${keep('one.other-secret-of-any-form')}`)
    // Keys that are created.
    const made = await service.request('POST', `${at}/keys`, {
      headers: market.headers,
      body: { name: 'made', permissions: ['Read'] },
    })
    keep(made.body.key)
    // A wallet's signature, good, repeated, and wrong.
    const wallet = makeTestWallet()
    const path = '/api/apps'
    const timestamp = Math.floor(service.world.now() / 1000)
    const signed = await wallet.sign({ origin: service.url, method: 'GET', path, timestamp })
    keep(signed['x-signature'] ?? '')
    for (const url of [path, path, `${path}?other=1`])
      await service.request('GET', url, { headers: signed })
    // Payments: good, repeated, for something else, of nobody, and unreadable.
    const buyer = await createFundedBuyer(service)
    const asked = list({ root: market.root, limit: 2 })
    const required = await quote(service, asked)
    const payments = [
      await buyer.payV2(required),
      await buyer.payV1(required),
      await makeBuyer().payV2(required),
    ]
    for (const header of payments) {
      const [text = ''] = Object.values(header)
      keep(text)
      const { payload } = JSON.parse(Buffer.from(text, 'base64').toString())
      keep(payload.signature)
      for (const limit of [2, 2, 3]) await ask(service, list({ root: market.root, limit }), header)
    }
    await ask(service, asked, { 'x-payment': keep('bm90IGEgcGF5bWVudCBhdCBhbGw=') })
    for (const name of ['verify', 'settle'])
      await service.request('POST', `/api/payments/${name}`, {
        body: {
          x402Version: 2,
          paymentPayload: JSON.parse(
            Buffer.from(Object.values(payments[0] ?? {})[0] ?? '', 'base64').toString(),
          ),
          paymentRequirements: {},
        },
      })
    // Bodies: of good and of refused requests.
    const body = keep('a-secret-inside-of-a-record')
    for (const root of [market.root, `${market.appId}::other`, 'not a root']) {
      const data = [{ id: 'secret', note: body }]
      await service.request('POST', '/store?wait=true', {
        headers: market.headers,
        body: { root, data },
      })
      await service.request('POST', '/list', { body: { root, find: { note: { is: body } } } })
    }
    await service.request('POST', '/list', { raw: `{"root": "${body}` })
    await waitForLine((await service.request('GET', '/last')).headers.get('x-request-id'))
    expect(lines().length).toBeGreaterThan(60)
    for (const secret of secrets) {
      expect(secret.length).toBeGreaterThan(15)
      expect(text.includes(secret), `a line with ${secret}`).toBe(false)
      const hash = createHash('sha256').update(secret).digest('hex')
      expect(text.includes(hash), `a line with the hash of ${secret}`).toBe(false)
    }
  })

  test('an operator finds an internal failure by the id that the caller was told', async () => {
    const app = await service.createApp()
    const tenant = await service.running.service.tenants.load(app.appId)
    await service.request('POST', `/api/apps/${app.appId}/collections`, {
      headers: app.headers,
      body: { name: 'broken' },
    })
    const { table } = tenant.data.catalog.byName.get('broken') ?? { table: '' }
    await service.database.execute(
      sql`ALTER TABLE ${sql.id(tenant.schema, table)} DROP COLUMN body`,
    )
    const reply = await service.request('POST', '/list', {
      body: { root: `${app.appId}::broken` },
      headers: app.headers,
    })
    expect(reply.status).toBe(500)
    const failed = lines().filter(
      (line) => line.msg === 'request failed' && line.requestId === reply.body.request_id,
    )
    expect(failed).toHaveLength(1)
    expect(failed[0]).toMatchObject({ operation: 'listRecords', code: 'INTERNAL' })
    expect(failed[0]?.error).toMatchObject({ code: '42703', message: expect.any(String) })
    expect(Object.keys(failed[0]?.error).toSorted()).toEqual(['code', 'message', 'name', 'stack'])
    expect(await waitForLine(reply.body.request_id)).toMatchObject({ status: 500 })
  })
})
