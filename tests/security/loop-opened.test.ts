import { limits } from '@tollbase/contract/limits'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startTestService, type TestApp, type TestService } from '../support/service.ts'
import { startWorkerClient, type WorkerClient } from '../support/worker-client.ts'
import { expectQuick, fill, many, post } from './held-loop.ts'

/** Records are read and opened one by one, 5 to 15 ms each; all in one text held the loop for some 200 ms. */
const holdMsMax = 60

let service: TestService
let client: WorkerClient
let app: TestApp
const text = fill('ä text, ', 860_000)
const count = Math.floor(limits.openedBytesMax / ((Buffer.byteLength(text) + 100) * (4 / 3)))
beforeAll(async () => {
  service = await startTestService({ config: { encryptionUpdatePrice: 0n } })
  client = startWorkerClient(service.url)
  app = await service.createApp('loopy')
  const { headers } = app
  const ask = async (path: string, body: object) => {
    const reply = await service.request('POST', path, { body, headers })
    expect(reply.status, reply.text).toBeLessThan(300)
  }
  await ask('/api/apps/loopy/encryption', { private_app: true })
  await ask('/api/apps/loopy/collections', { name: 'sealed' })
  for (let from = 0; from < count; from += 4) {
    const data = many(Math.min(4, count - from), (at) => ({ id: `r${from + at}`, text }))
    await ask('/store?wait=true', { root: 'loopy::sealed', data })
  }
}, 240_000)
afterAll(async () => {
  await client?.close()
  await service?.close()
})

describe('a list of an encrypted collection that opens as much as one may', () => {
  const list = (more: object) => post('/list', { root: 'loopy::sealed', ...more }, app.headers)

  test('does not hold the event loop', async () => {
    await expectQuick(client, list({ find: { other: 1 } }), holdMsMax)
  }, 120_000)

  test('finds each of its records, in their order', async () => {
    const find = { id: { startsWith: 'r' }, text: { startsWith: 'ä text' } }
    const body = { root: 'loopy::sealed', find, select: { id: true } }
    const found = await service.request('POST', '/list', { body, headers: app.headers })
    expect(found.body.records, found.text.slice(0, 200)).toEqual(
      many(count, (at) => ({ id: `r${at}` })),
    )
  })
})
