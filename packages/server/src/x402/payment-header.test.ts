import { limits } from '@tollbase/contract/limits'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Fault } from '../base/fault.ts'
import { encodeHex } from './hex.ts'
import { decodePayment, readPresented } from './payment-header.ts'
import { quoteIdCharsMax } from './quote.ts'

const authorization = {
  from: `0x${'A1'.repeat(20)}`,
  to: `0x${'b2'.repeat(20)}`,
  value: '1070',
  validAfter: '0',
  validBefore: '1800000000',
  nonce: `0x${'Cd'.repeat(32)}`,
}
const signature = `0x${'1F'.repeat(64)}1b`
const payload = { signature, authorization }
const v1 = { x402Version: 1, scheme: 'exact', network: 'base-sepolia', payload }
const accepted = {
  scheme: 'exact',
  network: 'eip155:84532',
  amount: '1070',
  asset: `0x${'E5'.repeat(20)}`,
  payTo: `0x${'b2'.repeat(20)}`,
  maxTimeoutSeconds: 60,
  extra: { name: 'USDC', version: '2', quoteId: 'q1.a.b', costBreakdown: { rows: 0.5 } },
}
const v2 = { x402Version: 2, resource: { url: 'http://x/' }, accepted, payload, extensions: {} }

const base64 = (text: string | Uint8Array) => Buffer.from(text).toString('base64')
const first = (value: unknown) => decodePayment({ xPayment: base64(JSON.stringify(value)) })
const second = (value: unknown) =>
  decodePayment({ paymentSignature: base64(JSON.stringify(value)) })
const withField = (change: object) =>
  first({ ...v1, payload: { signature, authorization: { ...authorization, ...change } } })

const expected = {
  from: `0x${'a1'.repeat(20)}`,
  to: `0x${'b2'.repeat(20)}`,
  value: 1070n,
  validAfter: 0n,
  validBefore: 1800000000n,
  nonce: `0x${'cd'.repeat(32)}`,
  signature: `0x${'1f'.repeat(64)}1b`,
}

describe('headers that are read', () => {
  test('a request without a header has no payment', () => {
    expect(decodePayment({})).toBeUndefined()
  })

  test('version 1 of a stock client is read', () => {
    expect(first(v1)).toEqual({
      version: 1,
      network: 'eip155:84532',
      scheme: 'exact',
      payload: expected,
      receiptForm: 'base64',
    })
  })

  test('version 1 of the public SDK is read: numbers for times, a quote id, receipts as JSON', () => {
    const times = { validAfter: 0, validBefore: 1800000000 }
    const sent = { ...v1, payload: { signature, authorization: { ...authorization, ...times } } }
    expect(first({ ...sent, quoteId: 'q1.x' })).toMatchObject({
      quoteId: 'q1.x',
      payload: expected,
      receiptForm: 'json',
    })
    expect(first({ ...sent, quoteId: '' })?.quoteId).toBeUndefined()
  })

  test('version 2 is read, including fractions in members that are only echoed', () => {
    expect(second(v2)).toEqual({
      version: 2,
      network: 'eip155:84532',
      scheme: 'exact',
      quoteId: 'q1.a.b',
      accepted: {
        scheme: 'exact',
        network: 'eip155:84532',
        amount: 1070n,
        asset: `0x${'e5'.repeat(20)}`,
        payTo: `0x${'b2'.repeat(20)}`,
      },
      payload: expected,
      receiptForm: 'base64',
    })
  })

  test('a recovery bit of 0 or 1 becomes 27 or 28, which tokens take', () => {
    const read = (v: string) =>
      first({ ...v1, payload: { authorization, signature: `0x${'1f'.repeat(64)}${v}` } })
    expect(read('00')).toHaveProperty('payload.signature', expect.stringMatching(/1b$/))
    expect(read('01')).toHaveProperty('payload.signature', expect.stringMatching(/1c$/))
  })

  test('a transfer that was made is read as the public SDK writes it', () => {
    const txHash = `0x${'Ab'.repeat(32)}`
    const sent = { ...v1, quoteId: 'q1.a.b', payload: { txHash, sender: 'unknown', timestamp: 17 } }
    const expected = {
      version: 1,
      scheme: 'exact',
      network: 'eip155:84532',
      quoteId: 'q1.a.b',
      transaction: txHash.toLowerCase(),
      receiptForm: 'json',
    }
    expect(first(sent)).toEqual(expected)
    const { network: _, ...nowhere } = expected
    expect(first({ ...sent, network: 'mocha-4' })).toEqual(nowhere)
    const sender = `0x${'C3'.repeat(20)}`
    expect(first({ ...sent, payload: { txHash: txHash.slice(2), sender } })).toEqual({
      ...expected,
      sender: sender.toLowerCase(),
    })
  })

  test('every payment comes back as it was written', () => {
    const uint = fc.bigInt({ min: 0n, max: 2n ** 256n - 1n })
    const hex = (bytes: number) =>
      fc.uint8Array({ minLength: bytes, maxLength: bytes }).map(encodeHex)
    const payments = fc.record({
      from: hex(20),
      to: hex(20),
      value: uint,
      validAfter: uint,
      validBefore: uint,
      nonce: hex(32),
      signature: hex(64).map((compact) => `${compact}1c`),
    })
    fc.assert(
      fc.property(payments, fc.boolean(), ({ signature: signed, ...fields }, old) => {
        const written = Object.fromEntries(
          Object.entries(fields).map(([key, value]) => [key, value.toString()]),
        )
        const sent = { signature: signed, authorization: written }
        const read = old ? first({ ...v1, payload: sent }) : second({ ...v2, payload: sent })
        expect(read).toHaveProperty('payload', { ...fields, signature: signed })
      }),
    )
  })
})

describe('headers that are refused', () => {
  test('both headers at once are refused, naming the field', () => {
    const header = base64(JSON.stringify(v1))
    expectMalformed(() => decodePayment({ xPayment: header, paymentSignature: header }), /together/)
  })

  test('two headers of one name, which Node joins with a comma, are refused', () => {
    const header = base64(JSON.stringify(v1))
    expectMalformed(() => decodePayment({ xPayment: `${header}, ${header}` }), /base64/)
  })

  test.each([
    ['no text', ''],
    ['plain JSON', JSON.stringify(v1)],
    ['base64url', Buffer.from(JSON.stringify({ ...v1, pad: '???>>>' })).toString('base64url')],
    ['missing padding', base64('{"a":1}').replace(/=+$/, '')],
    ['white space around', ` ${base64('{}')}`],
    ['unused bits set', 'e33='],
    ['no UTF-8', base64(Buffer.from([0x22, 0xff, 0x22]))],
    ['a byte order mark', base64(`\ufeff${JSON.stringify(v1)}`)],
    ['no object', base64('[]')],
    ['null', base64('null')],
    ['a number', base64('1.5')],
    ['cut JSON', base64(JSON.stringify(v1).slice(0, -1))],
    ['a key twice', base64(JSON.stringify(v1).replace('{', '{"scheme":"exact",'))],
    ['__proto__', base64(JSON.stringify(v1).replace('{', '{"__proto__":{},'))],
  ])('a header is refused, naming the field, for %s', (_name, header) => {
    expectMalformed(() => decodePayment({ xPayment: header }), /./)
    expectMalformed(() => decodePayment({ paymentSignature: header }), /./)
  })

  test('a header of one byte more than the limit is refused, and one at the limit is read', () => {
    const sized = (bytes: number) => {
      const bare = JSON.stringify({ ...v1, pad: '' })
      return base64(JSON.stringify({ ...v1, pad: 'x'.repeat((bytes / 4) * 3 - bare.length) }))
    }
    expect(sized(limits.paymentHeaderBytesMax)).toHaveLength(limits.paymentHeaderBytesMax)
    expect(decodePayment({ xPayment: sized(limits.paymentHeaderBytesMax) })).toBeDefined()
    expectMalformed(
      () => decodePayment({ xPayment: `${sized(limits.paymentHeaderBytesMax)}A` }),
      /longer than 16384 bytes/,
    )
    expectMalformed(() => decodePayment({ xPayment: 'A'.repeat(1_000_000) }), /longer/)
  })

  test.each([
    ['value', { value: '1.5' }],
    ['value', { value: '1e3' }],
    ['value', { value: '01' }],
    ['value', { value: '-1' }],
    ['value', { value: '+1' }],
    ['value', { value: '' }],
    ['value', { value: '0x10' }],
    ['value', { value: ' 1' }],
    ['value', { value: 1.5 }],
    ['value', { value: -1 }],
    ['value', { value: 2 ** 53 }],
    ['value', { value: null }],
    ['value', { value: ['1'] }],
    ['value', { value: (2n ** 256n).toString() }],
    ['value', { value: '9'.repeat(10_000) }],
    ['validAfter', { validAfter: undefined }],
    ['validBefore', { validBefore: true }],
    ['from', { from: `0x${'a1'.repeat(19)}` }],
    ['to', { to: `${'a1'.repeat(20)}` }],
    ['to', { to: `0x${'a1'.repeat(19)}zz` }],
    ['nonce', { nonce: `0x${'cd'.repeat(33)}` }],
    ['memo', { memo: 'x' }],
  ])('a wrong %s is refused, naming the field: %j', (field, change) => {
    expectMalformed(() => withField(change), new RegExp(`^payload.authorization.${field} `))
  })

  test.each(['1.0', '1e3', '1E3', '-0', '007', '9007199254740993'])(
    'the number %s is refused where an integer belongs',
    (digits) => {
      const text = JSON.stringify(v1).replace('"validAfter":"0"', `"validAfter":${digits}`)
      expectMalformed(() => decodePayment({ xPayment: base64(text) }), /validAfter|JSON/)
    },
  )

  test.each([
    ['x402Version', { ...v1, x402Version: 2 }],
    ['x402Version', { ...v1, x402Version: '1' }],
    ['scheme', { ...v1, scheme: 'other' }],
    ['network', { ...v1, network: 'mocha-4' }],
    ['network', { ...v1, network: 'constructor' }],
    ['quoteId', { ...v1, quoteId: 5 }],
    ['quoteId', { ...v1, quoteId: 'x'.repeat(quoteIdCharsMax + 1) }],
    ['quoteId', { ...v1, quoteId: 'q\u0000' }],
    ['payload', { ...v1, payload: undefined }],
    ['payload.authorization', { ...v1, payload: { signature } }],
    ['payload.txHash', { ...v1, payload: { ...payload, txHash: '0x' } }],
    ['payload.txHash', { ...v1, payload: { txHash: '0x' } }],
    ['payload.txHash', { ...v1, payload: { txHash: 7 } }],
    ['payload.sender', { ...v1, payload: { txHash: '11'.repeat(32), sender: '0x12' } }],
    ['payload.timestamp', { ...v1, payload: { txHash: '11'.repeat(32), timestamp: 1.5 } }],
    ['payload.value', { ...v1, payload: { txHash: '11'.repeat(32), value: '1' } }],
    ['payload.signature', { ...v1, payload: { authorization, signature: `${signature}00` } }],
    ['payload.signature', { ...v1, payload: { authorization, signature: signature.slice(0, -2) } }],
    ['payload.signature', { ...v1, payload: { authorization, signature: `0x${'11'.repeat(65)}` } }],
  ])('version 1 with a wrong %s is refused, naming the field', (field, value) => {
    expectMalformed(() => first(value), new RegExp(`^${field} `))
  })

  test.each([
    ['accepted', { ...v2, accepted: undefined }],
    ['accepted.scheme', { ...v2, accepted: { ...accepted, scheme: 'other' } }],
    ['accepted.network', { ...v2, accepted: { ...accepted, network: 'base-sepolia' } }],
    ['accepted.network', { ...v2, accepted: { ...accepted, network: 'eip155:084532' } }],
    ['accepted.amount', { ...v2, accepted: { ...accepted, amount: '1070.0' } }],
    ['accepted.extra', { ...v2, accepted: { ...accepted, extra: [] } }],
    ['accepted.extra.quoteId', { ...v2, accepted: { ...accepted, extra: { quoteId: {} } } }],
  ])('version 2 with a wrong %s is refused, naming the field', (field, value) => {
    expectMalformed(() => second(value), new RegExp(`^${field} `))
  })

  test('a body is read with no text that the database cannot read as JSON', () => {
    for (const quoteId of ['q\u0000', '\ud800', '\udc00q'])
      expectMalformed(() => readPresented({ ...v1, quoteId }, 1), /^quoteId must have neither /)
  })

  test('any bytes end as a payment or as PAYMENT_MALFORMED', () => {
    const text = JSON.stringify(v2)
    fc.assert(
      fc.property(
        fc.nat(text.length - 1),
        fc.string({ maxLength: 3, unit: 'binary' }),
        fc.nat(5),
        (at, put, cut) => {
          const changed = base64(text.slice(0, at) + put + text.slice(at + cut))
          try {
            decodePayment({ paymentSignature: changed })
          } catch (error) {
            expect(error).toMatchObject({ code: 'PAYMENT_MALFORMED' })
          }
        },
      ),
      { numRuns: 1000 },
    )
  })
})

function expectMalformed(run: () => unknown, message: RegExp): void {
  try {
    run()
  } catch (error) {
    expect(error).toBeInstanceOf(Fault)
    expect(error).toMatchObject({ code: 'PAYMENT_MALFORMED', status: 400 })
    expect(String((error as Fault).message)).toMatch(message)
    return
  }
  expect.unreachable('the payment was read')
}
