import { createHmac, timingSafeEqual } from 'node:crypto'
import { limits } from '@tollbase/contract/limits'
import { formatUnits } from '../../../base/format-usd.ts'
import { findSingleHeader, type RequestInfo } from '../../../http/request-info.ts'
import {
  buildSignInOffer,
  decodeSignIn,
  hashNonce,
  hasSignIn,
  listChallengeTexts,
  recoverSignIn,
  type SignIn,
  type SignInChallenge,
  signInHeader,
} from '../../../x402/sign-in.ts'
import { useSignature } from '../../access/wallet-signature.ts'
import type { PaymentPorts } from '../payment-ports.ts'

type Ports = Pick<PaymentPorts, 'database' | 'methods' | 'publicUrl' | 'quoteSecret' | 'world'>

/** A wallet that signed in for one request, and the most that it is ready to pay for it, in atomic units. */
export type SignedIn = {
  readonly payer: string
  readonly most: bigint
  readonly nonce: string
  /** It was brought before: it gets what it bought then, and buys nothing more. */
  readonly isUsed: boolean
}

/**
 * Offers a sign-in for one request: the wallet that signs it pays from its balance, at most this much. No row is stored:
 * the nonce is a MAC over all that the challenge says.
 */
export function makeSignInOffer(
  ports: Ports,
  { hash, path, most }: { readonly hash: string; readonly path: string; readonly most: bigint },
): Readonly<Record<string, unknown>> {
  const { world, methods } = ports
  const url = new URL(ports.publicUrl())
  const nowMs = world.now()
  const said = {
    domain: url.host,
    uri: `${url.origin}${path}`,
    statement: `Pay at most ${formatUnits(most)} from your balance for this request.`,
    issuedAt: new Date(nowMs).toISOString(),
    expirationTime: new Date(nowMs + limits.signInSeconds * 1000).toISOString(),
    requestId: `${hash}:${most}`,
  }
  const salt = world.randomBytes(16).toString('hex')
  const chainIds = methods.map(({ network }) => network.id)
  const nonce = `${salt}${computeMac(ports, salt, said)}`
  return buildSignInOffer({ ...said, nonce }, chainIds)
}

/** Several parts of a sale ask for the sign-in of the same request, and it counts once. */
const signIns = new WeakMap<RequestInfo, Promise<SignedIn | { readonly refusal: string }>>()

/**
 * Reads the sign-in that a request carries, and uses it up; says why it is not taken. Undefined where there is none.
 * PAYMENT_MALFORMED where it cannot be read.
 */
export function readSignIn(
  ports: Ports,
  requestInfo: RequestInfo,
  hash: string,
): Promise<SignedIn | { readonly refusal: string }> | undefined {
  const known = signIns.get(requestInfo)
  if (known !== undefined) return known
  const header = findSingleHeader(requestInfo, signInHeader)
  if (header === undefined) return undefined
  const read = useSignIn(ports, decodeSignIn(header), hash)
  signIns.set(requestInfo, read)
  return read
}

/** Returns true if the request carries a sign-in, good or not. */
export function hasSignInHeader({ headers }: Pick<RequestInfo, 'headers'>): boolean {
  return hasSignIn(headers[signInHeader])
}

async function useSignIn(
  ports: Ports,
  signed: SignIn,
  hash: string,
): Promise<SignedIn | { readonly refusal: string }> {
  const refuse = (why: string) => ({ refusal: `The sign-in was refused: ${why}` })
  const { nonce, requestId, chainId } = signed
  // A challenge that another service made, or that somebody changed, has no nonce of ours.
  if (!isAskedByUs(ports, signed)) return refuse('this service has not asked for it')
  const [asked, most = ''] = requestId.split(':')
  if (asked !== hash) return refuse('it is for another request')
  const nowMs = ports.world.now()
  if (nowMs > Date.parse(signed.expirationTime)) return refuse('it is over; sign the new one')
  if (!ports.methods.some(({ network }) => network.id === chainId))
    return refuse(`its chain, ${chainId}, is not accepted`)
  const payer = recoverSignIn(signed)
  if (payer === undefined) return refuse('its signature is not of its address')
  const isFirst = await useSignature(ports.database, {
    ...{ signer: payer, nowMs },
    digest: hashNonce(nonce),
  })
  return { payer, most: BigInt(most), nonce, isUsed: !isFirst }
}

function isAskedByUs(ports: Ports, signed: SignIn): boolean {
  const [, salt, mac] = /^([0-9a-f]{32})([0-9a-f]{64})$/.exec(signed.nonce) ?? []
  if (salt === undefined || mac === undefined) return false
  const expected = Buffer.from(computeMac(ports, salt, signed), 'hex')
  return (
    timingSafeEqual(expected, Buffer.from(mac, 'hex')) &&
    signed.domain === new URL(ports.publicUrl()).host
  )
}

function computeMac(
  { quoteSecret }: Ports,
  salt: string,
  said: Omit<SignInChallenge, 'nonce'>,
): string {
  const texts = listChallengeTexts({ ...said, nonce: '' })
  const text = JSON.stringify(['sign-in', salt, ...texts])
  return createHmac('sha256', quoteSecret).update(text).digest('hex')
}
