import { createHmac, timingSafeEqual } from 'node:crypto'
import { assert } from '../base/assert.ts'
import { curve } from './curve.ts'
import { bytesOf, hexFrom, keccak } from './hex.ts'
import type { PaymentNetwork } from './networks.ts'
import type { ExactPayment, SignedPayment } from './protocol.ts'
import { addressOfKey, signDigest, transferDigest } from './signature.ts'

/**
 * An address for each quote, and for no other: the transfer itself then names what it pays for, so nobody gains
 * anything by a transaction hash that he saw on the chain. The key follows from secret and quote; nothing is stored.
 */
export function depositAddress(secret: Uint8Array, quoteId: string): string {
  return addressOfKey(depositKey(secret, quoteId))
}

/** What is swept from a deposit address: a value that came in for a quote, by a transfer that `id` names. */
export type Sweep = { readonly id: string; readonly quoteId: string; readonly value: bigint }

/** The sweep ends on the network's own address, whoever sends it and when, so it may be valid for ever. */
const sweepValidBefore = 2n ** 40n
const halfBytes = 16

/**
 * The order by which a deposit address gives its value to the network's payee. The same sweep is the same order, and
 * the token takes its nonce once: money cannot leave twice.
 */
export function sweepPayment(
  secret: Uint8Array,
  network: PaymentNetwork,
  { id, quoteId, value }: Sweep,
): SignedPayment {
  const key = depositKey(secret, quoteId)
  const from = addressOfKey(key)
  const name = keccak(Buffer.from(`tollbase sweep 1\n${quoteId}\n${id}`)).subarray(0, halfBytes)
  const order = {
    from,
    to: network.payTo,
    value,
    validAfter: 0n,
    validBefore: sweepValidBefore,
    nonce: hexFrom(Buffer.concat([name, sweepMark(secret, from, name)])),
  }
  const signature = signDigest(transferDigest(network, order), key)
  return {
    version: 1,
    network: network.id,
    scheme: 'exact',
    payload: { ...order, signature },
    receiptForm: 'base64',
  }
}

/**
 * Whether a payment is one of our own sweeps. Once it is on the chain anybody can read it there, signature and all;
 * taken for a payment it would buy something with money that was booked before.
 */
export function isSweep(secret: Uint8Array, { from, nonce }: ExactPayment): boolean {
  const bytes = bytesOf(nonce)
  return timingSafeEqual(
    sweepMark(secret, from, bytes.subarray(0, halfBytes)),
    bytes.subarray(halfBytes),
  )
}

/** Half of a nonce, by which only we can know a nonce of ours. */
function sweepMark(secret: Uint8Array, from: string, name: Uint8Array): Buffer {
  const hmac = createHmac('sha256', secret).update(`tollbase sweep mark 1\n${from}\n`).update(name)
  return hmac.digest().subarray(0, halfBytes)
}

/** Of two digests in a row one is no key with a chance of 2^-128. */
const attemptsMax = 4

function depositKey(secret: Uint8Array, quoteId: string): Uint8Array {
  assert(secret.length >= 32, 'the secret of deposit addresses has 32 bytes')
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const text = `tollbase deposit 1\n${attempt}\n${quoteId}`
    const key = createHmac('sha256', secret).update(text).digest()
    if (curve.publicKey(key) !== undefined) return key
  }
  throw new Error('no private key follows from this secret')
}
