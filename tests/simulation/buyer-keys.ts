import { createHash } from 'node:crypto'
import { keccak_256 } from '@noble/hashes/sha3.js'
import { tollbase } from '@tollbase/contract/contract'
import type { PaymentNetwork } from '../../packages/server/src/x402/networks.ts'
import {
  deriveAddress,
  digestTransfer,
  signDigest,
} from '../../packages/server/src/x402/signature.ts'
import type { Asked } from './send-request.ts'
import { publicUrl } from './shop.ts'

/** Derives the key of a buyer's wallet from his name. */
export function deriveBuyerKey(buyer: string): Buffer {
  return createHash('sha256').update(`key of ${buyer}`).digest()
}

/** Makes the headers by which a wallet signs a request at this time, in seconds since 1970. */
export function signRequest(
  { operationId, path, body }: Omit<Asked, 'run'>,
  key: Buffer,
  seconds: number,
): Record<string, string> {
  const hash = createHash('sha256').update(JSON.stringify(body)).digest('hex')
  const { method } = tollbase[operationId]
  const text = Buffer.from(`tollbase ${publicUrl()}\n${method}\n${path}\n${seconds}\n${hash}`)
  const prefix = Buffer.from(`\x19Ethereum Signed Message:\n${text.length}`)
  return {
    'x-wallet-address': deriveAddress(key),
    'x-timestamp': String(seconds),
    'x-signature': signDigest(keccak_256(Buffer.concat([prefix, text])), key),
  }
}

/** Signs the transfer of a payment as x402 carries it. */
export function signTransfer(
  network: PaymentNetwork,
  given: {
    readonly key: Buffer
    readonly value: bigint
    /** Seconds since 1970. */
    readonly validBefore: number
    readonly nonce: string
  },
) {
  const { key, value, validBefore, nonce } = given
  const from = deriveAddress(key)
  const shared = { from, to: network.payTo, nonce }
  const signed = { ...shared, value, validAfter: 0n, validBefore: BigInt(validBefore) }
  const signature = signDigest(digestTransfer(network, signed), key)
  const texts = { value: String(value), validAfter: '0', validBefore: String(validBefore) }
  return { signature, authorization: { ...shared, ...texts } }
}
