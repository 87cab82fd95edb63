import type { Static, TObject, TSchema } from 'typebox'
import type { ErrorCode } from './errors.ts'

/**
 * Who may call. `public`: anyone. A permission: a key of the addressed application that has it, or one of the two.
 * `operator`: the operator's key. `owner`: the operator, or a wallet's signature.
 * `by-policy`: decided by what the request addresses (a collection's access policy).
 */
export type Access = 'public' | Permitted | 'operator' | 'owner' | 'by-policy'
export type Permitted = 'Read' | 'Write' | 'Read or Write' | 'Admin'

/** Everything a caller may know about one endpoint; no server code. */
export type Route = {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Canonical path with `:name` parameters. */
  readonly path: `/${string}`
  /** Other paths that answer alike. Every `/api/apps/` path is served under `/apps/` too without being listed. */
  readonly aliases?: readonly `/${string}`[]
  readonly area: Area
  readonly summary: string
  readonly description?: string
  readonly access: Access
  /** Whether the call can have a price (402). */
  readonly paid?: boolean
  readonly params?: TObject
  readonly query?: TObject
  readonly body?: TSchema
  /** An absent or empty body counts as `{}`. */
  readonly bodyOptional?: boolean
  /** Success status; 200 when not given. */
  readonly status?: 200 | 201 | 202
  readonly reply: TSchema
  /** Content type when the reply is not JSON. */
  readonly replyType?: string
  /** Content types in which the reply comes instead where the client asks for them. */
  readonly otherReplyTypes?: readonly string[]
  /** Error codes beyond the common ones (VALIDATION_FAILED, UNAUTHORIZED, FORBIDDEN, INTERNAL). */
  readonly errors?: readonly ErrorCode[]
}

export const areas = [
  'Health',
  'Applications',
  'API Keys',
  'Collections',
  'Data Storage',
  'Batch',
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
  'Payout',
  'Predefined Queries',
  'Chain',
] as const

export type Area = (typeof areas)[number]

export type Contract = Readonly<Record<string, Route>>

/** Keeps the literal types of the routes, from which handlers' types are made. */
export function contract<const C extends Contract>(routes: C): C {
  return routes
}

type Part<R extends Route, K extends 'params' | 'query' | 'body'> = R[K] extends TSchema
  ? { readonly [k in K]: Static<R[K]> }
  : unknown

export type Input<R extends Route> = Part<R, 'params'> & Part<R, 'query'> & Part<R, 'body'>
export type Reply<R extends Route> = Static<R['reply']>
