import { limits } from '@tollbase/contract/limits'
import { expect } from 'vitest'
import { meterLoop } from '../support/loop-meter.ts'
import { startTestService, type TestApp, type TestService } from '../support/service.ts'
import {
  startWorkerClient,
  type WorkerClient,
  type WorkerReply,
  type WorkerRequest,
} from '../support/worker-client.ts'

/**
 * No request that nobody has paid for may hold all others up for more than 20 ms. The rest is room for a slow machine
 * that does other work meanwhile, and for long stores with a payment, which take 50 to 80 ms: most of what these tests
 * guard against held the loop for 0.2 to 15 s.
 */
const holdMsMax = 200
/** The machine has pauses of its own (garbage collections among them), but not in each try. */
const tries = 5

/** The size of a body that takes records, and of others. */
export const bodyChars = limits.bodyBytesMax - 1024
export const plainChars = limits.plainBodyBytesMax - 1024

export const many = <T>(count: number, make: (at: number) => T): T[] =>
  Array.from({ length: count }, (_, at) => make(at))

export const fill = (unit: string, chars: number, between = '') =>
  many(Math.floor(chars / (unit.length + between.length)), () => unit).join(between)

export const toObject = (count: number, make: (at: number) => readonly [string, unknown]) =>
  Object.fromEntries(many(count, make))

/** The service, an application with collections to everybody's view and for sale, and a client beside this thread. */
export type HeldPlace = {
  readonly service: TestService
  readonly app: TestApp
  readonly client: WorkerClient
  /** Sends a request of the application's key that must succeed. */
  readonly ask: (method: string, path: string, body: unknown) => Promise<void>
  readonly close: () => Promise<void>
}

/** The collection that anybody may read. */
export const root = 'loopy::open'

export async function openHeldPlace(): Promise<HeldPlace> {
  const service = await startTestService({ devnet: true })
  const client = startWorkerClient(service.url)
  const app = await service.createApp('loopy')
  const ask = async (method: string, path: string, body: unknown) => {
    const reply = await service.request(method, path, { body, headers: app.headers })
    expect(reply.status, reply.text).toBeLessThan(300)
  }
  await ask('POST', '/api/apps/loopy/collections', { name: 'open', access_policy: 'public' })
  await ask('POST', '/api/apps/loopy/collections', {
    name: 'sold',
    access_policy: { price: { per_row: '1' } },
  })
  await ask('POST', '/store?wait=true', { root, data: many(20, (at) => ({ id: `${at}`, a: at })) })
  const close = async () => {
    await client.close()
    await service.close()
  }
  return { service, app, client, ask, close }
}

/** Returns the shortest, over some tries, of the longest times that the loop was blocked. */
async function measureHold(
  client: WorkerClient,
  { make, mostMs }: { readonly make: () => WorkerRequest; readonly mostMs: number },
): Promise<{ ms: number; reply: WorkerReply | undefined }> {
  let least = Number.POSITIVE_INFINITY
  let reply: WorkerReply | undefined
  for (let at = 0; at < tries && least > mostMs; at++) {
    const request = make()
    const meter = meterLoop()
    const [first] = await client.send([request])
    least = Math.min(least, meter.stop())
    reply = first
  }
  return { ms: least, reply }
}

/** Fails where the request holds the loop for too long, or is answered by an error of ours. */
export async function expectQuick(
  client: WorkerClient,
  request: WorkerRequest | (() => WorkerRequest),
  mostMs = holdMsMax,
): Promise<void> {
  const make = typeof request === 'function' ? request : () => request
  const { ms, reply } = await measureHold(client, { make, mostMs })
  if (process.env.SHOW_HELD)
    console.log(
      'HELD',
      ms.toFixed(1),
      expect.getState().currentTestName?.slice(0, 120),
      reply?.status,
      reply?.ms.toFixed(0),
      reply?.text.slice(0, 110),
    )
  // A body that is too long may be refused while it is still being sent: then there is nobody to tell.
  const isTooLong = (make().body ?? '').length > limits.plainBodyBytesMax
  if (!isTooLong) expect(reply?.status, reply?.text).toBeGreaterThan(0)
  expect(reply?.status, reply?.text).toBeLessThan(500)
  expect(ms, reply?.text).toBeLessThanOrEqual(mostMs)
}

export const post = (
  path: string,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): WorkerRequest => ({
  method: 'POST',
  path,
  headers,
  body: typeof body === 'string' ? body : JSON.stringify(body),
})
