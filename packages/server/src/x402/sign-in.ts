import { Fault } from '../base/fault.ts'
import { hashKeccak } from './hex.ts'
import { parseHex, parseObject, parseText, refuseOtherKeys } from './payment-fields.ts'
import { parseHeader } from './payment-header.ts'
import { recoverSigner } from './signature.ts'

/** The extension of x402 version 2 by which a wallet signs in (CAIP-122), and the header that brings it. */
const extensionName = 'sign-in-with-x'
export const signInHeader = 'sign-in-with-x'

/** The text that a wallet is asked to sign; the times are ISO 8601. */
export type SignInChallenge = {
  readonly domain: string
  readonly uri: string
  readonly statement: string
  readonly nonce: string
  readonly issuedAt: string
  readonly expirationTime: string
  readonly requestId: string
}

/** A challenge as a wallet brings it signed; nothing in it has been checked against anything yet. */
export type SignIn = SignInChallenge & {
  /** As its wallet writes it, which is what is signed. */
  readonly address: string
  /** CAIP-2 id of an EVM chain. */
  readonly chainId: string
  readonly signature: string
}

const challengeNames = [
  'domain',
  'uri',
  'statement',
  'nonce',
  'issuedAt',
  'expirationTime',
  'requestId',
] as const
const names = [...challengeNames, 'version', 'address', 'chainId', 'signature'] as const
const text = { type: 'string' } as const

/** Builds the extension as a 402 offers it; stock clients sign it, and send it in the header. */
export function buildSignInOffer(
  challenge: SignInChallenge,
  chainIds: readonly string[],
): Readonly<Record<string, unknown>> {
  const times = { type: 'string', format: 'date-time' } as const
  return {
    [extensionName]: {
      info: { ...challenge, version: '1' },
      supportedChains: chainIds.map((chainId) => ({ chainId, type: 'eip191' })),
      schema: {
        $schema: 'https://json-schema.org/draft/2020-12/schema',
        type: 'object',
        properties: {
          ...Object.fromEntries([...names, 'type'].map((name) => [name, text])),
          issuedAt: times,
          expirationTime: times,
        },
        required: [...names, 'type'],
      },
    },
  }
}

/** Decodes the header strictly, or throws PAYMENT_MALFORMED. */
export function decodeSignIn(header: string): SignIn {
  const fields = parseObject(parseHeader('SIGN-IN-WITH-X', header), 'sign-in')
  refuseOtherKeys(fields, [...names, 'type', 'signatureScheme'], 'sign-in')
  const read = (name: (typeof names)[number]) => parseText(fields[name], name)
  parseHex(fields.address, 20, 'address')
  return {
    domain: read('domain'),
    uri: read('uri'),
    statement: read('statement'),
    nonce: read('nonce'),
    issuedAt: read('issuedAt'),
    expirationTime: read('expirationTime'),
    requestId: read('requestId'),
    address: read('address'),
    chainId: read('chainId'),
    signature: parseHex(fields.signature, 65, 'signature'),
  }
}

/** Returns true if a header brings a sign-in, good or not. */
export function hasSignIn(header: unknown): boolean {
  if (typeof header !== 'string') return false
  try {
    decodeSignIn(header)
    return true
  } catch (error) {
    if (error instanceof Fault) return false
    throw error
  }
}

/** Recovers the lower-case address of the wallet that signed; undefined where it is not the one that is named. */
export function recoverSignIn(signed: SignIn): string | undefined {
  const message = Buffer.from(formatSignIn(signed))
  const prefix = Buffer.from(`\x19Ethereum Signed Message:\n${message.length}`)
  const signature = Buffer.from(signed.signature.slice(2), 'hex')
  const signer = recoverSigner(hashKeccak(Buffer.concat([prefix, message])), signature)
  return signer === signed.address.toLowerCase() ? signer : undefined
}

/** Formats the message as ERC-4361 writes it. */
function formatSignIn(signed: SignIn): string {
  return [
    `${signed.domain} wants you to sign in with your Ethereum account:`,
    signed.address,
    '',
    signed.statement,
    '',
    `URI: ${signed.uri}`,
    'Version: 1',
    `Chain ID: ${signed.chainId.replace(/^eip155:/, '')}`,
    `Nonce: ${signed.nonce}`,
    `Issued At: ${signed.issuedAt}`,
    `Expiration Time: ${signed.expirationTime}`,
    `Request ID: ${signed.requestId}`,
  ].join('\n')
}

/** Lists what a challenge says, in one order, so that it can be authenticated. */
export function listChallengeTexts(challenge: SignInChallenge): readonly string[] {
  return challengeNames.flatMap((name) => (name === 'nonce' ? [] : challenge[name]))
}

/** Hashes a nonce, so that its use can be noted. */
export function hashNonce(nonce: string): Uint8Array {
  return hashKeccak(Buffer.from(nonce))
}
