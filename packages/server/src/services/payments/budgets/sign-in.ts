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
import { type KeyPayment, makeSignInPayment } from './paying-key.ts'

type Ports = Pick<PaymentPorts, 'database' | 'methods' | 'publicUrl' | 'quoteSecret' | 'world'>

/** A wallet that signed in for one request, the payment that stands for that, and the most it may be, in atomic units. */
export type SignedIn = KeyPayment & {
  readonly payer: string
  readonly most: bigint
  /** It was brought before for another payment: it gets what that bought, and buys nothing more. */
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
  by: { readonly hash: string; readonly name: string | undefined },
): Promise<SignedIn | { readonly refusal: string }> | undefined {
  const known = signIns.get(requestInfo)
  if (known !== undefined) return known
  const header = findSingleHeader(requestInfo, signInHeader)
  if (header === undefined) return undefined
  const read = useSignIn(ports, decodeSignIn(header), by)
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
  { hash, name }: { readonly hash: string; readonly name: string | undefined },
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
  // Brought again, it goes on with its own payment, whoever was at that before: nobody is asked to sign for it anew.
  const made = makeSignInPayment(ports, { payer, name, nonce })
  const isFree = await useSignature(ports.database, {
    ...{ signer: payer, nowMs, payment: made.identity },
    digest: hashNonce(nonce),
  })
  return { ...made, payer, most: BigInt(most), isUsed: !isFree }
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
