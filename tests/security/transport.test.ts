import { limits } from '@tollbase/contract/limits'
import { beforeAll, describe, expect, test } from 'vitest'
import { type Market, openMarket } from '../support/market.ts'
import { withService } from '../support/per-engine.ts'
import type { Json } from '../support/service.ts'
import { exchange, makeRawRequest, type RawReply } from './raw-http.ts'

/** Checks for one reply in the form of every error. */
function expectRefusal(replies: readonly RawReply[], status: number | readonly number[]): Json {
  const [reply] = replies
  expect(reply, 'no reply at all').toBeDefined()
  expect([status].flat(), reply?.text).toContain(reply?.status)
  expect(reply?.headers['content-type']).toContain('application/json')
  const body = JSON.parse(reply?.text ?? '')
  expect(body).toMatchObject({
    error: expect.any(String),
    code: expect.stringMatching(/^[A-Z_]+$/),
    request_id: expect.stringMatching(/^[\w.-]{8,64}$/),
  })
  return body
}

describe('requests that no client would send', () => {
  withService(
    (service) => {
      let market: Market
      let list: string
      beforeAll(async () => {
        market = await openMarket(service(), { price: { per_access: '1000' } })
        list = JSON.stringify({ root: market.root })
      })
      const send = (line: string, headers: readonly string[] = [], body?: string) =>
        exchange(service().url, makeRawRequest(line, headers, body))

      test.each([
        ['no HTTP at all', 'hello\r\n\r\n'],
        ['another protocol', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
        ['a version that is none', 'GET / HTTP/9.9\r\nHost: a\r\n\r\n'],
        ['a header without a name', 'GET / HTTP/1.1\r\nHost: a\r\n: x\r\n\r\n'],
        ['a header with NUL', 'GET / HTTP/1.1\r\nHost: a\r\nX-App-Key: a\u0000b\r\n\r\n'],
        [
          'a length that is no number',
          'POST /list HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n',
        ],
        [
          'two lengths',
          'POST /list HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}',
        ],
        [
          'a length and chunks',
          'POST /list HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
        ],
        [
          'chunks that are none',
          'POST /list HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n',
        ],
        ['a blank in the address', 'GET /a b HTTP/1.1\r\nHost: a\r\n\r\n'],
      ])('%s is refused with 400, and the connection ends', async (_, text) => {
        expectRefusal(await exchange(service().url, text), 400)
      })

      test('headers of a megabyte, and an address of one, are 431, and headers that fit are read', async () => {
        const huge = 'x'.repeat(1024 * 1024)
        const byHeader = await send('GET / HTTP/1.1', [`X-PAYMENT: ${huge}`])
        expect(expectRefusal(byHeader, 431).code).toBe('HEADERS_TOO_LARGE')
        const byAddress = await send(`GET /?x=${huge} HTTP/1.1`)
        expect(expectRefusal(byAddress, 431).code).toBe('HEADERS_TOO_LARGE')
        const [fits] = await send(`GET /?x=${'x'.repeat(limits.headerBytesMax - 200)} HTTP/1.1`)
        expect(fits?.status).toBe(400)
        expect(fits?.text).toContain('/query/x is not known here')
      })

      test('a body that comes in chunks is read up to the limit, and one byte more is 413', async () => {
        const body = (bytes: number) => `{"root":"${'x'.repeat(bytes - 11)}"}`
        const sendInChunks = (text: string) => {
          const size = 100_000
          const chunks = Array.from({ length: Math.ceil(text.length / size) }, (_, at) => {
            const part = text.slice(at * size, (at + 1) * size)
            return `${part.length.toString(16)}\r\n${part}\r\n`
          })
          const head =
            'POST /list HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked'
          return exchange(service().url, `${head}\r\n\r\n${chunks.join('')}0\r\n\r\n`)
        }
        const most = expectRefusal(await sendInChunks(body(limits.plainBodyBytesMax)), 400)
        expect(most.details.field).toBe('/root')
        const past = await sendInChunks(body(limits.plainBodyBytesMax + 1))
        expect(expectRefusal(past, 413).code).toBe('PAYLOAD_TOO_LARGE')
      })

      test('a payment header of the largest size is read, and one byte more is refused and named', async () => {
        const header = (bytes: number) => [`X-PAYMENT: ${'A'.repeat(bytes)}`]
        const at = expectRefusal(
          await send('POST /list HTTP/1.1', header(limits.paymentHeaderBytesMax), list),
          400,
        )
        expect(at).toMatchObject({ code: 'PAYMENT_MALFORMED', details: { field: 'X-PAYMENT' } })
        expect(at.error).not.toContain('longer than')
        const past = expectRefusal(
          await send('POST /list HTTP/1.1', header(limits.paymentHeaderBytesMax + 1), list),
          400,
        )
        expect(past.error).toContain('longer than')
      })

      const base64 = (text: string) => Buffer.from(text).toString('base64')
      test.each<[string, (valid: string) => readonly string[]]>([
        [
          'two payment headers of one version',
          (valid) => [`X-PAYMENT: ${valid}`, `X-PAYMENT: ${valid}`],
        ],
        ['both versions', (valid) => [`X-PAYMENT: ${valid}`, `PAYMENT-SIGNATURE: ${valid}`]],
        ['bad base64', () => ['X-PAYMENT: %%%']],
        [
          'base64url',
          () => [`X-PAYMENT: ${Buffer.from('{"a":"\u00ff\u00fe??>>"}').toString('base64url')}`],
        ],
        ['base64 without padding', () => [`X-PAYMENT: ${base64('{"a":1}').replace(/=+$/, '')}`]],
        ['a byte order mark', () => [`X-PAYMENT: ${base64('\ufeff{}')}`]],
        [
          'bytes that are not UTF-8',
          () => [`X-PAYMENT: ${Buffer.of(0x7b, 0xff, 0x7d).toString('base64')}`],
        ],
        ['a key twice', () => [`X-PAYMENT: ${base64('{"x402Version":1,"x402Version":1}')}`]],
        ['a version with a fraction', () => [`X-PAYMENT: ${base64('{"x402Version":1.0}')}`]],
        ['a version with an exponent', () => [`X-PAYMENT: ${base64('{"x402Version":1e0}')}`]],
        ['a version with leading zeros', () => [`X-PAYMENT: ${base64('{"x402Version":01}')}`]],
        ['__proto__', () => [`X-PAYMENT: ${base64('{"__proto__":{"x402Version":1}}')}`]],
        ['a list', () => [`X-PAYMENT: ${base64('[]')}`]],
        ['null', () => [`PAYMENT-SIGNATURE: ${base64('null')}`]],
        ['depth', () => [`X-PAYMENT: ${base64('['.repeat(2000) + ']'.repeat(2000))}`]],
      ])('a payment with %s is refused whole', async (_, headers) => {
        const body = expectRefusal(
          await send('POST /list HTTP/1.1', headers(base64('{"x402Version":1}')), list),
          400,
        )
        expect(body.code).toBe('PAYMENT_MALFORMED')
      })

      test.each([
        ['two Authorization headers', ['Authorization: Bearer a', 'Authorization: Bearer b']],
        ['two key headers of one name', ['X-App-Key: a', 'X-App-Key: b']],
        ['keys that differ by carrier', ['X-App-Key: a', 'X-API-Key: b']],
      ])('%s are refused, whichever of them is right', async (_, headers) => {
        const line = `GET /api/apps/${market.appId}/stats HTTP/1.1`
        const good = headers.map((header, at) =>
          at === 0 ? header.replace(/a$/, market.key) : header,
        )
        expectRefusal(await send(line, good), [400, 401])
      })

      test.each<[string, (app: string) => string]>([
        ['upper case', () => 'POST /LIST HTTP/1.1'],
        ['a trailing slash', () => 'POST /list/ HTTP/1.1'],
        ['slashes', () => 'POST ///list// HTTP/1.1'],
        ['%2f', () => 'POST /%2flist HTTP/1.1'],
        ['encoded letters', () => 'POST /%6c%69st HTTP/1.1'],
        ['dot segments', () => 'POST /x/../list HTTP/1.1'],
        ['encoded dot segments', () => 'POST /x/%2e%2e/list HTTP/1.1'],
        ['an absolute address', () => 'POST http://elsewhere.example/list HTTP/1.1'],
        ['an address of another scheme', () => 'POST ftp://elsewhere.example/list HTTP/1.1'],
        ['a fragment', () => 'POST /list#x HTTP/1.1'],
        ['a semicolon', () => 'POST /list;x=1 HTTP/1.1'],
        ['a backslash', () => 'POST \\list HTTP/1.1'],
        ['a query', () => 'POST /list?root=x HTTP/1.1'],
        ['an empty query', () => 'POST /list? HTTP/1.1'],
        ['HEAD', () => 'HEAD /list HTTP/1.1'],
        ['OPTIONS', () => 'OPTIONS /list HTTP/1.1'],
        ['OPTIONS of everything', () => 'OPTIONS * HTTP/1.1'],
        ['TRACE', () => 'TRACE /list HTTP/1.1'],
        ['a method that is none', () => 'PROPFIND /list HTTP/1.1'],
        ['GET with a body', () => 'GET /list HTTP/1.1'],
        [
          'a record in upper case',
          (app) => `GET /API/APPS/${app}/collections/cities/records/c0 HTTP/1.1`,
        ],
        [
          'a record with slashes',
          (app) => `GET //apps//${app}/collections/cities/records/c0/ HTTP/1.1`,
        ],
        ['a record by %2f', (app) => `GET /apps/${app}/collections/cities/records%2fc0 HTTP/1.1`],
        [
          'a record by HEAD',
          (app) => `HEAD /api/apps/${app}/collections/cities/records/c0 HTTP/1.1`,
        ],
        [
          'a record by an absolute address',
          (app) => `GET http://x/api/apps/${app}/collections/cities/records/c0 HTTP/1.1`,
        ],
        [
          'a record through dots',
          (app) => `GET /api/apps/${app}/collections/cities/records/../records/c0 HTTP/1.1`,
        ],
        [
          'a history',
          (app) => `GET /api/apps/${app}/collections/cities/records/c0/history HTTP/1.1`,
        ],
        ['a preview', (app) => `GET /api/apps/${app}/collections/cities/preview HTTP/1.1`],
        ['a lone percent', () => 'POST /% HTTP/1.1'],
        ['half a character', () => 'POST /%c0 HTTP/1.1'],
        [
          'an encoded surrogate',
          (app) => `GET /api/apps/${app}/collections/cities/records/%ED%A0%80 HTTP/1.1`,
        ],
        ['an encoded NUL', (app) => `GET /api/apps/${app}/collections/cities/records/%00 HTTP/1.1`],
      ])('no access through %s gives what has a price, and none is a 500', async (_, line) => {
        for (const headers of [[], ['X-HTTP-Method-Override: POST', 'X-Original-URL: /list']]) {
          const replies = await send(line(market.appId), headers, list)
          const [reply] = replies
          expect(reply, 'no reply at all').toBeDefined()
          expect(reply?.status, reply?.text).toBeLessThan(500)
          expect(reply?.text).not.toMatch(/Wien|Graz|population|100000/)
        }
      })

      test.each([
        ['a record', (app: string) => `/api/apps/${app}/collections/cities/records/%00`],
        ['a payment', () => '/api/payments/%00'],
        ['a receipt', () => '/api/receipts/a%00b'],
        ['a task', () => '/task/%00'],
        ['an index', (app: string) => `/api/apps/${app}/collections/cities/indexes/%00`],
        ['a collection', (app: string) => `/api/apps/${app}/collections/%00`],
        ['an application', () => '/api/apps/%00'],
        ['a query parameter', (app: string) => `/api/apps/${app}/wallet/entries?cursor=%00`],
      ])('%s with U+0000 in its name is refused or not found', async (_, path) => {
        const reply = await service().request('GET', path(market.appId), {
          headers: market.headers,
        })
        expect([400, 404], reply.text).toContain(reply.status)
      })

      test.each([
        ['none', []],
        ['a form', ['Content-Type: application/x-www-form-urlencoded']],
        ['a multipart form', ['Content-Type: multipart/form-data; boundary=x']],
        ['another charset', ['Content-Type: application/json; charset=utf-16']],
        ['garbage', ['Content-Type: ;;;']],
        ['two of them', ['Content-Type: application/json', 'Content-Type: text/plain']],
      ])('a body with the content type %s is read as JSON or refused', async (_, headers) => {
        const [reply] = await send('POST /list HTTP/1.1', headers, list)
        expect([400, 402], reply?.text).toContain(reply?.status)
        expect(JSON.parse(reply?.text ?? '')).toHaveProperty('error')
      })

      test('a body in UTF-16, or packed, is refused and not misread', async () => {
        const utf16 = Buffer.from(list, 'utf16le')
        const types = { 'content-type': 'application/json; charset=utf-16' }
        const wide = await service().request('POST', '/list', { raw: utf16, headers: types })
        expect(wide, wide.text).toMatchObject({ status: 400, body: { code: 'VALIDATION_FAILED' } })
        const packed = await service().request('POST', '/list', {
          raw: new Uint8Array([0x1f, 0x8b, 8, 0]),
          headers: { 'content-encoding': 'gzip', 'content-type': 'application/json' },
        })
        expect(packed, packed.text).toMatchObject({ status: 400 })
      })

      test.each([100, 10_000, 1_000_000])(
        'JSON nested %d deep is refused, or read',
        async (depth) => {
          for (const [path, body] of [
            [
              '/store',
              `{"root":"${market.appId}::deep","data":[${'['.repeat(depth)}${']'.repeat(depth)}]}`,
            ],
            [
              '/list',
              `{"root":"${market.root}","find":${'{"and":['.repeat(depth)}{}${']}'.repeat(depth)}}`,
            ],
            [
              '/list',
              `{"root":"${market.root}","select":${'{"a":'.repeat(depth)}true${'}'.repeat(depth)}}`,
            ],
            [
              `/api/apps/${market.appId}/collections`,
              `{"name":"d","schema_definition":${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}}`,
            ],
            [
              `/api/apps/${market.appId}/collections`,
              `{"name":"e","access_policy":${'['.repeat(depth)}${']'.repeat(depth)}}`,
            ],
            [
              `/api/apps/${market.appId}/indexes`,
              `{"collection":"cities","field_name":${'['.repeat(depth)}${']'.repeat(depth)}}`,
            ],
            [
              '/api/payments/verify',
              `{"x402Version":1,"paymentRequirements":{},"paymentPayload":${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}}`,
            ],
            ['/info', `${'['.repeat(depth)}${']'.repeat(depth)}`],
          ] as const) {
            const raw = body.slice(0, limits.bodyBytesMax)
            const reply = await service().request('POST', path, { raw, headers: market.headers })
            expect(reply.status, `${path} ${reply.text.slice(0, 300)}`).toBeLessThan(500)
            if (depth > limits.bodyDepthMax) expect([400, 413]).toContain(reply.status)
          }
        },
      )

      test('a key in the address stays out of the sold answer, however it is spelled', async () => {
        const quoted = await service().request('POST', '/list?api%5Fkey=', { raw: list })
        expect(quoted.status, quoted.text).toBe(402)
        const foreign = await service().createApp()
        const reply = await service().request('POST', `/list?api%5Fkey=${foreign.key}`, {
          raw: list,
        })
        expect(reply.status, reply.text).toBe(402)
        const header = Buffer.from(reply.headers.get('payment-required') ?? '', 'base64').toString()
        expect(reply.text + header).not.toContain(foreign.key)
      })

      test.each([
        ['nothing', ''],
        ['text', 'hello'],
        ['zeros', `0x${'0'.repeat(130)}`],
        ['a bad recovery id', `0x${'1'.repeat(128)}ff`],
        ['numbers past the curve', `0x${'f'.repeat(128)}1b`],
        ['a megabyte less', `0x${'1'.repeat(9000)}`],
      ])('a wallet signature of %s is 401', async (_, signature) => {
        const headers = {
          'x-wallet-address': `0x${'1'.repeat(40)}`,
          'x-timestamp': String(Math.floor(Date.now() / 1000)),
          'x-signature': signature,
        }
        const reply = await service().request('GET', '/api/apps', { headers })
        expect(reply, reply.text).toMatchObject({ status: 401, body: { code: 'UNAUTHORIZED' } })
      })

      test('the service is ready, and sells, after all of these requests', async () => {
        expect((await service().request('GET', '/ready')).body.ready).toBe(true)
        const quoted = await service().request('POST', '/list', { raw: list })
        expect(quoted.status).toBe(402)
      })
    },
    { devnet: true },
  )
})
