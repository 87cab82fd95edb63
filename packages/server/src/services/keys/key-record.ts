import type { Permission } from '@tollbase/contract/permissions'
import { Fault, makeInvalidFault } from '../../base/fault.ts'
import { toGivenUsd } from '../../base/format-usd.ts'
import type { World } from '../../base/world.ts'
import { getBudget, hashKey, type KeyRecord, makeKeyText } from '../../projections/keys.ts'
import type { Tenants } from '../applications/tenants.ts'
import type { Uses } from '../call.ts'

export type KeyRequest = {
  readonly appId: string
  readonly name: string
  readonly permissions: readonly Permission[]
  readonly payLimits: Readonly<Record<string, unknown>> | null
  readonly expiresAt: string | null
  /** The key whose place it takes: what that one has spent counts on. */
  readonly successorOf?: KeyRecord | undefined
}

/** Makes a key's text, shown once, and the record that is kept of it. */
export function makeKey(world: World, request: KeyRequest): { text: string; record: KeyRecord } {
  const text = makeKeyText(world.randomBytes)
  return {
    text,
    record: {
      key_hash: hashKey(text),
      app_id: request.appId,
      prefix: text.slice(0, 8),
      name: request.name,
      permissions: request.permissions,
      pay_limits: request.payLimits,
      created_at: new Date(world.now()).toISOString(),
      expires_at: request.expiresAt,
      revoked_at: null,
      ...(request.successorOf && { budget: getBudget(request.successorOf) }),
    },
  }
}

/** Returns the end that a caller asks for, which must be in the future: a key that is dead at once is of no use. */
export function parseKeyEnd(asked: string | null, nowMs: number): string | null {
  // RFC 3339 has a 61st second, which is no time that can be reckoned with.
  if (asked === null || Date.parse(asked) > nowMs) return asked
  throw makeInvalidFault('/expires_at', 'must be a time in the future')
}

/** The application's key of this hash, dead or alive, or 404. */
export async function requireKey(
  { tenants, database }: Uses<'tenants' | 'database'>,
  appId: string,
  keyHash: string,
): Promise<KeyRecord> {
  const { keys, schema } = tenants.system
  const key = await keys.read(database, schema, { appId, keyHash })
  if (key === undefined) throw new Fault('KEY_NOT_FOUND')
  return key
}

/** The key as callers see it, without its text. */
export function describeKey(record: KeyRecord) {
  return {
    key_hash: record.key_hash,
    prefix: record.prefix,
    name: record.name,
    permissions: [...record.permissions],
    pay_limits: record.pay_limits === null ? null : { ...record.pay_limits },
    usd: describeLimits(record.pay_limits ?? {}),
    created_at: record.created_at,
    expires_at: record.expires_at,
  }
}

function describeLimits(limits: NonNullable<KeyRecord['pay_limits']>) {
  const { max_payment_per_tx, spend_allowance, daily_allowance } = limits
  return toGivenUsd({ max_payment_per_tx, spend_allowance, daily_allowance })
}

/** Writes the newest state of keys, as one group, and waits until it is in force. */
export async function writeKeys(tenants: Tenants, records: readonly KeyRecord[]): Promise<void> {
  const { chain } = tenants.system
  const { height } = await chain.append(
    records.map((record) => ({
      header: { type: 'key', app: record.app_id },
      body: JSON.stringify(record),
    })),
  )
  await chain.whenApplied(height)
}
