import { createHmac, hash } from 'node:crypto'
import type { Route } from '@tollbase/contract/route'
import { makeInvalidFault } from '../../base/fault.ts'
import { toAddressKey } from '../../http/rate-limits.ts'
import type { RequestInfo } from '../../http/request-info.ts'
import { getBudget } from '../../projections/keys.ts'
import type { Caller } from '../access/access.ts'
import { getPayingAccount } from '../payments/budgets/paying-key.ts'
import { hasSignInHeader } from '../payments/budgets/sign-in.ts'
import { readIdempotencyKey } from '../payments/idempotency-key.ts'
import { hasPayment } from '../payments/presented/presented-payment.ts'
import { formatOwner } from './named-request-store.ts'

/** A request that its caller has named. */
export type RequestName = {
  /** One for each caller and key; it tells neither. */
  readonly id: string
  /** Whose requests it is counted with. */
  readonly owner: string
  /** The application that it is about, where it is about one. */
  readonly app: string | null
  /** The operation with all that is asked of it. */
  readonly hash: string
}

type Asked = { readonly caller: Caller; readonly requestInfo: RequestInfo }

/**
 * Finds the name that the caller has given to a request: its Idempotency-Key. Undefined if it has none, or if the
 * caller has no key or wallet, because then the payment itself is the name. 400 if the name is not valid.
 */
export function findRequestName(
  asked: Asked,
  { operationId, route }: { readonly operationId: string; readonly route: Pick<Route, 'paid'> },
  secret: Buffer,
): RequestName | undefined {
  const { caller, requestInfo } = asked
  const key = readIdempotencyKey(requestInfo, undefined)
  if (key === undefined) return undefined
  const isUnknown = caller.kind === 'anonymous' && caller.payer === undefined
  const mayBeBought = isUnknown && route.paid === true
  if (mayBeBought && (hasPayment(asked) || hasSignInHeader(requestInfo))) return undefined
  const { owner, names } = nameCaller(asked)
  const text = JSON.stringify(['request', ...names, key])
  const id = createHmac('sha256', secret).update(text).digest('hex').slice(0, 32)
  const app = requestInfo.context.app ?? null
  return { id, owner, app, hash: hashRequest(operationId, requestInfo) }
}

/** Names the caller, beyond the life of one key: its successor is the same caller. */
function nameCaller({ caller, requestInfo }: Asked): {
  readonly owner: string
  readonly names: readonly string[]
} {
  const { payer } = caller
  const more = payer === undefined ? [] : [nameKey(payer)]
  switch (caller.kind) {
    case 'key':
      return { owner: formatOwner(caller.key.app_id), names: [nameKey(caller.key), ...more] }
    case 'operator':
      return { owner: 'operator', names: ['operator', ...more] }
    case 'wallet':
      return { owner: `wallet:${caller.address}`, names: [`wallet:${caller.address}`, ...more] }
    case 'anonymous': {
      // Counted apart: it drives out no request that its wallet signs. Named twice, as is every key that calls and pays.
      if (payer !== undefined)
        return { owner: `payer:${getPayingAccount(payer)}`, names: [...more, ...more] }
      const address = `address:${toAddressKey(requestInfo.remoteAddress)}`
      return { owner: address, names: [address, ...more] }
    }
  }
}

function nameKey(key: NonNullable<Caller['payer']>): string {
  return key.authorization?.id ?? getBudget(key)
}

/** Headers that say what an upload in pieces is, or where its bytes begin. */
const asking = ['upload-length', 'upload-metadata', 'upload-offset']

/** Hashes what is asked. The body of an upload is still to come, so that its stated hash stands for it. */
function hashRequest(
  operationId: string,
  { path, queryText, bodyBytes, upload, headers }: RequestInfo,
) {
  if (upload !== undefined && upload.sha256 === undefined)
    throw makeInvalidFault(
      '/headers/content-digest',
      'must state the hash of the body (sha-256) where an upload has an Idempotency-Key',
    )
  const body = upload?.sha256 ?? hash('sha256', bodyBytes)
  const said = asking.flatMap((name) => (headers[name] === undefined ? [] : [name, headers[name]]))
  const text = JSON.stringify([operationId, path, queryText, body, ...said])
  return hash('sha256', text)
}
