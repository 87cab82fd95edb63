import { timingSafeEqual } from 'node:crypto'
import type { Permitted, Route } from '@tollbase/contract/route'
import { Fault } from '../../base/fault.ts'
import type { World } from '../../base/world.ts'
import type { Database } from '../../database/database.ts'
import type { Pass } from '../../http/pass.ts'
import type { RequestFacts } from '../../http/request.ts'
import { hashOfKey, type KeyRecord } from '../tenancy/keys.ts'
import type { Tenancy } from '../tenancy/tenancy.ts'
import { keysOf, signedBy } from './credentials.ts'
import { verifyWallet } from './wallet-signature.ts'

/** Who calls. An anonymous caller is as good a buyer as any. */
export type Caller =
  | { readonly kind: 'anonymous' }
  | { readonly kind: 'key'; readonly key: KeyRecord }
  | { readonly kind: 'operator' }
  | { readonly kind: 'wallet'; readonly address: string }

export type AccessPorts = {
  readonly tenancy: Tenancy
  readonly database: Database
  readonly world: World
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
  route: Pick<Route, 'access'>,
  caller: Caller,
  target: { appId: string | undefined; tenancy: Tenancy },
): void {
  if (route.access === 'public' || route.access === 'by-policy') return
  if (route.access === 'operator') {
    if (caller.kind !== 'operator') throw refused(caller, 'the operator')
    return
  }
  if (route.access === 'owner') {
    if (caller.kind !== 'operator' && caller.kind !== 'wallet')
      throw refused(caller, 'the operator, or a wallet signature,')
    return
  }
  const { appId, tenancy } = target
  if (appId !== undefined) requirePermission(caller, route.access, { appId, tenancy })
  // The body names the application; without a credential nobody may do this on any.
  else if (caller.kind === 'anonymous')
    throw new Fault('UNAUTHORIZED', { message: 'A key of the application is needed (X-App-Key)' })
}

/** The caller must hold a permission on the application. Admin includes Write and Read. */
export function requirePermission(
  caller: Caller,
  permission: Permitted,
  target: { appId: string; tenancy: Tenancy },
): void {
  const application = target.tenancy.application(target.appId)
  if (caller.kind === 'operator') return
  if (caller.kind === 'wallet') {
    if (application.owner_address === caller.address) return
    throw new Fault('UNAUTHORIZED', { message: `${caller.address} does not own ${target.appId}` })
  }
  if (caller.kind !== 'key' || caller.key.app_id !== target.appId) {
    throw new Fault('UNAUTHORIZED', { message: `A key of ${target.appId} is needed (X-App-Key)` })
  }
  if (!holds(caller.key, permission)) {
    throw new Fault('FORBIDDEN', {
      message: `The key lacks the permission ${permission}; it has ${caller.key.permissions.join(', ')}`,
    })
  }
}

/** Whether the caller holds the permission on the application, without judging. The operator reads no private data. */
export function mayRead(
  caller: Caller,
  application: { app_id: string; owner_address: string | null },
): boolean {
  if (caller.kind === 'key')
    return caller.key.app_id === application.app_id && holds(caller.key, 'Read')
  return caller.kind === 'wallet' && application.owner_address === caller.address
}

/** Whether the caller belongs to the application: one of its keys, its owner, or the operator. */
export function isInsider(
  caller: Caller,
  application: { app_id: string; owner_address: string | null },
): boolean {
  if (caller.kind === 'operator') return true
  if (caller.kind === 'key') return caller.key.app_id === application.app_id
  return caller.kind === 'wallet' && application.owner_address === caller.address
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

function refused(caller: Caller, who: string): Fault {
  return new Fault(caller.kind === 'anonymous' ? 'UNAUTHORIZED' : 'FORBIDDEN', {
    message: `Only ${who} may do this`,
  })
}

function equalInConstantTime(a: string, b: string): boolean {
  return timingSafeEqual(Buffer.from(a), Buffer.from(b))
}
