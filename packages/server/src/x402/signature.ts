import { assert } from '../base/assert.ts'
import { type Curve, curve } from './curve.ts'
import { decodeHex, encodeHex, encodeHexWord, encodeNumberWord, hashKeccak } from './hex.ts'
import type { PaymentNetwork } from './networks.ts'
import type { ExactPayment } from './protocol.ts'

/** Half of the group's order: of the two signatures s and n - s only the lower one counts (EIP-2). */
const sMax = decodeHex('0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0')

const domainType = hashTypeName(
  'EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)',
)
const transferType = hashTypeName(
  'TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)',
)

type Authorization = Omit<ExactPayment, 'signature'>

const separators = new WeakMap<PaymentNetwork, string>()

/**
 * Computes the digest that the payer signs: EIP-712, of an EIP-3009 TransferWithAuthorization of the network's
 * asset.
 */
export function digestTransfer(network: PaymentNetwork, payment: Authorization): Uint8Array {
  return digestTyped(getDomainSeparator(network), transferType, listAuthorizationWords(payment))
}

/** Lists the words of an EIP-3009 authorization, whichever of its types is signed. */
export function listAuthorizationWords(payment: Authorization): readonly string[] {
  return [
    encodeHexWord(payment.from),
    encodeHexWord(payment.to),
    encodeNumberWord(payment.value),
    encodeNumberWord(payment.validAfter),
    encodeNumberWord(payment.validBefore),
    encodeHexWord(payment.nonce),
  ]
}

/** Computes an EIP-712 digest of a struct whose members are words. */
export function digestTyped(separator: string, type: string, words: readonly string[]): Uint8Array {
  return hashKeccak(Buffer.from(`1901${separator}${hashWords(type, words)}`, 'hex'))
}

/**
 * Recovers the lower-case address that signed the digest; undefined if the signature is none that the token
 * accepts: 65 bytes, v 27 or 28, r and s in range, s low.
 */
export function recoverSigner(
  digest: Uint8Array,
  signature: Uint8Array,
  by: Curve = curve,
): string | undefined {
  const v = signature[64]
  if (signature.length !== 65 || (v !== 27 && v !== 28)) return undefined
  // For equal lengths, byte order is the order of the numbers; r and s of zero or past n do not recover.
  if (Buffer.compare(signature.subarray(32, 64), sMax) > 0) return undefined
  const key = by.recover(digest, signature.subarray(0, 64), v === 27 ? 0 : 1)
  return key === undefined ? undefined : toAddress(key)
}

/** Signs a digest: r, s, v as 65 bytes of hexadecimal text, as recoverSigner reads them. */
export function signDigest(digest: Uint8Array, key: Uint8Array): string {
  const { compact, recovery } = curve.sign(digest, key)
  return `${encodeHex(compact)}${recovery === 0 ? '1b' : '1c'}`
}

/** Derives the address of a private key. */
export function deriveAddress(key: Uint8Array): string {
  const publicKey = curve.publicKey(key)
  assert(publicKey !== undefined, 'a private key is a number from 1 to the order of the curve')
  return toAddress(publicKey)
}

function toAddress(publicKey: Uint8Array): string {
  return encodeHex(hashKeccak(publicKey).subarray(12))
}

/** Computes the separator of the domain of the network's asset. */
export function getDomainSeparator(network: PaymentNetwork): string {
  const known = separators.get(network)
  if (known !== undefined) return known
  const { asset, chainId } = network
  const separator = hashDomain({ ...asset, chainId })
  separators.set(network, separator)
  return separator
}

/** Computes the separator of an EIP-712 domain. */
export function hashDomain(domain: {
  readonly name: string
  readonly version: string
  readonly chainId: number
  /** The contract's; lower case. */
  readonly address: string
}): string {
  return hashWords(domainType, [
    hashTypeName(domain.name),
    hashTypeName(domain.version),
    encodeNumberWord(domain.chainId),
    encodeHexWord(domain.address),
  ])
}

/** Hashes the text of a type, or any other text, without 0x. */
export function hashTypeName(text: string): string {
  return Buffer.from(hashKeccak(Buffer.from(text))).toString('hex')
}

function hashWords(type: string, words: readonly string[]): string {
  return Buffer.from(hashKeccak(Buffer.from(type + words.join(''), 'hex'))).toString('hex')
}
