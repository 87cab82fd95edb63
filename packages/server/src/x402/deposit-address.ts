import { createHmac, timingSafeEqual } from 'node:crypto'
import { assert } from '../base/assert.ts'
import { curve } from './curve.ts'
import { decodeHex, encodeHex, hashKeccak } from './hex.ts'
import type { PaymentNetwork } from './networks.ts'
import type { ExactPayment, SignedPayment } from './protocol.ts'
import { deriveAddress, digestTransfer, signDigest } from './signature.ts'

/**
 * Derives an address for each quote, and for no other: the transfer itself then names the quote that it pays for,
 * so nobody gains anything by a transaction hash seen on the chain. The key follows from secret and quote; nothing
 * is stored.
 */
export function deriveDepositAddress(secret: Uint8Array, quoteId: string): string {
  return deriveAddress(deriveDepositKey(secret, quoteId))
}

/** A value to be swept from a deposit address: it came in for a quote, by the transfer that `id` names. */
export type Sweep = { readonly id: string; readonly quoteId: string; readonly value: bigint }

/** A sweep ends at the network's own address, whoever sends it and when, so it may be valid for ever. */
const sweepValidBefore = 2n ** 40n
const halfBytes = 16

/**
 * Signs the payment by which a deposit address gives its value to the network's payee. The same sweep gives the
 * same payment, and the token takes its nonce once: money cannot leave twice.
 */
export function signSweep(
  secret: Uint8Array,
  network: PaymentNetwork,
  { id, quoteId, value }: Sweep,
): SignedPayment {
  const key = deriveDepositKey(secret, quoteId)
  const from = deriveAddress(key)
  const name = deriveSweepName(quoteId, id)
  const order = {
    from,
    to: network.payTo,
    value,
    validAfter: 0n,
    validBefore: sweepValidBefore,
    nonce: encodeHex(Buffer.concat([name, sweepMark(secret, from, name)])),
  }
  const signature = signDigest(digestTransfer(network, order), key)
  return {
    version: 1,
    network: network.id,
    scheme: 'exact',
    payload: { ...order, signature },
    receiptForm: 'base64',
  }
}

/** Derives the half of a sweep's nonce that names its quote and its transfer. */
export function deriveSweepName(quoteId: string, id: string): Uint8Array {
  return hashKeccak(Buffer.from(`tollbase sweep 1\n${quoteId}\n${id}`)).subarray(0, halfBytes)
}

/**
 * Returns true if a payment is one of our own sweeps. Once a sweep is on the chain, anybody can copy it from there
 * with its signature; accepted as a payment, it would buy something with money that was booked before.
 */
export function isSweep(secret: Uint8Array, { from, nonce }: ExactPayment): boolean {
  const bytes = decodeHex(nonce)
  return timingSafeEqual(
    sweepMark(secret, from, bytes.subarray(0, halfBytes)),
    bytes.subarray(halfBytes),
  )
}

/** Computes half of a nonce, by which only we can recognize a nonce of ours. */
function sweepMark(secret: Uint8Array, from: string, name: Uint8Array): Buffer {
  const hmac = createHmac('sha256', secret).update(`tollbase sweep mark 1\n${from}\n`).update(name)
  return hmac.digest().subarray(0, halfBytes)
}

/** A digest is not a valid key with a chance of about 2^-128. */
const attemptsMax = 4

function deriveDepositKey(secret: Uint8Array, quoteId: string): Uint8Array {
  assert(secret.length >= 32, 'the secret of deposit addresses has 32 bytes')
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const text = `tollbase deposit 1\n${attempt}\n${quoteId}`
    const key = createHmac('sha256', secret).update(text).digest()
    if (curve.publicKey(key) !== undefined) return key
  }
  throw new Error('no private key follows from this secret')
}
