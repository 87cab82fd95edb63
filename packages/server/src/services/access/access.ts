import { timingSafeEqual } from 'node:crypto'
import type { Permitted, Route } from '@tollbase/contract/route'
import { Fault } from '../../base/fault.ts'
import type { World } from '../../base/world.ts'
import type { Database } from '../../database/database.ts'
import type { Pass } from '../../http/request-context.ts'
import type { RequestFacts } from '../../http/request-info.ts'
import { hashOfKey, type KeyRecord } from '../../projections/keys.ts'
import type { Tenancy } from '../applications/tenancy.ts'
import { keysOf, signedBy } from './credentials.ts'
import { verifyWallet } from './wallet-signature.ts'

/** Who calls. An anonymous caller is as good a buyer as any. */
export type Caller =
  | { readonly kind: 'anonymous' }
  | { readonly kind: 'key'; readonly key: KeyRecord }
  | { readonly kind: 'operator' }
  | { readonly kind: 'wallet'; readonly address: string }

/** Who may register applications: wallets too, or the operator alone. */
export type Registration = 'open' | 'operator'

export type AccessPorts = {
  readonly tenancy: Tenancy
  readonly database: Database
  readonly world: World
  /** See ServiceInfo. */
  readonly origin: () => string
  /** SHA-256 of the operator's key, in hex as `hashOfKey` gives it. */
  readonly operatorKeyHash: string
}

/**
 * Finds out who calls. A key that is unknown, expired or revoked is 401 everywhere, public paths included.
 * A paying key (X-Agent-Key, X-User-Key) beside the application's must be good, and gives no rights.
 */
export async function identify(facts: RequestFacts, ports: AccessPorts): Promise<Caller> {
  const { key, payer } = keysOf(facts)
  const paying = payer === undefined ? undefined : callerOf(payer, facts.pass, ports)
  if (key !== undefined) return callerOf(key, facts.pass, ports)
  if (paying !== undefined) return paying
  const signed = signedBy(facts)
  if (signed === undefined) return { kind: 'anonymous' }
  return {
    kind: 'wallet',
    address: await verifyWallet(facts, signed, {
      database: ports.database,
      nowMs: ports.world.now(),
      origin: ports.origin(),
    }),
  }
}

/** Who has the key of this text, if it is alive. */
export function holderOfKey(keyText: string, pass: Pass, ports: AccessPorts): Caller | undefined {
  if (pass.hashedKey?.text !== keyText) {
    const hash = hashOfKey(keyText)
    const isOperator = equalInConstantTime(hash, ports.operatorKeyHash)
    pass.hashedKey = { text: keyText, hash, isOperator }
  }
  const { hash, isOperator } = pass.hashedKey
  if (isOperator) return { kind: 'operator' }
  const key = ports.tenancy.system.keys.find(hash, ports.world.now())
  return key && { kind: 'key', key }
}

/** 401, 403 or 404 unless the caller may use this route on what it addresses. */
export function authorize(
  route: Pick<Route, 'access' | 'evenArchived'>,
  caller: Caller,
  target: { appId: string | undefined; tenancy: Tenancy; registration: Registration },
): void {
  if (route.access === 'public' || route.access === 'by-policy') return
  if (route.access === 'operator') {
    if (caller.kind !== 'operator') throw refused(caller, 'Only the operator may do this')
    return
  }
  if (route.access === 'registrar' && target.registration === 'operator') {
    if (caller.kind === 'operator') return
    throw refused(
      caller,
      'Only the operator of this service registers applications; ask for one (its setting `registration` can let wallets do so)',
    )
  }
  if (route.access === 'owner' || route.access === 'registrar') {
    if (caller.kind !== 'operator' && caller.kind !== 'wallet')
      throw refused(caller, 'Only the operator, or a wallet signature, may do this')
    return
  }
  const { appId, tenancy } = target
  const { evenArchived = false } = route
  if (appId !== undefined) requirePermission(caller, route.access, { appId, tenancy, evenArchived })
  // The body names the application; without a credential nobody may do this on any.
  else if (caller.kind === 'anonymous')
    throw new Fault('UNAUTHORIZED', { message: 'A key of the application is needed (X-App-Key)' })
}

/** The caller must hold a permission on the application. Admin includes Write and Read. */
export function requirePermission(
  caller: Caller,
  permission: Permitted,
  target: { appId: string; tenancy: Tenancy; evenArchived?: boolean },
): void {
  const { appId, tenancy, evenArchived } = target
  const application = evenArchived === true ? tenancy.recordOf(appId) : tenancy.application(appId)
  const refusal = refusalOf(caller, permission, application)
  if (refusal === undefined) return
  // Who has no part in an archived one is told what everybody is told.
  tenancy.application(appId)
  throw refusal
}

function refusalOf(
  caller: Caller,
  permission: Permitted,
  { app_id: appId, owner_address: owner }: Owned,
): Fault | undefined {
  if (caller.kind === 'operator') return undefined
  if (caller.kind === 'wallet') {
    if (owner === caller.address) return undefined
    return new Fault('UNAUTHORIZED', { message: `${caller.address} does not own ${appId}` })
  }
  if (caller.kind !== 'key' || caller.key.app_id !== appId)
    return new Fault('UNAUTHORIZED', { message: `A key of ${appId} is needed (X-App-Key)` })
  if (holds(caller.key, permission)) return undefined
  return lacking(caller.key, permission)
}

type Owned = { readonly app_id: string; readonly owner_address: string | null }

/** Whether the caller holds the permission on the application, without judging. The operator reads no private data. */
export function mayRead(caller: Caller, application: Owned): boolean {
  if (caller.kind === 'key')
    return caller.key.app_id === application.app_id && holds(caller.key, 'Read')
  return caller.kind === 'wallet' && application.owner_address === caller.address
}

/** Whether the caller may know what an application has defined, and how much it holds: who may Read, and the operator. */
export function mayDescribe(caller: Caller, application: Owned): boolean {
  return caller.kind === 'operator' || mayRead(caller, application)
}

/** Whether the caller may write to the application. */
export function mayWrite(caller: Caller, application: Owned): boolean {
  if (caller.kind === 'key')
    return caller.key.app_id === application.app_id && holds(caller.key, 'Write')
  return mayDescribe(caller, application)
}

/**
 * 403 for a key of the application that lacks Read. It is said before anything is looked for: what is not open to
 * strangers is not for such a key, and not even that it is there.
 */
export function refuseWithoutRead(caller: Caller, { app_id }: Owned): void {
  if (caller.kind !== 'key' || caller.key.app_id !== app_id || holds(caller.key, 'Read')) return
  throw lacking(caller.key, 'Read')
}

function callerOf(keyText: string, pass: Pass, ports: AccessPorts): Caller {
  const caller = holderOfKey(keyText, pass, ports)
  if (caller === undefined)
    throw new Fault('UNAUTHORIZED', { message: 'The key is not known, expired or revoked' })
  return caller
}

function holds(key: KeyRecord, permission: Permitted): boolean {
  if (permission === 'Read or Write') return holds(key, 'Read') || holds(key, 'Write')
  if (key.permissions.includes(permission)) return true
  return key.permissions.includes('Admin') && (permission === 'Read' || permission === 'Write')
}

function lacking(key: KeyRecord, permission: Permitted): Fault {
  return new Fault('FORBIDDEN', {
    message: `The key lacks the permission ${permission}; it has ${key.permissions.join(', ')}`,
  })
}

function refused(caller: Caller, message: string): Fault {
  return new Fault(caller.kind === 'anonymous' ? 'UNAUTHORIZED' : 'FORBIDDEN', { message })
}

function equalInConstantTime(a: string, b: string): boolean {
  return timingSafeEqual(Buffer.from(a), Buffer.from(b))
}
