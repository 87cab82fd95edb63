import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { depositAddress, isSweep, sweepPayment } from './deposit-address.ts'
import { bytesOf, hexFrom, isAddress } from './hex.ts'
import { paymentNetwork } from './networks.ts'
import { recoverSigner, transferDigest } from './signature.ts'

const network = paymentNetwork({ chainId: 84532, payTo: `0x${'7e'.repeat(20)}` })
const secret = Buffer.alloc(32, 1)

test('the address of a quote follows from secret and quote, and from nothing else', () => {
  const quotes = fc.array(fc.string(), { minLength: 1, maxLength: 8 })
  fc.assert(
    fc.property(quotes, (all) => {
      const addresses = all.map((quoteId) => depositAddress(secret, quoteId))
      expect(addresses.every(isAddress)).toBe(true)
      expect(all.map((quoteId) => depositAddress(secret, quoteId))).toEqual(addresses)
      expect(new Set(addresses).size).toBe(new Set(all).size)
      const other = Buffer.alloc(32, 2)
      expect(addresses).not.toContain(depositAddress(other, all[0] ?? ''))
    }),
    { numRuns: 20 },
  )
})

test('a sweep moves exactly its value from the address of its quote to the payee, signed, always the same', () => {
  const sweep = { id: 'pay_1', quoteId: 'q1.a.b', value: 1070n }
  const payment = sweepPayment(secret, network, sweep)
  const { payload } = payment
  expect(payload).toMatchObject({
    from: depositAddress(secret, sweep.quoteId),
    to: network.payTo,
    value: 1070n,
  })
  const digest = transferDigest(network, payload)
  expect(recoverSigner(digest, bytesOf(payload.signature))).toBe(payload.from)
  expect(sweepPayment(secret, network, sweep)).toEqual(payment)
  const nonces = [sweep, { ...sweep, id: 'pay_2' }, { ...sweep, quoteId: 'q1.a.c' }].map(
    (one) => sweepPayment(secret, network, one).payload.nonce,
  )
  expect(new Set(nonces).size).toBe(3)
})

test('our sweeps are known by their nonce, and nobody else can make one that is', () => {
  const { payload } = sweepPayment(secret, network, { id: 'a', quoteId: 'q', value: 1n })
  expect(isSweep(secret, payload)).toBe(true)
  expect(isSweep(Buffer.alloc(32, 2), payload)).toBe(false)
  expect(isSweep(secret, { ...payload, from: `0x${'11'.repeat(20)}` })).toBe(false)
  expect(isSweep(secret, { ...payload, nonce: hexFrom(randomBytes(32)) })).toBe(false)
  for (const at of [2, 33, 34, 65]) {
    const digit = payload.nonce[at] === '0' ? '1' : '0'
    const nonce = `${payload.nonce.slice(0, at)}${digit}${payload.nonce.slice(at + 1)}`
    expect(isSweep(secret, { ...payload, nonce })).toBe(false)
  }
})
