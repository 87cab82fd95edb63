import { createHash, randomBytes } from 'node:crypto'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { createBlobs } from '../support/blobs.ts'
import { ask, createFundedBuyer, parseEntry, quote, readBalance } from '../support/buyer.ts'
import { readReceipt } from '../support/market.ts'
import { withService } from '../support/per-engine.ts'

const bytes = Buffer.from('0123456789'.repeat(500))
/** 100 for the access, and 5000 bytes at 1024 a KB. */
const cost = 5100n
const price = { per_access: '100', per_kb: '1024' }

describe('blobs that have a price', () =>
  withService(
    (service) => {
      const open = async () => {
        const app = await createBlobs(service())
        await app.data.create({ name: 'files', collection_type: 'blob', access_policy: { price } })
        const { body } = await app.upload('files', bytes, { type: 'text/plain', name: 'a.txt' })
        const path = `/api/apps/${app.appId}/blobs/files/${body.blob_id}`
        return { app, id: String(body.blob_id), path }
      }

      test('a stranger is asked for the price of its size on every verb, with a range and a condition too, and gets no byte', async () => {
        const { path, app, id } = await open()
        const tag = `"${id.slice('blob_'.length)}"`
        const asked = [
          {},
          { accept: 'image/png' },
          { range: 'bytes=0-0' },
          { 'if-none-match': tag },
          { 'if-none-match': '*' },
          { range: 'bytes=0-0', 'if-range': tag },
        ]
        for (const headers of asked) {
          const got = await ask(service(), { method: 'GET', path, headers })
          expect([got.status, parseEntry(got).amount]).toEqual([402, String(cost)])
          expect(got.headers.get('cache-control')).toBe('no-store')
          expect(got.headers.get('etag')).toBeNull()
          const head = await fetch(service().url + path, { method: 'HEAD', headers })
          expect(head.status).toBe(402)
          expect(head.headers.get('payment-required')).not.toBeNull()
          expect(head.headers.get('etag')).toBeNull()
        }
        expect((await app.download('files', id)).bytes).toEqual(bytes)
      })

      test('a blob of which a byte changed on the disk is not sold, the payer keeps the money as balance, and the audit names it', async () => {
        const { app } = await open()
        const content = randomBytes(5000)
        const { body } = await app.upload('files', content)
        const root = join(service().config.dataDir, 'blobs')
        const files = readdirSync(root, { recursive: true, encoding: 'utf8' })
        const hash = String(body.blob_id).slice('blob_'.length)
        const name = join(root, files.find((one) => one.endsWith(`/${hash}`)) ?? '')
        writeFileSync(name, Buffer.from(content).fill(7, 0, 1))
        const buyer = await createFundedBuyer(service())
        const path = `/api/apps/${app.appId}/blobs/files/${body.blob_id}`
        const got = await buyer.buy(service(), { method: 'GET', path })
        expect([got.status, got.body.code]).toEqual([410, 'BLOB_GONE'])
        expect(await readBalance(service(), buyer.address)).toBe(cost)
        const { difference } = await service().whileStopped((config) =>
          audit(config, () => undefined),
        )
        expect(difference).toMatchObject({
          what: `the file of the blob ${body.blob_id}`,
          found: 'other bytes',
        })
        writeFileSync(name, content)
      })

      test('one payment buys the whole once: each range, form and head of it comes for the same payment, and no other blob', async () => {
        const { path, app } = await open()
        const buyer = await createFundedBuyer(service())
        const other = (await app.upload('files', 'another')).body.blob_id
        const header = await buyer.payV2(await quote(service(), { method: 'GET', path }))
        const get = (range?: string, more: object = {}) =>
          fetch(service().url + path, {
            headers: { ...header, accept: 'text/plain', ...(range && { range }), ...more },
          })
        const first = await get('bytes=0-99')
        expect([first.status, await first.text()]).toEqual([206, bytes.subarray(0, 100).toString()])
        expect(first.headers.get('cache-control')).toBe('no-store')
        const receipt = String(first.headers.get('x-receipt-id'))
        expect(receipt).toMatch(/^rcpt_/)
        const rest = await get('bytes=100-')
        expect([rest.status, await rest.text()]).toEqual([206, bytes.subarray(100).toString()])
        expect((await get('bytes=9999-')).status).toBe(416)
        const tag = String(first.headers.get('etag'))
        const whole = await get(undefined, { 'if-none-match': tag })
        expect([whole.status, await whole.text()]).toEqual([200, bytes.toString()])
        const text = await (await get(undefined, { accept: '*/*' })).json()
        expect(Buffer.from(String(text), 'base64')).toEqual(bytes)
        const head = await fetch(service().url + path, { method: 'HEAD', headers: header })
        expect([head.status, head.headers.get('x-receipt-id')]).toEqual([200, receipt])
        const wrong = path.replace(/blob_.*/, other)
        const refused = await ask(service(), { method: 'GET', path: wrong, headers: header })
        expect([402, 409]).toContain(refused.status)
        expect(await readReceipt(service(), first)).toMatchObject({
          amount: String(cost),
          result_hash: createHash('sha256').update(bytes).digest('hex'),
        })
        expect(await readBalance(service(), buyer.address)).toBe(0n)
      })

      test('the ranges of a bought blob come for its payment though a stranger buys more than a gigabyte of answers after it', async () => {
        const { path } = await open()
        const { database, world } = service()
        const buyer = await createFundedBuyer(service())
        const header = await buyer.payV2(await quote(service(), { method: 'GET', path }))
        const get = (range: string) =>
          fetch(service().url + path, { headers: { ...header, range } })
        const first = await get('bytes=0-99')
        expect([first.status, (await first.text()).length]).toEqual([206, 100])
        const id = first.headers.get('x-payment-id')
        await database.execute(sql`
          INSERT INTO operations.claim (identity, id, request_hash, app, operation, amount, cap, quote_id, terms, valid_before, payment, state, settled_by, created_at_ms)
          SELECT 'n/a/stranger/' || n, 'more' || n, request_hash, app, 'list', amount, cap, quote_id, terms, valid_before, payment, 'delivered', '0x1', created_at_ms
          FROM operations.claim, generate_series(1, 130) AS n WHERE id = ${id}`)
        const expiresAtMs = world.now() + 25 * 3_600_000
        await database.execute(sql`
          INSERT INTO operations.kept_reply (payment_id, status, body, expires_at_ms)
          VALUES ('more1', 200, convert_to(repeat('x', 8 * 1024 * 1024), 'UTF8'), ${expiresAtMs}::int8)`)
        // The compressed bytes are copied as they are.
        await database.execute(sql`
          INSERT INTO operations.kept_reply (payment_id, status, body, expires_at_ms)
          SELECT 'more' || n, status, body, expires_at_ms
          FROM operations.kept_reply, generate_series(2, 130) AS n WHERE payment_id = 'more1'`)
        world.passInterval(60_000)
        const count = async () =>
          (
            await database.query(
              sql`SELECT payment_id FROM operations.kept_reply WHERE payment_id LIKE 'more%'`,
            )
          ).length
        await expect.poll(count, { timeout: 30_000 }).toBe(128)
        const rest = await get('bytes=100-')
        expect([rest.status, await rest.text()]).toEqual([206, bytes.subarray(100).toString()])
        await database.execute(sql`DELETE FROM operations.kept_reply WHERE payment_id LIKE 'more%'`)
        await database.execute(sql`DELETE FROM operations.claim WHERE id LIKE 'more%'`)
      })

      test('a head that is paid for buys the bytes, which a get with the same payment brings', async () => {
        const { path } = await open()
        const buyer = await createFundedBuyer(service())
        const headers = await buyer.payV2(await quote(service(), { method: 'GET', path }))
        const head = await fetch(service().url + path, { method: 'HEAD', headers })
        expect([head.status, head.headers.get('content-length')]).toEqual([
          200,
          String(2 + Math.ceil(bytes.length / 3) * 4),
        ])
        const got = await fetch(`${service().url}${path}`, {
          headers: { ...headers, accept: 'text/plain' },
        })
        expect(Buffer.from(await got.arrayBuffer())).toEqual(bytes)
        expect(got.headers.get('x-receipt-id')).toBe(head.headers.get('x-receipt-id'))
      })

      test('what was bought is there after the blob was deleted, its price changed and the service restarted; the audit knows it', async () => {
        const { path, app, id } = await open()
        const buyer = await createFundedBuyer(service())
        const headers = await buyer.payV2(await quote(service(), { method: 'GET', path }))
        const get = () =>
          fetch(service().url + path, { headers: { ...headers, accept: 'text/plain' } })
        expect((await get()).status).toBe(200)
        await app.data.call('DELETE', `/blobs/files/${id}?wait=true`)
        await app.data.call('PUT', '/collections/files', { access_policy: 'private' })
        await service().restart()
        const again = await get()
        expect([again.status, again.headers.get('idempotent-replayed')]).toEqual([200, 'true'])
        expect(Buffer.from(await again.arrayBuffer())).toEqual(bytes)
        await service().whileStopped(async (config) => {
          expect(await audit(config, () => undefined)).toMatchObject({ equal: true })
        })
      })

      test('an upload is sold by its size, once, however often it is repeated in another form', async () => {
        const app = await createBlobs(service())
        await app.data.create({ name: 'files', collection_type: 'blob' })
        await app.data.call('PUT', '/pricing', {
          rules: [
            {
              target: { collection: 'files' },
              operation: 'write',
              model: 'per_kb',
              amount: '1024',
            },
          ],
        })
        const buyer = await createFundedBuyer(service())
        const metadata = '{"n":1}'
        const asked = await app.upload('files', bytes, { metadata })
        expect([asked.status, parseEntry(asked).amount]).toEqual([402, '5000'])
        expect(app.listFiles()).toEqual([])
        const headers = await buyer.payV2(asked)
        const [one, two] = await Promise.all([
          app.upload('files', bytes, { metadata, headers }),
          app.upload('files', bytes, { metadata, headers }),
        ])
        expect([one.status, one.text]).toEqual([200, two.text])
        expect((await app.data.list('files', { include_history: true })).body.records).toHaveLength(
          1,
        )
        const other = await app.upload('files', bytes, { metadata: '{"n":2}', headers })
        expect([402, 409]).toContain(other.status)
      })
    },
    { devnet: true },
  ))
