import { expect, test } from 'vitest'
import {
  type Asked,
  ask,
  createFundedBuyer,
  list,
  type PaymentHeader,
  quote,
} from '../support/buyer.ts'
import { openMarket, readChainBalance } from '../support/market.ts'
import { withService } from '../support/per-engine.ts'
import { encodeRequest, exchange, getPort } from './wire.ts'

/** The threats that HTTP itself brings: headers, paths, methods and caches. */
withService(
  (service) => {
    async function scene() {
      const market = await openMarket(service(), { price: { per_row: '100' } })
      const buyer = await createFundedBuyer(service())
      const asked = list({ root: market.root, limit: 3 })
      const required = await quote(service(), asked)
      return { market, buyer, asked, required, header: await buyer.payV2(required) }
    }

    test('P14: a header that two readers could understand differently is 400, and nothing is claimed', async () => {
      const { buyer, asked, required, header } = await scene()
      const good = Buffer.from(header['payment-signature'] ?? '', 'base64').toString()
      const { authorization } = JSON.parse(good).payload
      const broken = (text: string | Buffer) => ({
        'payment-signature': Buffer.from(text).toString('base64'),
      })
      const said = (value: string) =>
        broken(good.replace(`"value":"${authorization.value}"`, `"value":${value}`))
      const tricks: Record<string, PaymentHeader> = {
        'both versions': { ...header, ...(await buyer.payV1(required)) },
        'no base64': { 'payment-signature': '!!!' },
        base64url: { 'payment-signature': Buffer.from(`${good}  ???>>>`).toString('base64url') },
        'wrong padding': { 'payment-signature': padWrong(header['payment-signature'] ?? '') },
        'a byte order mark': broken(`\ufeff${good}`),
        'no UTF-8': broken(Buffer.concat([Buffer.from(good), Buffer.from([0xff])])),
        'a key twice': broken(good.replace('{', '{"x402Version":2,')),
        'a float': said('300.0'),
        'an exponent': said('3e2'),
        'a leading zero': said('"0300"'),
        'a negative number': said('"-300"'),
        'a number of 300 bits': said(`"${2n ** 300n}"`),
        'a prototype': broken(good.replace('"payload":{', '"payload":{"__proto__":{"a":1},')),
        'a list': broken(`[${good}]`),
        'no object': broken('"pay"'),
        'a longer header': broken(good.replace('{', `{"x":"${'y'.repeat(14_000)}",`)),
      }
      for (const [name, trick] of Object.entries(tricks)) {
        const reply = await ask(service(), asked, trick)
        expect(reply.status, `${name}: ${reply.text}`).toBe(400)
        expect(reply.body.code, name).toBe('PAYMENT_MALFORMED')
      }
      const huge = await exchange(
        service(),
        encodeRequest(asked, { 'x-payment': 'A'.repeat(1_000_000) }),
      )
      expect(huge).not.toMatch(/^HTTP\/1.1 2|Wien/)
      const twice = encodeRequest(asked, header).replace(
        'payment-signature:',
        `payment-signature: ${header['payment-signature']}\r\npayment-signature:`,
      )
      expect(await exchange(service(), twice)).toMatch(/^HTTP\/1.1 400/)
      expect(await readChainBalance(service(), buyer.address)).toBe(100_000_000n)
      expect((await ask(service(), asked, header)).status).toBe(200)
    })

    test('P15: no spelling of a path and no verb shows what has a price', async () => {
      const { market } = await scene()
      const at = `/api/apps/${market.appId}/collections/${market.collection}/records/c0`
      const body = JSON.stringify({ root: market.root, limit: 3 })
      const targets = [
        ...[at, '/list'].flatMap((path) => [
          path,
          `${path}/`,
          `/${path}`,
          path.replaceAll('/', '//'),
          path.toUpperCase(),
          `${path}%`,
          `${path}%2f`,
          `${path}%c0`,
          `${path}%00`,
          `${path};x=1`,
          `/x/..${path}`,
          `/.${path}`,
          `/%2e${path}`,
          path.replace(/.$/, (last) => `%${last.charCodeAt(0).toString(16)}`),
          `http://127.0.0.1:${getPort(service())}${path}`,
          `http://other.example${path}`,
        ]),
        at.replace('/api', ''),
        at.replace(market.collection, `${market.collection}/../${market.collection}`),
        at.replace(market.collection, market.collection.toUpperCase()),
      ]
      const methods = ['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE', 'TRACE']
      const extra = { 'x-http-method-override': 'GET', 'x-original-url': at }
      for (const path of targets) {
        for (const method of methods) {
          const raw = ['GET', 'HEAD', 'OPTIONS', 'TRACE'].includes(method) ? {} : { raw: body }
          const said = await exchange(service(), encodeRequest({ method, path, ...raw }, extra))
          expect(said, `${method} ${path}`).toMatch(/^HTTP\/1\.1 /)
          expect(said, `${method} ${path}`).not.toMatch(/Wien|population/)
        }
      }
    })

    test('P16: no cache may keep, and no ETag tells, anything about a payment', async () => {
      const { market, buyer, asked, header } = await scene()
      const record: Asked = {
        method: 'GET',
        path: `/api/apps/${market.appId}/collections/${market.collection}/records/c0`,
      }
      const large = await openMarket(service(), {
        price: { per_access: '1', per_kb: '1' },
        records: [{ id: 'x', text: 'y'.repeat(3000) }],
      })
      const conditions = { 'if-none-match': '*', 'if-modified-since': new Date().toUTCString() }
      const paidRecord = await buyer.payV2(await quote(service(), record))
      const replies = {
        'a 402': await ask(service(), asked, conditions),
        'a 402 for a record': await ask(service(), record, conditions),
        'a paid list': await ask(service(), asked, { ...header, ...conditions }),
        'its repetition': await ask(service(), asked, { ...header, ...conditions }),
        'a paid record': await ask(service(), record, { ...paidRecord, ...conditions }),
        'a payment used for something else': await ask(service(), record, header),
        'an error after the payment': await buyer.buy(
          service(),
          list({ root: large.root, max_kb: 1 }),
        ),
        'a header that cannot be read': await ask(service(), asked, { 'x-payment': '!' }),
        'a request that is wrong': await ask(service(), list({ root: market.root, limit: -1 })),
        'what is not there': await ask(service(), list({ root: `${market.appId}::none` })),
        'a wrong key': await ask(service(), record, { 'x-app-key': 'app_wrong' }),
        "the owner's own": await ask(service(), record, { ...market.headers, ...conditions }),
        'a body that is too large': await ask(service(), {
          ...asked,
          raw: `{"root":"${'x'.repeat(6_000_000)}"}`,
        }),
      }
      const statuses = Object.values(replies).map(({ status }) => status)
      expect(statuses).toEqual([402, 402, 200, 200, 200, 409, 413, 400, 400, 404, 401, 200, 413])
      for (const [name, { headers }] of Object.entries(replies)) {
        expect(headers.get('cache-control'), name).toBe('no-store')
        for (const one of ['X-PAYMENT', 'PAYMENT-SIGNATURE', 'X-App-Key', 'Authorization'])
          expect(headers.get('vary')?.split(', '), name).toContain(one)
        expect(headers.get('etag'), name).toBeNull()
        expect(headers.get('last-modified'), name).toBeNull()
      }
    })
  },
  { devnet: true },
)

/** Base64 with a padding that it does not need, or without the one that it needs. */
function padWrong(base64: string): string {
  return base64.endsWith('=') ? base64.replace(/=+$/, '') : `${base64}=`
}
