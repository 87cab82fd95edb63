import { limits } from '@tollbase/contract/limits'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { meterLoop } from '../support/loop-meter.ts'
import type { TestApp } from '../support/service.ts'
import { startTestService, type TestService } from '../support/service.ts'
import {
  startWorkerClient,
  type WorkerClient,
  type WorkerReply,
  type WorkerRequest,
} from '../support/worker-client.ts'

/**
 * No request that nobody has paid for may hold all others up for more than 20 ms. The rest is room for a slow machine
 * that does other work meanwhile: what this test guards against held the loop for 80 ms to 15 s.
 */
const holdMsMax = 60
/** The machine has pauses of its own (garbage collections among them), but not in each try. */
const tries = 5

/** The size of a body that takes records; other bodies are smaller. */
const bodyChars = limits.bodyBytesMax - 1024
const plainChars = limits.plainBodyBytesMax - 1024
const many = (count: number, make: (at: number) => unknown) =>
  Array.from({ length: count }, (_, at) => make(at))
const fill = (unit: string, chars: number, between = '') =>
  Array.from({ length: Math.floor(chars / (unit.length + between.length)) }, () => unit).join(
    between,
  )
const sqlChars = limits.sqlCharsMax - 100

/** Statements of the maximum length, in the forms that are costliest to parse; `§` is a collection. */
const statements: Readonly<Record<string, string>> = {
  'a long list of columns': `SELECT ${fill('a', sqlChars, ',')} FROM §`,
  'columns with capitals': `SELECT ${fill('A', sqlChars, ',')} FROM §`,
  'a long condition': `SELECT a FROM § WHERE ${fill('a=1', sqlChars, ' OR ')}`,
  'a long IN list': `SELECT a FROM § WHERE a IN (${fill('1', sqlChars, ',')})`,
  'a long sum': `SELECT 1${fill('+1', sqlChars)} FROM §`,
  brackets: `SELECT ${'('.repeat(sqlChars / 2)}1${')'.repeat(sqlChars / 2)} FROM §`,
  'many tables': `SELECT 1 FROM ${fill('§', sqlChars, ',')}`,
  'many tables behind many columns': `SELECT ${fill('a', sqlChars - 1000, ',')} FROM ${fill('§', 900, ',')}`,
  'texts past ASCII': `SELECT ${fill("'ä'", sqlChars, ',')} FROM §`,
  'names past ASCII': `SELECT ${fill('Ä', sqlChars, ',')} FROM §`,
  'one long text': `SELECT '${'x'.repeat(sqlChars)}' FROM §`,
  'a long union': fill('SELECT 1 FROM §', sqlChars, ' UNION '),
  'many conditions of CASE': `SELECT ${fill('CASE WHEN a THEN 1 END', sqlChars, ',')} FROM §`,
  parameters: `SELECT ${fill(':a', sqlChars, ',')} FROM §`,
  'a mistake at the end': `SELECT ${fill('a', sqlChars, ',')} FROM § WHERE !!`,
}

const finds: Readonly<Record<string, unknown>> = {
  '4,000 patterns': {
    or: many(4000, (at) => ({ a: { regExpMatches: `^(a|b){1,${at % 200}}[a-z]+x` } })),
  },
  '256 patterns': {
    or: many(limits.conditionsMax, (at) => ({
      a: { regExpMatches: `^(a|b){1,${at % 100}}[a-z]{1,200}x` },
    })),
  },
  '500,000 values of IN': { a: { in: many(500_000, (at) => at) } },
  '10,000 values of IN': { a: { in: many(limits.inListMax, (at) => `value ${at}`) } },
  '10,000 values of IN, many times': {
    and: many(30, (of) => ({ a: { in: many(limits.inListMax, (at) => at + of) } })),
  },
  '10,000 negated values of IN, many times': {
    and: many(30, (of) => ({ a: { notIn: many(limits.inListMax, (at) => `v${at + of}`) } })),
  },
  'keys without end': Object.fromEntries(
    many(300_000, (at) => [`k${at}`, { is: 1 }]) as [string, unknown][],
  ),
  'operators without end': {
    a: Object.fromEntries(many(300_000, (at) => [`k${at}`, 1]) as [string, unknown][]),
  },
  'lists without end': { or: many(1_000_000, () => ({})) },
  'lists in lists': nested(60, (inner) => ({
    and: [inner, inner.a === undefined ? { a: 1 } : { b: 1 }],
  })),
  'one long text': { a: { is: 'x'.repeat(plainChars - 1000) } },
  'one long text to be part of': { a: { contains: 'ä'.repeat(plainChars / 2 - 1000) } },
  base64: { a: { b64: Buffer.from('x'.repeat(plainChars / 2)).toString('base64') } },
  'empty objects': { or: many(150_000, () => ({})) },
  '120,000 values of IN': { and: many(12, () => ({ a: { in: many(10_000, (at) => at % 10) } })) },
  joins: Object.fromEntries(
    many(20_000, (at) => [`j${at}`, { resolve: {}, model: 'open', many: true }]) as [
      string,
      unknown,
    ][],
  ),
}

function nested(
  depth: number,
  around: (inner: Record<string, unknown>) => Record<string, unknown>,
) {
  let value: Record<string, unknown> = { a: 1 }
  for (let at = 0; at < depth; at++) value = around(value)
  return value
}

const lists: Readonly<Record<string, object>> = {
  'a long select': {
    select: Object.fromEntries(many(300_000, (at) => [`f${at}`, true]) as [string, unknown][]),
  },
  'a long select list': { select: many(500_000, (at) => `f${at}`) },
  aggregates: {
    aggregate: Object.fromEntries(
      many(100_000, (at) => [`s${at}`, { $sum: 'a' }]) as [string, unknown][],
    ),
  },
  groups: { group_by: many(500_000, (at) => `f${at}`) },
  'members that there are not': Object.fromEntries(
    many(300_000, (at) => [`k${at}`, 1]) as [string, unknown][],
  ),
  'a long cursor': { cursor: 'x'.repeat(bodyChars - 1000) },
}

/** Bodies that are costly to parse, for any endpoint. */
const makeTexts = (chars: number): Readonly<Record<string, string>> => ({
  'keys without end': `{${Array.from({ length: Math.floor(chars / 12) }, (_, at) => `"${String(at).padStart(6, 'k')}":1`).join(',')}}`,
  'brackets only': '['.repeat(chars),
  'flat brackets': `[${fill('[]', chars, ',')}]`,
  'nested to the limit': `[${fill(`${'['.repeat(100)}${']'.repeat(100)}`, chars, ',')}]`,
  numbers: `[${fill('1e10', chars, ',')}]`,
  'one text': `"${'x'.repeat(chars)}"`,
  escapes: `"${'\\u00e4'.repeat(chars / 6)}"`,
  'a mistake at the end': `[${fill('1', chars - 10, ',')},]`,
  blanks: ' '.repeat(chars),
  'texts past ASCII': `"${'ä'.repeat(chars / 2)}"`,
})

let service: TestService
let client: WorkerClient
let app: TestApp
let root: string

beforeAll(async () => {
  service = await startTestService({ devnet: true })
  client = startWorkerClient(service.url)
  app = await service.createApp('loopy')
  root = 'loopy::open'
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
}, 120_000)
afterAll(async () => {
  await client?.close()
  await service?.close()
})

/** Returns the shortest, over some tries, of the longest times that the loop was blocked. */
async function held(
  request: WorkerRequest,
): Promise<{ ms: number; reply: WorkerReply | undefined }> {
  let least = Number.POSITIVE_INFINITY
  let reply: WorkerReply | undefined
  for (let at = 0; at < tries && least > holdMsMax; at++) {
    const meter = meterLoop()
    const [first] = await client.send([request])
    least = Math.min(least, meter.stop())
    reply = first
  }
  return { ms: least, reply }
}

async function expectQuick(request: WorkerRequest): Promise<void> {
  const { ms, reply } = await held(request)
  // A body that is too long may be refused while it is still being sent: then there is nobody to tell.
  const isTooLong = (request.body ?? '').length > limits.plainBodyBytesMax
  if (!isTooLong) expect(reply?.status, reply?.text).toBeGreaterThan(0)
  expect(reply?.status, reply?.text).toBeLessThan(500)
  expect(ms, reply?.text).toBeLessThanOrEqual(holdMsMax)
}

const post = (
  path: string,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): WorkerRequest => ({
  method: 'POST',
  path,
  headers,
  body: typeof body === 'string' ? body : JSON.stringify(body),
})

describe('nothing that nobody has paid for holds the event loop', () => {
  describe.each(['nobody::knows', 'loopy::open', 'loopy::sold'])('a statement over %s', (name) => {
    test.each(Object.entries(statements))('%s', async (_name, text) => {
      await expectQuick(
        post('/query/sql', { sql: text.replaceAll('§', name).slice(0, limits.sqlCharsMax) }),
      )
    })
  })
  test.each(Object.entries(finds))('a find: %s', async (_name, find) => {
    await expectQuick(post('/list', { root, find }))
  })
  test.each(Object.entries(lists))('a list: %s', async (_name, parts) => {
    await expectQuick(post('/list', { root, ...parts }))
  })
  test.each(Object.entries(finds))('a quote: %s', async (_name, find) => {
    await expectQuick(
      post('/api/pricing/quote', {
        app_id: 'loopy',
        collection: 'sold',
        operation_type: 'read',
        query: { find },
      }),
    )
  })
  describe.each([
    ['/list', plainChars],
    ['/store', bodyChars],
    ['/api/pricing/quote', plainChars],
    ['/api/apps/loopy/batch', bodyChars],
    ['/api/apps/loopy/retention', bodyChars],
  ])('a body to %s of %i characters', (path, chars) => {
    test.each(Object.entries(makeTexts(chars)))('%s', async (_name, text) => {
      await expectQuick(post(path, text))
    })
  })
  test.each(['nobody::knows', 'loopy::open'])('records by the thousand over %s', async (name) => {
    const data = many(9_000, (at) => ({ id: `r${at}`, text: 'x'.repeat(500), n: at }))
    await expectQuick(post('/store', { root: name, data }))
  })
})
