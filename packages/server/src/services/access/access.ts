import { timingSafeEqual } from 'node:crypto'
import { hasRight, type Permitted } from '@tollbase/contract/permissions'
import type { Route } from '@tollbase/contract/route'
import { Fault } from '../../base/fault.ts'
import type { World } from '../../base/world.ts'
import type { Database } from '../../database/database.ts'
import type { RequestContext } from '../../http/request-context.ts'
import type { RequestInfo } from '../../http/request-info.ts'
import type { ApplicationRecord } from '../../model/application.ts'
import { findSettledOwner } from '../../model/payout-settings.ts'
import { hashKey, type KeyRecord } from '../../projections/keys.ts'
import { toApplicationAccount } from '../../projections/ledger-entry.ts'
import type { Tenants } from '../applications/tenants.ts'
import { findWalletSignature, readKeyTexts } from './credentials.ts'
import { verifyWallet } from './wallet-signature.ts'

/** A request, and its caller. */
export type Asking = { readonly requestInfo: RequestInfo; readonly caller: Caller }

/**
 * The caller of a request. An anonymous caller may buy like any other. `payer` is a key that may pay for it; the key of a
 * wallet's authorization is nothing else, since a wallet asks nobody before it grants through an application.
 */
export type Caller = Standing & { readonly payer?: KeyRecord }

type Standing =
  | { readonly kind: 'anonymous' }
  | { readonly kind: 'key'; readonly key: KeyRecord }
  | { readonly kind: 'operator' }
  | { readonly kind: 'wallet'; readonly address: string }

/** The callers that may register applications: the operator and wallets ('open'), or the operator alone. */
export type Registration = 'open' | 'operator'

export type AccessPorts = {
  readonly tenants: Tenants
  readonly database: Database
  readonly world: World
  /** See ProgramInfo. */
  readonly origin: () => string
  /** SHA-256 of the operator's key, in hex as `hashKey` gives it. */
  readonly operatorKeyHash: string
}

/**
 * Finds out who calls. A key that is unknown, expired or revoked is 401 everywhere, public paths included.
 * A paying key (X-Agent-Key, X-User-Key) beside the application's must be good, and gives no rights. Alone it is the
 * caller's, if it is a key of an application.
 */
export async function identify(requestInfo: RequestInfo, ports: AccessPorts): Promise<Caller> {
  const { key, payer } = readKeyTexts(requestInfo)
  // A key may have been revoked while this process stood still.
  if (key !== undefined || payer !== undefined) await ports.tenants.system.chain.ensureHeld()
  const paying =
    payer === undefined ? undefined : requireKeyHolder(payer, requestInfo.context, ports)
  const payingKey = paying?.kind === 'key' ? paying.key : paying?.payer
  if (payingKey !== undefined) refuseArchivedPayer(payingKey, ports.tenants)
  const standing = key === undefined ? paying : requireKeyHolder(key, requestInfo.context, ports)
  if (key !== undefined) refuseAsStanding(standing)
  const hasStanding = standing !== undefined && standing.kind !== 'anonymous'
  const caller = hasStanding ? standing : await identifySigner(requestInfo, ports)
  return payingKey === undefined ? caller : { ...caller, payer: payingKey }
}

async function identifySigner(requestInfo: RequestInfo, ports: AccessPorts): Promise<Caller> {
  const signed = findWalletSignature(requestInfo)
  if (signed === undefined) return { kind: 'anonymous' }
  return {
    kind: 'wallet',
    address: await verifyWallet(requestInfo, signed, {
      database: ports.database,
      nowMs: ports.world.now(),
      origin: ports.origin(),
    }),
  }
}

/**
 * The balance of an archived application is its owner's to take out, so its keys spend nothing of it; an authorization
 * of a wallet spends that wallet's money, and goes on.
 */
function refuseArchivedPayer(key: KeyRecord, tenants: Tenants): void {
  const { applications } = tenants.system
  if (!isOfApplication(key) || applications.get(key.app_id)?.status !== 'archived') return
  throw new Fault('UNAUTHORIZED', {
    message: 'The application that this key pays for is archived: it pays for nothing',
  })
}

/** Returns false for the key of a wallet's authorization, which only names the application that it was granted through. */
function isOfApplication({ app_id: appId, authorization }: KeyRecord): boolean {
  return authorization === undefined || authorization.account === toApplicationAccount(appId)
}

function refuseAsStanding(caller: Caller | undefined): void {
  if (caller?.kind !== 'anonymous') return
  throw new Fault('UNAUTHORIZED', {
    message: `This key is of a wallet's authorization: it pays, in X-User-Key, and gives no rights`,
  })
}

/** Returns the caller that holds the key of this text, if the key is alive. */
export function findKeyHolder(
  keyText: string,
  context: RequestContext,
  ports: AccessPorts,
): Caller | undefined {
  if (context.hashedKey?.text !== keyText) {
    const hash = hashKey(keyText)
    const isOperator = areEqualInConstantTime(hash, ports.operatorKeyHash)
    context.hashedKey = { text: keyText, hash, isOperator }
  }
  const { hash, isOperator } = context.hashedKey
  if (isOperator) return { kind: 'operator' }
  const { keys, authorizations } = ports.tenants.system
  const now = ports.world.now()
  const key = keys.find(hash, now) ?? authorizations.findKey(hash, now)
  if (key === undefined) return undefined
  return isOfApplication(key) ? { kind: 'key', key } : { kind: 'anonymous', payer: key }
}

/** 401, 403 or 404 unless the caller may use this route on what it addresses. */
export function authorize(
  route: Pick<Route, 'access' | 'evenArchived'>,
  caller: Caller,
  target: { appId: string | undefined; tenants: Tenants; registration: Registration },
): void {
  if (route.access === 'public' || route.access === 'by-policy') return
  if (route.access === 'operator') {
    if (caller.kind !== 'operator') throw makeRefusedFault(caller, 'Only the operator may do this')
    return
  }
  if (route.access === 'registrar' && target.registration === 'operator') {
    if (caller.kind === 'operator') return
    throw makeRefusedFault(
      caller,
      'Only the operator of this service registers applications; ask for one (its setting `registration` can let wallets do so)',
    )
  }
  if (route.access === 'owner' || route.access === 'registrar') {
    if (caller.kind !== 'operator' && caller.kind !== 'wallet')
      throw makeRefusedFault(caller, 'Only the operator, or a wallet signature, may do this')
    return
  }
  const { appId, tenants } = target
  const { evenArchived = false } = route
  if (appId !== undefined) requirePermission(caller, route.access, { appId, tenants, evenArchived })
  // The body names the application; without a credential nobody may do this on any.
  else if (caller.kind === 'anonymous')
    throw new Fault('UNAUTHORIZED', { message: 'A key of the application is needed (X-App-Key)' })
}

/** The caller must hold a permission on the application. */
export function requirePermission(
  caller: Caller,
  permission: Permitted,
  target: { appId: string; tenants: Tenants; evenArchived?: boolean },
): void {
  const { appId, tenants, evenArchived } = target
  const application =
    evenArchived === true ? tenants.requireRecord(appId) : tenants.requireApplication(appId)
  const refusal = findRefusal(caller, permission, { application, nowMs: tenants.now() })
  if (refusal === undefined) return
  // A caller without a part in an archived application gets the same 404 as everybody.
  tenants.requireApplication(appId)
  throw refusal
}

function findRefusal(
  caller: Caller,
  permission: Permitted,
  { application, nowMs }: { readonly application: ApplicationRecord; readonly nowMs: number },
): Fault | undefined {
  const { app_id: appId, owner_address: owner } = application
  if (caller.kind === 'operator') return undefined
  if (caller.kind === 'wallet') {
    // Whoever was replaced by a stolen key must be able to see it, and to take it back.
    if ([owner, findSettledOwner(application, nowMs)].includes(caller.address)) return undefined
    return new Fault('UNAUTHORIZED', { message: `${caller.address} does not own ${appId}` })
  }
  if (caller.kind !== 'key' || caller.key.app_id !== appId)
    return new Fault('UNAUTHORIZED', { message: `A key of ${appId} is needed (X-App-Key)` })
  if (hasRight(caller.key.permissions, permission)) return undefined
  return makeLackingFault(caller.key, permission)
}

type OwnedApplication = { readonly app_id: string; readonly owner_address: string | null }

/** Returns true if the caller holds Read on the application; throws nothing. The operator reads no private data. */
export function canRead(caller: Caller, application: OwnedApplication): boolean {
  if (caller.kind === 'key')
    return caller.key.app_id === application.app_id && hasRight(caller.key.permissions, 'Read')
  return caller.kind === 'wallet' && application.owner_address === caller.address
}

/**
 * Returns true if the caller may know what an application has defined and how much it holds: callers with Read, and
 * the operator.
 */
export function canDescribe(caller: Caller, application: OwnedApplication): boolean {
  return caller.kind === 'operator' || canRead(caller, application)
}

/** Returns true if the caller may write to the application. */
export function canWrite(caller: Caller, application: OwnedApplication): boolean {
  if (caller.kind === 'key')
    return caller.key.app_id === application.app_id && hasRight(caller.key.permissions, 'Write')
  return canDescribe(caller, application)
}

/**
 * 403 for a key of the application that lacks Read. It comes before any lookup: data that is not open to strangers
 * is not open to such a key, and neither is its existence.
 */
export function refuseWithoutRead(caller: Caller, { app_id }: OwnedApplication): void {
  if (
    caller.kind !== 'key' ||
    caller.key.app_id !== app_id ||
    hasRight(caller.key.permissions, 'Read')
  )
    return
  throw makeLackingFault(caller.key, 'Read')
}

function requireKeyHolder(keyText: string, context: RequestContext, ports: AccessPorts): Caller {
  const caller = findKeyHolder(keyText, context, ports)
  if (caller === undefined)
    throw new Fault('UNAUTHORIZED', { message: 'The key is not known, expired or revoked' })
  return caller
}

function makeLackingFault(key: KeyRecord, permission: Permitted): Fault {
  return new Fault('FORBIDDEN', {
    message: `The key lacks the permission ${permission}; it has ${key.permissions.join(', ')}`,
  })
}

function makeRefusedFault(caller: Caller, message: string): Fault {
  return new Fault(caller.kind === 'anonymous' ? 'UNAUTHORIZED' : 'FORBIDDEN', { message })
}

function areEqualInConstantTime(a: string, b: string): boolean {
  return timingSafeEqual(Buffer.from(a), Buffer.from(b))
}
