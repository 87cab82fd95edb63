import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { limits } from '@tollbase/contract/limits'
import { createBlobs } from '@tollbase/testing/blobs'
import { createData } from '@tollbase/testing/data'
import { withService } from '@tollbase/testing/per-engine'
import { makeTestWallet } from '@tollbase/testing/wallet'
import { describe, expect, test, vi } from 'vitest'

const hash = (bytes: string | Uint8Array) => createHash('sha256').update(bytes).digest('hex')

describe('uploadBlob', () =>
  withService((service) => {
    test('a blob comes back as it was sent, under the hash of its bytes, and its row has its facts and metadata', async () => {
      const app = await createBlobs(service())
      const bytes = Buffer.from([0, 255, 1, 13, 10, 45, 45])
      const metadata = '{"title":"a","nested":{"n":1.50}}'
      const sent = await app.upload('files', bytes, {
        type: 'image/png',
        name: 'a b.png',
        metadata,
      })
      expect(sent.status, sent.text).toBe(200)
      const blob_id = `blob_${hash(bytes)}`
      expect(sent.body).toMatchObject({ blob_id, status: 'Completed' })
      expect((await service().request('GET', `/task/${sent.body.ticket_id}`)).body).toMatchObject({
        status: 'Completed',
        result: { results: [{ id: blob_id }] },
      })
      const got = await app.download('files', blob_id)
      expect(got.bytes).toEqual(bytes)
      expect(got.headers.get('content-type')).toBe('image/png')
      const { records } = (await app.data.list('files', { find: { title: 'a' } })).body
      expect(records).toEqual([
        {
          title: 'a',
          nested: { n: 1.5 },
          blob_id,
          sha256: hash(bytes),
          size_bytes: 7,
          content_type: 'image/png',
          filename: 'a b.png',
          uploaded_at: expect.any(String),
        },
      ])
      expect((await app.data.call('GET', '/collections/files')).body).toMatchObject({
        collection_type: 'blob',
        primary_column: 'blob_id',
      })
    })

    test('the same bytes are one blob and one file, and the newest metadata counts', async () => {
      const app = await createBlobs(service())
      const sent = await Promise.all(
        ['1', '2', '3'].map((n) => app.upload('files', 'same', { metadata: `{"n":"${n}"}` })),
      )
      expect(new Set(sent.map(({ body }) => body.blob_id)).size).toBe(1)
      await app.upload('files', 'same', { metadata: '{"n":"4"}' })
      const { records } = (await app.data.list('files', {})).body
      expect(records).toMatchObject([{ n: '4' }])
      expect(app.listFiles()).toEqual([hash('same')])
      expect(listIncoming(service().config.dataDir)).toEqual([])
    })

    test('the public clients` forms are taken: a blob as a field of text, empty proofs of payment, no metadata', async () => {
      const app = await createBlobs(service())
      const form = new FormData()
      form.append('blob', 'text of a field')
      for (const name of ['payment_tx_hash', 'user_address', 'broker_address'])
        form.append(name, '')
      form.append('amount_utia', '0')
      const sent = await app.send('files', form)
      expect(sent.status, JSON.stringify(sent.body)).toBe(202)
      expect(sent.body).toMatchObject({
        status: 'queued',
        blob_id: `blob_${hash('text of a field')}`,
      })
    })

    test('a blob of no bytes is a blob', async () => {
      const app = await createBlobs(service())
      const { body } = await app.upload('files', '')
      expect((await app.download('files', body.blob_id)).bytes).toHaveLength(0)
      expect((await app.download('files', body.blob_id, { accept: '*/*' })).body).toBe('')
    })

    test('a blob at the limit is stored; one byte more is refused, whether its length is stated or not', async () => {
      const app = await createBlobs(service())
      const bytes = Buffer.alloc(limits.blobBytesMax, 7)
      expect((await app.upload('files', bytes)).status).toBe(200)
      const more = Buffer.alloc(limits.blobBytesMax + 1, 7)
      const large = { status: 413, body: { code: 'PAYLOAD_TOO_LARGE' } }
      expect(await app.upload('files', more)).toMatchObject(large)
      expect(await app.upload('files', more, { isChunked: true })).toMatchObject(large)
      expect(await app.upload('files', Buffer.alloc(limits.blobBytesMax * 2))).toMatchObject(large)
      expect(app.listFiles()).toEqual([hash(bytes)])
      expect(listIncoming(service().config.dataDir)).toEqual([])
    })

    test('metadata that cannot be a part of the row is refused by its place, and nothing is stored', async () => {
      const app = await createBlobs(service())
      const refused: [string, string][] = [
        ['[1]', '/metadata'],
        ['"x"', '/metadata'],
        ['{"sha256":"x"}', '/metadata/sha256'],
        ['{"blob_id":"x"}', '/metadata/blob_id'],
        ['{"deleted":true}', '/metadata/deleted'],
        ['{"a":1,"a":2}', '/metadata/0'],
        ['{"a":"\\ud800"}', '/metadata/0'],
        ['{broken', ''],
      ]
      for (const [metadata, field] of refused)
        expect(await app.upload('files', 'x', { metadata }), metadata).toMatchObject({
          status: 400,
          body: { details: { field } },
        })
      const long = JSON.stringify({ text: 'x'.repeat(limits.blobMetadataBytesMax) })
      expect((await app.upload('files', 'x', { metadata: long })).status).toBe(413)
      expect(app.listFiles()).toEqual([])
    })

    test('a row obeys the schema of its collection', async () => {
      const app = await createBlobs(service())
      const schema_definition = { fields: { title: { type: 'string', required: true } } }
      await app.data.create({ name: 'files', collection_type: 'blob', schema_definition })
      expect(await app.upload('files', 'x')).toMatchObject({
        status: 422,
        body: { code: 'SCHEMA_VIOLATION' },
      })
      expect((await app.upload('files', 'x', { metadata: '{"title":"t"}' })).status).toBe(200)
    })

    test('a row obeys the schema that its collection has once the body is there, however long it took', async () => {
      const app = await createBlobs(service())
      await app.data.create({ name: 'files', collection_type: 'blob' })
      const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>()
      const writer = writable.getWriter()
      const sent = fetch(`${service().url}/api/apps/${app.appId}/blobs/files?wait=true`, {
        method: 'POST',
        headers: { ...app.data.headers, 'content-type': 'multipart/form-data; boundary=x' },
        body: readable,
        duplex: 'half',
      })
      const head = '--x\r\nContent-Disposition: form-data; name="blob"\r\n\r\nx'
      await writer.write(Buffer.from(head))
      const { dataDir } = service().config
      await vi.waitFor(() => expect(listIncoming(dataDir)).toHaveLength(1), 20_000)
      const schema_definition = { fields: { title: { type: 'string', required: true } } }
      const changed = await app.data.call('PUT', '/collections/files', { schema_definition })
      expect(changed.status, changed.text).toBe(200)
      await writer.write(Buffer.from('\r\n--x--\r\n'))
      await writer.close()
      expect((await sent).status).toBe(422)
    })

    test('a body that is no form of one blob is refused and says why', async () => {
      const app = await createBlobs(service())
      const two = new FormData()
      two.append('blob', new Blob(['a']))
      two.append('blob', new Blob(['b']))
      const other = new FormData()
      other.append('blob', new Blob(['a']))
      other.append('colour', 'red')
      const none = new FormData()
      none.append('metadata', '{}')
      const refused: [FormData | string, string][] = [
        [two, 'VALIDATION_FAILED'],
        [other, 'UNKNOWN_MEMBER'],
        [none, 'VALIDATION_FAILED'],
        ['{}', 'VALIDATION_FAILED'],
      ]
      for (const [body, code] of refused)
        expect(await app.send('files', body)).toMatchObject({ status: 400, body: { code } })
      const broken = await app.send(
        'files',
        '--x\r\nContent-Disposition: form-data; name="blob"\r\n\r\nab',
        {
          'content-type': 'multipart/form-data; boundary=x',
        },
      )
      expect(broken).toMatchObject({ status: 400, body: { code: 'VALIDATION_FAILED' } })
      expect(app.listFiles()).toEqual([])
      expect(listIncoming(service().config.dataDir)).toEqual([])
    })

    test('names and types that would break out of a header or a path are made harmless', async () => {
      const app = await createBlobs(service())
      const sent = await app.send(
        'files',
        '--x\r\nContent-Disposition: form-data; name="blob"; filename="../../etc/pass\u0007wd\u202e.html"\r\n' +
          'Content-Type: text/html; x="a"\u0001\r\n\r\n<script>\r\n--x--\r\n',
        { 'content-type': 'multipart/form-data; boundary=x' },
      )
      expect(sent.status, JSON.stringify(sent.body)).toBe(202)
      await service().request('GET', `/task/${sent.body.ticket_id}`)
      const row = await app.data.record('files', sent.body.blob_id)
      expect(row.body.record).toMatchObject({ filename: 'passwd.html', content_type: 'text/html' })
      for (const name of ['../files', '..%2f..', 'a/b'])
        expect((await app.download('files', encodeURIComponent(name))).status).toBe(404)
    })

    test('a name with half of a surrogate pair is stored without it', async () => {
      const app = await createBlobs(service())
      const sent = await app.send(
        'files',
        `--x\r\nContent-Disposition: form-data; name="blob"; filename*=utf-16le''a%00%00%d8b%00\r\n\r\nx\r\n--x--\r\n`,
        { 'content-type': 'multipart/form-data; boundary=x' },
      )
      expect(sent.status, JSON.stringify(sent.body)).toBe(202)
      await service().request('GET', `/task/${sent.body.ticket_id}`)
      const got = await app.download('files', sent.body.blob_id)
      expect(got.status, got.text).toBe(200)
      expect(got.headers.get('content-disposition')).toBe(
        `inline; filename="ab"; filename*=UTF-8''ab`,
      )
      expect((await app.upload('files', 'next')).status).toBe(200)
    })

    test('rows of blobs come from uploads alone', async () => {
      const app = await createBlobs(service())
      await app.upload('files', 'x')
      expect(await app.data.store('files', [{ blob_id: 'blob_1' }])).toMatchObject({ status: 409 })
      expect(
        await app.data.call('PUT', '/collections/files', { collection_type: 'document' }),
      ).toMatchObject({ status: 400 })
      await app.data.create({ name: 'notes' })
      expect(
        await app.data.call('PUT', '/collections/notes', { collection_type: 'blob' }),
      ).toMatchObject({ status: 400 })
      expect(await app.upload('notes', 'x')).toMatchObject({ status: 409 })
      expect(
        await app.data.create({ name: 'other', collection_type: 'blob', primary_column: 'id' }),
      ).toMatchObject({ status: 400 })
    })

    test('a wallet that owns the application signs the hash of the body, and the body is held to it', async () => {
      const app = await createBlobs(service())
      const wallet = makeTestWallet()
      const path = `/api/apps/${app.appId}`
      await service().request('PATCH', path, {
        body: { owner_address: wallet.address },
        headers: service().operator,
      })
      const body = '--x\r\nContent-Disposition: form-data; name="blob"\r\n\r\nhello\r\n--x--\r\n'
      const at = `${path}/blobs/files`
      const headers = async (shift: number, signed = body) => ({
        'content-type': 'multipart/form-data; boundary=x',
        'content-digest': `sha-256=:${Buffer.from(hash(body), 'hex').toString('base64')}:`,
        ...(await wallet.sign({
          origin: service().url,
          method: 'POST',
          path: at,
          timestamp: Math.floor(service().world.now() / 1000) - shift,
          body: signed,
        })),
      })
      const send = async (raw: string, shift: number) =>
        service().request('POST', at, { raw, headers: await headers(shift) })
      expect((await send(body, 10)).status).toBe(202)
      expect(await send(body.replace('hello', 'other'), 40)).toMatchObject({ status: 400 })
      // A signature over no body at all covers no body that comes without its hash.
      for (const [shift, signed] of [
        [70, body],
        [80, ''],
      ] as const) {
        const { 'content-digest': _, ...unstated } = await headers(shift, signed)
        const refused = await service().request('POST', at, { raw: body, headers: unstated })
        expect(refused.status, signed).toBe(401)
        expect(refused.body.error).toContain('Content-Digest')
      }
    })

    test('an upload that has no place is refused before its bytes are sent: the name of a view, and a full application', async () => {
      const app = await createBlobs(service())
      await app.data.store('rows', [{ id: 'a', n: 1 }])
      const sql = `CREATE MATERIALIZED VIEW "${app.appId}"::taken AS SELECT n FROM "${app.appId}"::rows`
      expect((await app.data.call('POST', '/views/sql', { sql })).status).toBeLessThan(300)
      const ask = (collection: string) =>
        sendHeadersAlone(`${service().url}/api/apps/${app.appId}/blobs/${collection}`, {
          ...app.data.headers,
          'content-type': 'multipart/form-data; boundary=x',
        })
      expect(await ask('taken')).toContain('VIEW_EXISTS')
      await service().request('PATCH', `/api/apps/${app.appId}`, {
        body: { quota: { records: 1 } },
        headers: service().operator,
      })
      expect(await ask('files')).toContain('QUOTA_EXCEEDED')
    })

    test('who may not write is told so before the body is read', async () => {
      const app = await createBlobs(service())
      const other = await createData(service())
      for (const headers of [{}, other.headers])
        expect(
          await app.send('files', new FormData(), { ...headers, 'x-app-key': '' }),
        ).toMatchObject({
          status: 401,
        })
    })
  }))

/** Sends no byte of the body that the headers announce; gives the text of the answer. */
async function sendHeadersAlone(url: string, headers: Record<string, string>): Promise<string> {
  const asked = request(url, { method: 'POST', headers: { ...headers, 'content-length': '1000' } })
  try {
    asked.flushHeaders()
    const [response] = await once(asked, 'response', { signal: AbortSignal.timeout(10_000) })
    return await text(response)
  } finally {
    asked.destroy()
  }
}

function listIncoming(dataDir: string): string[] {
  return readdirSync(join(dataDir, 'blobs', 'incoming'))
}
