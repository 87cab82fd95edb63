import { keccak_256 } from '@noble/hashes/sha3.js'
import { deriveAddress, signDigest } from '../../packages/server/src/x402/signature.ts'
import { base64 } from './order.ts'
import type { Answer } from './send-request.ts'

/** The text of a 402 that a wallet can sign in place of a transfer; the times are ISO 8601. */
export type Challenge = {
  readonly domain: string
  readonly uri: string
  readonly statement: string
  readonly version: string
  readonly nonce: string
  readonly issuedAt: string
  readonly expirationTime: string
  readonly requestId: string
}

/** A challenge, and the chains whose wallets may sign it, as CAIP-2 ids. */
export type Offered = { readonly challenge: Challenge; readonly chainIds: readonly string[] }

/** Reads the challenge of a 402; undefined where it offers none. */
export function readChallenge({ headers }: Answer): Offered | undefined {
  const { extensions } = JSON.parse(
    Buffer.from(headers['payment-required'] ?? '', 'base64').toString(),
  )
  const offer = extensions['sign-in-with-x']
  if (offer === undefined) return undefined
  const chains: readonly { chainId: string }[] = offer.supportedChains
  return { challenge: offer.info, chainIds: chains.map(({ chainId }) => chainId) }
}

/** Signs a challenge as a stock client does (ERC-4361, EIP-191), perhaps under another wallet's address. */
export function signChallenge(
  challenge: Challenge,
  by: { readonly key: Buffer; readonly chainId: string; readonly address?: string },
): { readonly 'sign-in-with-x': string } {
  const { key, chainId, address = deriveAddress(key) } = by
  const message = Buffer.from(
    [
      `${challenge.domain} wants you to sign in with your Ethereum account:`,
      ...[address, '', challenge.statement, ''],
      `URI: ${challenge.uri}`,
      `Version: ${challenge.version}`,
      `Chain ID: ${chainId.split(':')[1]}`,
      `Nonce: ${challenge.nonce}`,
      `Issued At: ${challenge.issuedAt}`,
      `Expiration Time: ${challenge.expirationTime}`,
      `Request ID: ${challenge.requestId}`,
    ].join('\n'),
  )
  const prefix = Buffer.from(`\x19Ethereum Signed Message:\n${message.length}`)
  const signature = signDigest(keccak_256(Buffer.concat([prefix, message])), key)
  return { 'sign-in-with-x': base64({ ...challenge, address, chainId, type: 'eip191', signature }) }
}
