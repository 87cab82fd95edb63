import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { deriveDepositAddress, isSweep, signSweep } from './deposit-address.ts'
import { decodeHex, encodeHex, isAddress } from './hex.ts'
import { makePaymentNetwork } from './networks.ts'
import { digestTransfer, recoverSigner } from './signature.ts'

const network = makePaymentNetwork({ chainId: 84532, payTo: `0x${'7e'.repeat(20)}` })
const secret = Buffer.alloc(32, 1)

test('the address of a quote follows from secret and quote, and from nothing else', () => {
  const quotes = fc.array(fc.string(), { minLength: 1, maxLength: 8 })
  fc.assert(
    fc.property(quotes, (all) => {
      const addresses = all.map((quoteId) => deriveDepositAddress(secret, quoteId))
      expect(addresses.every(isAddress)).toBe(true)
      expect(all.map((quoteId) => deriveDepositAddress(secret, quoteId))).toEqual(addresses)
      expect(new Set(addresses).size).toBe(new Set(all).size)
      const other = Buffer.alloc(32, 2)
      expect(addresses).not.toContain(deriveDepositAddress(other, all[0] ?? ''))
    }),
    { numRuns: 20 },
  )
})

test('a sweep moves exactly its value from the address of its quote to the payee, signed, always the same', () => {
  const sweep = { id: 'pay_1', quoteId: 'q1.a.b', value: 1070n }
  const payment = signSweep(secret, network, sweep)
  const { payload } = payment
  expect(payload).toMatchObject({
    from: deriveDepositAddress(secret, sweep.quoteId),
    to: network.payTo,
    value: 1070n,
  })
  const digest = digestTransfer(network, payload)
  expect(recoverSigner(digest, decodeHex(payload.signature))).toBe(payload.from)
  expect(signSweep(secret, network, sweep)).toEqual(payment)
  const nonces = [sweep, { ...sweep, id: 'pay_2' }, { ...sweep, quoteId: 'q1.a.c' }].map(
    (one) => signSweep(secret, network, one).payload.nonce,
  )
  expect(new Set(nonces).size).toBe(3)
})

test('our sweeps are known by their nonce, and nobody else can make one that is', () => {
  const { payload } = signSweep(secret, network, { id: 'a', quoteId: 'q', value: 1n })
  expect(isSweep(secret, payload)).toBe(true)
  expect(isSweep(Buffer.alloc(32, 2), payload)).toBe(false)
  expect(isSweep(secret, { ...payload, from: `0x${'11'.repeat(20)}` })).toBe(false)
  expect(isSweep(secret, { ...payload, nonce: encodeHex(randomBytes(32)) })).toBe(false)
  for (const at of [2, 33, 34, 65]) {
    const digit = payload.nonce[at] === '0' ? '1' : '0'
    const nonce = `${payload.nonce.slice(0, at)}${digit}${payload.nonce.slice(at + 1)}`
    expect(isSweep(secret, { ...payload, nonce })).toBe(false)
  }
})
