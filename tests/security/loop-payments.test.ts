import { limits } from '@tollbase/contract/limits'
import { afterAll, beforeAll, describe, test } from 'vitest'
import type { WorkerRequest } from '../support/worker-client.ts'
import {
  bodyChars,
  expectQuick,
  fill,
  type HeldPlace,
  many,
  openHeldPlace,
  plainChars,
  post,
  toObject,
} from './held-loop.ts'

let place: HeldPlace
beforeAll(async () => {
  place = await openHeldPlace()
}, 120_000)
afterAll(() => place?.close())

const check = (request: WorkerRequest) => expectQuick(place.client, request)
const encode = (text: string) => Buffer.from(text).toString('base64')

/** The characters that fit into a payment header as base64. */
const paymentChars = Math.floor(limits.paymentHeaderBytesMax / 4) * 3 - 200
const hex = (bytes: number) => `0x${'ab'.repeat(bytes)}`
const authorization = {
  from: hex(20),
  to: hex(20),
  value: '1',
  validAfter: '0',
  validBefore: '9999999999',
  nonce: hex(32),
}
const accepted = {
  scheme: 'exact',
  network: 'eip155:31337',
  amount: '1',
  asset: hex(20),
  payTo: hex(20),
}
const makePayment = (parts: object) => ({
  x402Version: 2,
  accepted,
  payload: { signature: `0x${'ab'.repeat(64)}1b`, authorization },
  ...parts,
})

/** Payments of a size, in the forms that are costliest to read. */
const makePayments = (chars: number): Readonly<Record<string, string>> => ({
  brackets: '['.repeat(chars),
  'brackets in pairs': `[${fill('[]', chars, ',')}]`,
  members: JSON.stringify(toObject(chars / 10, (at) => [`k${at}`, 1])),
  'members of one name': `{${fill('"a":1', chars, ',')}}`,
  numbers: `[${fill('1e9', chars, ',')}]`,
  'one long number': '1'.repeat(chars),
  'one long fraction': `0.${'1'.repeat(chars)}`,
  'one long text': `"${'x'.repeat(chars)}"`,
  escapes: `"${fill('\\u00e4', chars)}"`,
  backslashes: `"${'\\'.repeat(chars)}`,
  'a long amount': JSON.stringify(
    makePayment({ accepted: { ...accepted, amount: '9'.repeat(chars) } }),
  ),
  'a long network': JSON.stringify(
    makePayment({ accepted: { ...accepted, network: `eip155:${'1'.repeat(chars)}` } }),
  ),
  'a long quote': JSON.stringify(
    makePayment({ accepted: { ...accepted, extra: { quoteId: `q2.${'A'.repeat(chars)}` } } }),
  ),
  'a quote that is long and allowed': JSON.stringify(
    makePayment({ accepted: { ...accepted, extra: { quoteId: `q2.${'A'.repeat(1_000)}` } } }),
  ),
  'a signature that is none': JSON.stringify(makePayment({})),
  'a transfer that was not made': JSON.stringify({
    x402Version: 1,
    scheme: 'exact',
    network: 'local',
    quoteId: `q2.${'A'.repeat(500)}`,
    payload: { txHash: hex(32), sender: hex(20) },
  }),
})

const sold = { root: 'loopy::sold', find: {} }

describe('payments that buy nothing', () => {
  describe.each(['payment-signature', 'x-payment'])('payments in the header %s', (header) => {
    test.each(Object.entries(makePayments(paymentChars)))(
      'a payment header with %s does not hold the event loop',
      async (_name, text) => {
        await check(post('/list', sold, { [header]: encode(text) }))
      },
    )
    test.each([
      ['a text that is no base64', '!'.repeat(limits.paymentHeaderBytesMax)],
      ['padding', '='.repeat(limits.paymentHeaderBytesMax)],
      ['more than a payment may have', 'A'.repeat(30_000)],
    ])('a payment header with %s does not hold the event loop', async (_name, value) => {
      await check(post('/list', sold, { [header]: value }))
    })
  })
  describe.each(['/api/payments/verify', '/api/payments/settle'])(
    'payments in a body to %s',
    (path) => {
      const texts = Object.entries(makePayments(plainChars - 1000))
      test.each(texts)('a payment body of %s does not hold the event loop', async (_name, text) => {
        await check(
          post(path, `{"x402Version":2,"paymentPayload":${text},"paymentRequirements":${text}}`),
        )
        await check(
          post(path, `{"x402Version":2,"paymentPayload":${text},"paymentRequirements":{}}`),
        )
      })
    },
  )
  test('a proof among the members of a long store', async () => {
    const data = many(9_000, (at) => ({ id: `r${at}`, text: 'x'.repeat(500) }))
    const proof = { payment_tx_hash: hex(32), user_address: hex(20), quote_id: 'q2.AAAA' }
    const { headers } = place.app
    await check(post('/store', { root: 'loopy::sold', data, ...proof }, headers))
    await check(post('/store', { ...proof, root: 'loopy::filled', data }, headers))
  })
  test('a payment with a long store', async () => {
    const data = many(9_000, (at) => ({ id: `r${at}`, text: 'x'.repeat(500) }))
    const header = { 'payment-signature': encode(JSON.stringify(makePayment({}))) }
    const { headers } = place.app
    await check(post('/store', { root: 'loopy::sold', data }, { ...headers, ...header }))
    await check(post('/store', { root: 'loopy::filled', data }, { ...headers, ...header }))
  })
})

describe('credentials that open nothing', () => {
  const sign = () => ({
    'x-wallet-address': hex(20),
    'x-timestamp': String(Math.floor(place.service.world.now() / 1000)),
    'x-signature': `0x${'ab'.repeat(64)}1b`,
  })
  test.each(['/store', '/api/apps/loopy/batch'])(
    'a wallet signature for a long body to %s does not hold the event loop',
    async (path) => {
      const data = many(9_000, (at) => ({ id: `r${at}`, text: 'x'.repeat(500) }))
      await check(post(path, { root: 'loopy::filled', data }, sign()))
    },
  )
  test('a wallet signature for a body of one text does not hold the event loop', async () => {
    const text = `{"root":"loopy::filled","data":["${'x'.repeat(bodyChars - 100)}"]}`
    await check(post('/store', text, sign()))
  })
  test('a wallet signature for a long address does not hold the event loop', async () => {
    await check(post(`/list?${fill('a=%41', 24_000, '&')}`, sold, sign()))
  })
  test.each([
    ['a long key', { authorization: `Bearer ${'x'.repeat(30_000)}` }],
    ['a key with blanks', { authorization: `Bearer ${' '.repeat(15_000)}x${' '.repeat(14_000)}x` }],
    [
      'a long name of a wallet',
      { 'x-wallet-address': 'x'.repeat(29_000), 'x-timestamp': '1', 'x-signature': '1' },
    ],
    [
      'a long time',
      { 'x-wallet-address': 'x', 'x-timestamp': '1'.repeat(29_000), 'x-signature': '1' },
    ],
    ['many headers', toObject(2_000, (at) => [`x-h${at}`, '1'])],
  ])('a request with %s does not hold the event loop', async (_name, headers) => {
    await check(post('/list', sold, headers as Record<string, string>))
  })
  test.each([
    ['parameters', fill('a=1', 30_000, '&')],
    ['parameters of many names', many(3_000, (at) => `a${at}=1`).join('&')],
    ['keys', fill('api_key=x', 30_000, '&')],
    ['escapes', `a=${fill('%C3%A4', 30_000)}`],
    ['broken escapes', `a=${fill('%C3%', 30_000)}`],
    ['plus signs', '+'.repeat(30_000)],
  ])('an address of %s does not hold the event loop', async (_name, query) => {
    for (const path of ['/list', '/api/queries/loopy/nothing/data', '/api/apps/loopy/views/x/data'])
      await check({ method: path === '/list' ? 'POST' : 'GET', path: `${path}?${query}` })
  })
  test('a long path', async () => {
    await check({ method: 'GET', path: `/${fill('a', 30_000, '/')}` })
    await check({ method: 'GET', path: `/api/apps/${'a'.repeat(30_000)}` })
    await check({ method: 'GET', path: `/${fill('%2F', 30_000)}` })
  })
})
