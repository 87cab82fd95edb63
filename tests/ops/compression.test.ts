import { get } from 'node:http'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { withService } from '../support/per-engine.ts'

type Answer = { readonly headers: NodeJS.Dict<string | string[]>; readonly body: Buffer }

/** The answer's bytes as they come over the wire. */
function fetchBytes(url: string, accepted?: string): Promise<Answer> {
  const headers = accepted === undefined ? {} : { 'accept-encoding': accepted }
  return new Promise((resolve, reject) => {
    get(url, { headers }, (reply) => {
      const parts: Buffer[] = []
      reply.on('data', (part) => parts.push(part))
      reply.on('end', () => resolve({ headers: reply.headers, body: Buffer.concat(parts) }))
    }).on('error', reject)
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

  test('a small answer goes as it is', async () => {
    const { headers } = await fetchBytes(`${service().url}/ready`, 'br')
    expect(headers).not.toHaveProperty('content-encoding')
  })
})
