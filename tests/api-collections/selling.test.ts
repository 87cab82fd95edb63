import { setTimeout as wait } from 'node:timers/promises'
import { limits } from '@tollbase/contract/limits'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { Payments } from '../../packages/server/src/services/payments/payments.ts'
import { soldFileType } from '../../packages/server/src/services/payments/replies/sold-file.ts'
import { makeDyingPayments, replacePayments } from '../payments/dying-payments.ts'
import { createBlobs } from '../support/blobs.ts'
import {
  type Asked,
  ask,
  type Buyer,
  createFundedBuyer,
  parseEntry,
  quote,
  readBalance,
} from '../support/buyer.ts'
import { createData, type Data } from '../support/data.ts'
import { expectBalanced, readEarnings, readReceipt } from '../support/market.ts'
import { withService } from '../support/per-engine.ts'
import { startUpstream, type TestUpstream } from '../support/upstream.ts'

let upstream: TestUpstream
beforeAll(async () => {
  upstream = await startUpstream()
})
afterAll(() => upstream.close())

describe('the data of an API collection', () =>
  withService(
    (service) => {
      let seller: Data
      let buyer: Buyer
      beforeAll(async () => {
        seller = await createData(service())
        buyer = await createFundedBuyer(service())
      })
      afterEach(() => upstream.answer(undefined))

      const define = async (more: object) => {
        const body = {
          upstream: { url: `${upstream.url}/v1/weather/{city}`, headers: { 'X-Key': 'hush' } },
          parameters: [{ name: 'city' }, { name: 'days', type: 'integer', min: 1, default: 3 }],
          price: { per_access: '1000' },
          ...more,
        }
        const made = await seller.call('POST', '/api-collections', body)
        expect(made.status, made.text).toBe(201)
        return made.body
      }
      const data = (name: string, query: string): Asked => ({
        method: 'GET',
        path: `/api/apps/${seller.appId}/api-collections/${name}/data${query}`,
      })

      test('a quote does not ask the upstream; a payment buys its answer, and a retry has the same bytes without asking again', async () => {
        await define({ name: 'sold' })
        const asked = data('sold', '?city=Bad%20Ischl&days=2')
        const before = upstream.got.length
        const required = await quote(service(), asked)
        expect(parseEntry(required).amount).toBe('1000')
        expect((await ask(service(), data('sold', '?days=2'))).status).toBe(400)
        expect(upstream.got).toHaveLength(before)
        const header = await buyer.payV2(required)
        const sold = await ask(service(), asked, header)
        expect(sold.status, sold.text).toBe(200)
        expect(sold.body).toEqual({ n: before + 1 })
        const got = upstream.got.at(-1)
        expect(got?.url).toBe('/v1/weather/Bad%20Ischl?days=2')
        expect(got?.headers['x-key']).toBe('hush')
        expect(got?.headers['idempotency-key']).toBe(sold.headers.get('x-payment-id'))
        const again = await ask(service(), asked, header)
        expect(again.text).toBe(sold.text)
        expect(again.headers.get('content-security-policy')).toContain('sandbox')
        expect(upstream.got).toHaveLength(before + 1)
        // The payment is for this very request.
        expect((await ask(service(), data('sold', '?city=Graz'), header)).status).toBe(409)
        expect(await readReceipt(service(), sold)).toMatchObject({ operation: 'api' })
        expect(await readEarnings(service(), seller)).toBe(800n)
        const [{ item }] = (await seller.call('GET', '/sales')).body.sales
        expect(item).toEqual({ kind: 'collection', name: 'sold' })
      })

      test('nothing of the caller reaches the upstream but the parameters, and of its headers only the type of content comes back', async () => {
        await define({ name: 'headers', price: null, read: 'public' })
        upstream.answer((response) => {
          response.setHeader('set-cookie', 'session=1')
          response.setHeader('x-inner', 'host-17')
          response.setHeader('content-type', 'text/html')
          response.setHeader('access-control-allow-credentials', 'true')
          response.end('<script>alert(1)</script>')
        })
        const reply = await service().request('GET', data('headers', '?city=a').path, {
          headers: { cookie: 'mine=1', 'x-forwarded-for': '10.1.1.1', 'user-agent': 'me' },
        })
        expect(reply.status).toBe(200)
        const names = Object.keys(upstream.got.at(-1)?.headers ?? {}).sort()
        const usual = ['accept', 'accept-encoding', 'connection', 'host', 'user-agent', 'x-key']
        expect(names).toEqual(usual)
        expect(upstream.got.at(-1)?.headers['user-agent']).toBe('tollbase')
        for (const name of ['set-cookie', 'x-inner', 'access-control-allow-credentials'])
          expect(reply.headers.get(name), name).toBeNull()
        expect(reply.headers.get('content-type')).toBe('text/html')
        expect(reply.headers.get('x-content-type-options')).toBe('nosniff')
        expect(reply.headers.get('content-security-policy')).toBe("default-src 'none'; sandbox")
        expect(reply.headers.get('content-disposition')).toBe('attachment')
      })

      test('an upstream cannot name a file of another application as its answer, whatever type it states', async () => {
        const other = await createBlobs(service())
        await other.data.create({ name: 'files', collection_type: 'blob' })
        const { blob_id } = (await other.upload('files', 'not for sale')).body
        const { number } = (await service().running.service.tenants.load(other.appId)).application
        const answer = JSON.stringify({
          folder: number,
          sha256: String(blob_id).slice('blob_'.length),
          size: 12,
          contentType: 'text/plain',
        })
        await define({ name: 'thief' })
        for (const type of ['application/vnd.tollbase.file+json', soldFileType]) {
          upstream.answer((response) => {
            response.setHeader('content-type', type)
            response.end(answer)
          })
          const asked = data('thief', `?city=${type.length}`)
          const sold = await ask(service(), asked, await buyer.payV2(await quote(service(), asked)))
          expect([sold.status, sold.text], type).toEqual([200, answer])
        }
      })

      test('an answer that cannot be sold costs nothing, shows nothing of the upstream, and leaves the money on the balance', async () => {
        await define({ name: 'failing' })
        const inner = 'secret stack trace at 10.0.0.7'
        const bad: readonly (readonly [string, Parameters<TestUpstream['answer']>[0]])[] = [
          ['500', (response) => response.writeHead(500, { 'x-inner': inner }).end(inner)],
          ['404', (response) => response.writeHead(404).end(inner)],
          ['a redirect', (response) => response.writeHead(302, { location: '/other' }).end(inner)],
          ['no body', (response) => response.writeHead(204).end()],
          [
            'compressed',
            (response) => response.writeHead(200, { 'content-encoding': 'br' }).end(inner),
          ],
          ['too long', (response) => response.end(Buffer.alloc(limits.upstreamBytesMax + 1, 'a'))],
          [
            'cut off',
            (response) =>
              response
                .writeHead(200, { 'content-length': 99 })
                .write(inner, () => response.destroy()),
          ],
          ['no HTTP', (response) => response.socket?.end(inner)],
        ]
        let balance = await readBalance(service(), buyer.address)
        const earned = await readEarnings(service(), seller)
        for (const [name, answer] of bad) {
          upstream.answer(answer)
          const asked = data('failing', `?city=${encodeURIComponent(name)}`)
          const failed = await buyer.buy(service(), asked)
          expect([failed.status, failed.body.code], name).toEqual([502, 'UPSTREAM_FAILED'])
          expect(failed.body.details).toMatchObject({ charged: '0' })
          expect(Object.keys(failed.body.details).sort(), name).toEqual(['charged', 'payment_id'])
          expect(failed.text).not.toContain('secret')
          balance += 1000n
          expect(await readBalance(service(), buyer.address), name).toBe(balance)
          // The owner is told what was wrong, in our own words.
          const own = await seller.call('GET', asked.path.replace(/^.*?(?=\/api-coll)/, ''))
          expect(own.status).toBe(502)
          expect(own.body.details.reason, name).toMatch(/status|body|bytes|compressed|unreachable/)
          expect(own.text).not.toContain('secret')
        }
        expect(await readEarnings(service(), seller)).toBe(earned)
        await expectBalanced(service())
      })

      test('a price by the KB has a cap that the quote names, and an answer above it is refused without a charge', async () => {
        await define({ name: 'by-kb', price: { per_access: '10', per_kb: '1000' } })
        upstream.answer((response) => response.end('x'.repeat(1025)))
        const small = data('by-kb', '?city=a&max_kb=1')
        expect(parseEntry(await quote(service(), data('by-kb', '?city=a'))).amount).toBe('64010')
        expect(parseEntry(await quote(service(), small)).amount).toBe('1010')
        const refused = await buyer.buy(service(), small)
        expect([refused.status, refused.body.code]).toEqual([413, 'RESULT_TOO_LARGE'])
        expect(refused.body.details).toMatchObject({ max_kb: 2, charged: '0' })
        const sold = await buyer.buy(service(), data('by-kb', '?city=a&max_kb=2'))
        expect(sold.status, sold.text).toBe(200)
        expect((await readReceipt(service(), sold)).amount).toBe('1011')
      })

      test('without a price by the KB no buyer makes the answer too long to be charged for', async () => {
        await define({ name: 'by-call', price: { per_access: '10' } })
        const body = 'x'.repeat(1025)
        upstream.answer((response) => response.end(body))
        const earned = await readEarnings(service(), seller)
        const sold = await buyer.buy(service(), data('by-call', '?city=a&max_kb=1'))
        expect([sold.status, sold.text]).toEqual([200, body])
        expect(await readEarnings(service(), seller)).toBe(earned + 8n)
      })

      test('a cached answer is sold at the same price until its time is over, one request fills it for all, and another upstream empties it', async () => {
        await define({ name: 'cached', cache_seconds: 60 })
        const asked = data('cached', '?city=a')
        const before = upstream.got.length
        const earned = await readEarnings(service(), seller)
        const first = await buyer.buy(service(), asked)
        // A left-out parameter and its default are the same request.
        const second = await buyer.buy(service(), data('cached', '?days=3&city=a'))
        expect([first.status, second.status]).toEqual([200, 200])
        expect(second.text).toBe(first.text)
        expect(upstream.got).toHaveLength(before + 1)
        expect(upstream.got.at(-1)?.headers['idempotency-key']).toBeUndefined()
        expect(await readEarnings(service(), seller)).toBe(earned + 1600n)
        upstream.answer((response) => setTimeout(() => response.end('slow'), 100))
        const many = Array.from({ length: 6 }, () =>
          seller.call('GET', '/api-collections/cached/data?city=b'),
        )
        for (const one of await Promise.all(many)) expect(one.text).toBe('slow')
        expect(upstream.got).toHaveLength(before + 2)
        service().world.advance(61_000)
        expect((await seller.call('GET', '/api-collections/cached/data?city=a')).text).toBe('slow')
        const put = await seller.call('PUT', '/api-collections/cached', {
          upstream: { url: `${upstream.url}/v2/{city}` },
          parameters: [{ name: 'city' }],
          cache_seconds: 60,
        })
        expect(put.body).toMatchObject({ upstream: { headers: [] }, price: { per_access: '1000' } })
        await seller.call('GET', '/api-collections/cached/data?city=a')
        expect(upstream.got.at(-1)?.url).toBe('/v2/a')
        expect(upstream.got.at(-1)?.headers['x-key']).toBeUndefined()
        // The upstream is the same one, but its answers are good for less time.
        await seller.call('PUT', '/api-collections/cached', {
          upstream: { url: `${upstream.url}/v2/{city}` },
          parameters: [{ name: 'city' }],
          cache_seconds: 1,
        })
        await seller.call('GET', '/api-collections/cached/data?city=a')
        expect(upstream.got).toHaveLength(before + 5)
      })

      test('a payment for an upstream that was replaced meanwhile buys nothing of the new one', async () => {
        await define({ name: 'moved' })
        const asked = data('moved', '?city=a')
        const header = await buyer.payV2(await quote(service(), asked))
        await seller.call('PUT', '/api-collections/moved', {
          upstream: { url: `${upstream.url}/v2/{city}` },
          parameters: [{ name: 'city' }],
        })
        const before = upstream.got.length
        const refused = await ask(service(), asked, header)
        expect(refused.status, refused.text).toBe(402)
        expect(upstream.got).toHaveLength(before)
      })

      test('a death between the answer and its charge loses neither: the retry delivers and charges once', async () => {
        await define({ name: 'dying', price: { per_access: '3000' } })
        const earned = await readEarnings(service(), seller)
        const fresh = await createFundedBuyer(service())
        const asked = data('dying', '?city=a')
        const header = await fresh.payV2(await quote(service(), asked))
        const { ports } = service().running.service.payments
        let deaths = 0
        const before = upstream.got.length
        for (const step of [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]) {
          const dying = makeDyingPayments(ports, { step, when: 'before' })
          replacePayments(service(), dying.payments)
          const reply = await ask(service(), asked, header)
          if (reply.status < 300) break
          deaths += 1
        }
        replacePayments(service(), new Payments(ports))
        expect(deaths).toBeGreaterThan(2)
        const sold = await ask(service(), asked, header)
        expect(sold.status, sold.text).toBe(200)
        expect((await ask(service(), asked, header)).text).toBe(sold.text)
        // The upstream can tell by the key that these were one purchase.
        const keys = upstream.got.slice(before).map(({ headers }) => headers['idempotency-key'])
        expect(new Set(keys)).toEqual(new Set([sold.headers.get('x-payment-id')]))
        expect(await readEarnings(service(), seller)).toBe(earned + 2400n)
        expect(await readBalance(service(), fresh.address)).toBe(0n)
        await expectBalanced(service())
      })

      test('slow upstreams of one application leave turns to others and to payers, and a late one is 504', async () => {
        const other = await createData(service())
        await define({ name: 'slow' })
        const path = '/api-collections/slow/data?city='
        upstream.answer(() => undefined)
        const before = upstream.got.length
        const waiting = Array.from({ length: 30 }, (_, at) => seller.call('GET', `${path}${at}`))
        const answers = Promise.all(waiting)
        await expect.poll(() => upstream.got.length, { timeout: 30_000 }).toBeGreaterThan(before)
        await wait(200)
        expect(upstream.got.length - before).toBeLessThanOrEqual(
          limits.upstreamsAtOnceOfApplicationMax,
        )
        upstream.answer(undefined)
        const body = { name: 'quick', upstream: { url: upstream.url }, read: 'public' }
        expect((await other.call('POST', '/api-collections', body)).status).toBe(201)
        expect((await other.call('GET', '/api-collections/quick/data')).status).toBe(200)
        expect((await buyer.buy(service(), data('slow', '?city=x'))).status).toBe(200)
        const late = (await answers).filter(({ body }) => body.code === 'UPSTREAM_TIMEOUT')
        expect(late.length).toBeGreaterThan(0)
        for (const { status } of late) expect(status).toBe(504)
      })

      test('the audit finds every table as the entries make it', async () => {
        const report = await service().whileStopped((config) => audit(config, () => undefined))
        expect(report.difference).toBeUndefined()
        expect(report.equal).toBe(true)
      })
    },
    {
      devnet: true,
      config: { allowedUpstreams: [{ host: '127.0.0.1', port: undefined }] },
    },
  ))
