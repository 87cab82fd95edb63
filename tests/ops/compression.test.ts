import { request } from 'node:http'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { createData } from '../support/data.ts'
import { withService } from '../support/per-engine.ts'

type Sent = { readonly body?: string; readonly headers?: Readonly<Record<string, string>> }
type Answer = { readonly headers: NodeJS.Dict<string | string[]>; readonly body: Buffer }

/** The answer's bytes as they come over the wire. */
function fetchBytes(url: string, accepted?: string, sent: Sent = {}): Promise<Answer> {
  const { body, headers: own } = sent
  const headers = { ...own, ...(accepted !== undefined && { 'accept-encoding': accepted }) }
  return new Promise((resolve, reject) => {
    request(url, { method: body === undefined ? 'GET' : 'POST', headers }, (reply) => {
      const parts: Buffer[] = []
      reply.on('data', (part) => parts.push(part))
      reply.on('end', () => resolve({ headers: reply.headers, body: Buffer.concat(parts) }))
    })
      .on('error', reject)
      .end(body)
  })
}

withService((service) => {
  test.each(['/docs', '/openapi.json'])(
    '%s is compressed for clients that accept it',
    async (path) => {
      const url = `${service().url}${path}`
      const plain = await fetchBytes(url)
      expect(plain.headers).not.toHaveProperty('content-encoding')
      expect(plain.headers.vary).toContain('Accept-Encoding')
      const brotli = await fetchBytes(url, 'gzip, deflate, br')
      expect(brotli.headers['content-encoding']).toBe('br')
      expect(brotliDecompressSync(brotli.body)).toEqual(plain.body)
      const gzip = await fetchBytes(url, 'gzip, br;q=0')
      expect(gzip.headers['content-encoding']).toBe('gzip')
      expect(gunzipSync(gzip.body)).toEqual(plain.body)
      for (const { headers, body } of [plain, brotli, gzip])
        expect(headers['content-length']).toBe(String(body.length))
      expect(brotli.body.length).toBeLessThan(plain.body.length / 5)
    },
  )

  test('a long answer of signs that take several bytes states its length in bytes, plain and compressed', async () => {
    const data = await createData(service())
    const text = 'Zürich 東京 🏙 '.repeat(20)
    await data.store(
      'cities',
      Array.from({ length: 100 }, (_, at) => ({ id: `${at}`, text })),
    )
    const sent = {
      body: JSON.stringify({ root: `${data.appId}::cities`, limit: 100 }),
      headers: { ...data.headers, 'content-type': 'application/json' },
    }
    const plain = await fetchBytes(`${service().url}/list`, undefined, sent)
    const compressed = await fetchBytes(`${service().url}/list`, 'br', sent)
    expect(plain.headers['content-length']).toBe(String(plain.body.length))
    expect(plain.body.length).toBeGreaterThan(plain.body.toString().length)
    const { records } = JSON.parse(plain.body.toString())
    expect(records.map((record: { text: string }) => record.text)).toEqual(Array(100).fill(text))
    expect(brotliDecompressSync(compressed.body)).toEqual(plain.body)
  })

  test('a small answer goes as it is', async () => {
    const { headers } = await fetchBytes(`${service().url}/ready`, 'br')
    expect(headers).not.toHaveProperty('content-encoding')
  })
})
