import type { Static, TObject, TSchema } from 'typebox'
import type { ErrorCode } from './errors.ts'
import type { Permitted } from './permissions.ts'
import type { ReplyHeader } from './reply-headers.ts'
import type { RequestHeader } from './request-headers.ts'

/**
 * The callers that an endpoint admits. `public`: anyone. A right: a key of the addressed application that has
 * it. `operator`: the operator's key. `owner`: the operator, or a wallet's signature.
 * `registrar`: the same where the service lets wallets register, else the operator alone. `by-policy`: the
 * addressed collection's access policy decides.
 */
export type Access = 'public' | Permitted | 'operator' | 'owner' | 'registrar' | 'by-policy'

/**
 * The kinds of information that an answer can reveal about an application, and who may have them. Together with
 * `access` this decides who gets what. Each endpoint states one, and a test calls each endpoint in every role
 * (tests/access).
 */
export const shown = {
  service: 'It tells nothing of an application.',
  outcome: 'It tells what became of what was sent, and nothing else of the application.',
  definitions:
    'Of what is open to strangers it tells anyone, without exact counts; all else is for keys with Read, for the owner and for the operator.',
  records:
    'Records that are open to strangers are for anyone, for their price; others for keys with Read and for the owner, and never for the operator.',
  hashes: 'It tells hashes, and no content to who may not read it.',
  named: 'Whoever has the id, which is random and long, may know what it names.',
  accounts: 'Keys and money are for Admin, or for the wallet that they belong to.',
} as const

export type Shows = keyof typeof shown

/** The public description of one endpoint; no server code. */
export type Route = {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Canonical path with `:name` parameters. */
  readonly path: `/${string}`
  /** Aliases of the path. Every `/api/apps/` path is served under `/apps/` too without being listed. */
  readonly aliases?: readonly `/${string}`[]
  readonly area: Area
  readonly summary: string
  readonly description?: string
  readonly access: Access
  readonly shows: Shows
  /** True where an archived application answers too, to those who may call: its money and its keys stay theirs. */
  readonly evenArchived?: boolean
  /** True where the call changes nothing though its method is no GET. */
  readonly isRead?: boolean
  /** True where the call can have a price (402). */
  readonly paid?: boolean
  /** True where a key or a sign-in cannot pay the price out of a balance. */
  readonly onlyByPayment?: true
  readonly params?: TObject
  readonly query?: TObject
  readonly body?: TSchema
  /** The parts of a multipart body, which the operation itself reads, as a stream; such a route has no `body`. */
  readonly form?: TObject
  /** The type of a body that the operation itself reads, as a stream of bytes; such a route has no `body`. */
  readonly stream?: string
  /** True where HEAD is answered though the call can have a price: its payment buys the answer to the same GET. */
  readonly hasHead?: boolean
  /** True where the body may be as long as records are (`bodyBytesMax`). */
  readonly takesRecords?: boolean
  /** An absent or empty body counts as `{}`. */
  readonly bodyOptional?: boolean
  /** Success status; 200 when not given. */
  readonly status?: 200 | 201 | 202 | 204
  readonly reply: TSchema
  /** Content type when the reply is not JSON. */
  readonly replyType?: string
  /** Other content types of the reply, for clients that ask for them. */
  readonly otherReplyTypes?: readonly string[]
  /** Headers that change the answer, beside those that its form implies and those that carry a key. */
  readonly requestHeaders?: readonly RequestHeader[]
  /** Headers of a success, beside those that every reply has and those that its form implies. */
  readonly replyHeaders?: readonly ReplyHeader[]
  /** Other statuses of success than the usual one. */
  readonly otherStatuses?: readonly (200 | 201 | 202 | 206 | 304)[]
  /** Bodies of refusals that are other than the common one, by their status. */
  readonly refusalReplies?: { readonly [status: number]: TSchema }
  /** Advice in the answer to another method, beside the list of methods that exist. */
  readonly otherwise?: string
  /** True where the answer is what others made, so that browsers must run nothing of it. */
  readonly isForeign?: true
  /** True where pages of other origins may not read the answer: it has no CORS headers. */
  readonly sameOriginOnly?: true
  /** Error codes beyond the common ones (VALIDATION_FAILED, UNAUTHORIZED, FORBIDDEN, INTERNAL). */
  readonly errors?: readonly ErrorCode[]
}

/** Returns whether a call can change something; it then takes an Idempotency-Key. */
export function canChange({ method, isRead = false }: Pick<Route, 'method' | 'isRead'>): boolean {
  return method !== 'GET' && !isRead
}

export const areas = [
  'Health',
  'Applications',
  'API Keys',
  'Collections',
  'Data Storage',
  'Batch',
  'Blobs',
  'Data Query',
  'Tasks',
  'Indexes',
  'Relations',
  'Data Sets',
  'Materialized Views',
  'View Query',
  'Pricing',
  'Payment verification and settlement',
  'Wallet',
  'Authorization',
  'Payout',
  'Billing',
  'Transactions',
  'Predefined Queries',
  'Encryption',
  'Retention',
  'API Collections',
  'Chain',
] as const

export type Area = (typeof areas)[number]

export type Contract = Readonly<Record<string, Route>>

/** Keeps the literal types of the routes, from which the handlers' types derive. */
export function defineContract<const C extends Contract>(routes: C): C {
  return routes
}

type Part<R extends Route, K extends 'params' | 'query' | 'body'> = R[K] extends TSchema
  ? { readonly [k in K]: Static<R[K]> }
  : unknown

export type Input<R extends Route> = Part<R, 'params'> & Part<R, 'query'> & Part<R, 'body'>
export type Reply<R extends Route> = Static<R['reply']>
