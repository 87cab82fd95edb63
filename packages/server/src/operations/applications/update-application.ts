import { type PublishChoice, publishChoices } from '@tollbase/contract/applications'
import { limits } from '@tollbase/contract/limits'
import { Fault, makeInvalidFault } from '../../base/fault.ts'
import type { ApplicationRecord } from '../../model/application.ts'
import { findSettledOwner } from '../../model/payout-settings.ts'
import { getPublishChoice } from '../../model/publication.ts'
import { findWalletSignature } from '../../services/access/credentials.ts'
import { refuseLapsedCaller } from '../../services/access/lapsed-caller.ts'
import { verifyWallet } from '../../services/access/wallet-signature.ts'
import type { Tenants } from '../../services/applications/tenants.ts'
import type { Call } from '../../services/call.ts'
import type { Operation } from '../operation.ts'
import { describeApplication } from './describe-application.ts'

export const updateApplication: Operation<
  'updateApplication',
  'world' | 'database' | 'tenants' | 'program' | 'publishing' | 'viewBuilder'
> = async (call, { params, body }) => {
  const { caller, service } = call
  if (body.status !== undefined && caller.kind !== 'operator')
    throw new Fault('FORBIDDEN', { message: 'Only the operator may bring an application back' })
  const owner = body.owner_address?.toLowerCase()
  const evenArchived = body.status === 'active' || isTakingBack(call, body)
  const state = getStateBefore(service.tenants, params.app, evenArchived)
  const { owner_address: before, owner_trusted_from_ms: trustedBefore } = state
  if (body.quota !== undefined && caller.kind !== 'operator')
    throw new Fault('FORBIDDEN', { message: 'Only the operator may change a quota' })
  if (caller.kind === 'operator') refuseMorePublished(service.tenants, params.app, body.publish)
  if (owner !== undefined && owner !== before) await refuseUnwilling(call, owner)
  const change: Partial<ApplicationRecord> = {
    ...(body.name !== undefined && { name: body.name }),
    ...(body.description !== undefined && { description: body.description }),
    ...(owner !== undefined && { owner_address: owner }),
    ...(owner !== undefined && computeTrust(call, state, owner)),
    ...(body.quota !== undefined && { quota: body.quota }),
    ...(body.status !== undefined && { status: body.status }),
    ...(body.publish !== undefined && { publish: body.publish }),
  }
  const check = (now: ApplicationRecord) => {
    // Whoever was the owner needs neither a signature nor a time; somebody else may be the owner by now.
    const isSame = now.owner_address === before && now.owner_trusted_from_ms === trustedBefore
    if (owner !== undefined && !isSame)
      throw new Fault('CONFLICT', { message: 'Another owner was named meanwhile; send it again' })
  }
  const order = { appId: params.app, change, check, evenArchived }
  const record = await changeApplication(call, order)
  // Some views may have been emptied while it was archived.
  if (body.status !== undefined) service.viewBuilder.notice(params.app)
  return describeApplication(call, record)
}

/** Only the application itself, or its owner, may have more of it published, as no chain takes anything back. */
function refuseMorePublished(
  tenants: Tenants,
  appId: string,
  publish: PublishChoice | undefined,
): void {
  if (publish === undefined) return
  const now = getPublishChoice(tenants.requireRecord(appId))
  if (publishChoices.indexOf(publish) > publishChoices.indexOf(now))
    throw new Fault('FORBIDDEN', {
      message:
        'Only a key of the application with Admin, or its owner, can have more of its data published',
    })
}

/** A stolen key could otherwise archive the application until the owner whom it named is trusted. */
function isTakingBack(
  { caller }: Call,
  { owner_address: owner, ...others }: { readonly owner_address?: string },
): boolean {
  const isNamingItself = caller.kind === 'wallet' && caller.address === owner?.toLowerCase()
  return isNamingItself && Object.keys(others).length === 0
}

/**
 * The operator is believed at once. A key that was stolen can name an owner too, so that one decides about money only
 * when the former one has had the time to see it, and to take it back, which counts at once.
 */
function computeTrust(
  { caller, service }: Call<'world'>,
  state: ApplicationRecord,
  owner: string,
): Pick<ApplicationRecord, 'owner_trusted_from_ms' | 'owner_before'> | undefined {
  const now = service.world.now()
  const settled = findSettledOwner(state, now)
  const isNamed = owner === state.owner_address
  if (isNamed && (owner === settled || caller.kind !== 'operator')) return undefined
  if (caller.kind === 'operator' || owner === settled)
    return { owner_trusted_from_ms: now, owner_before: null }
  return {
    owner_trusted_from_ms: now + limits.payoutDestinationSeconds * 1000,
    owner_before: settled,
  }
}

/**
 * The new owner must sign the request, beside the key that makes it; the operator is believed. Otherwise anybody
 * could name an owner whose transfers to us would then pay for somebody else's writes.
 */
async function refuseUnwilling(
  { caller, requestInfo, service }: Call<'world' | 'database' | 'program'>,
  owner: string,
): Promise<void> {
  if (caller.kind === 'operator') return
  if (caller.kind === 'wallet' && caller.address === owner) return
  const signed = caller.kind === 'key' ? findWalletSignature(requestInfo) : undefined
  if (signed?.address !== owner) {
    throw makeInvalidFault(
      '/owner_address',
      'must be the address that signed the request (X-Signature); the request also needs a key of the application',
    )
  }
  const { database, world, program } = service
  await verifyWallet(requestInfo, signed, {
    database,
    nowMs: world.now(),
    origin: program.origin(),
  })
}

/** An archived application can only be brought back, together with other changes, or taken back; all else is 404. */
function getStateBefore(tenants: Tenants, appId: string, evenArchived: boolean): ApplicationRecord {
  return evenArchived ? tenants.requireRecord(appId) : tenants.requireApplication(appId)
}

/**
 * Writes an application's new state and waits until it is in force, where the caller may do that still; `check` may
 * refuse the state that it changes.
 */
export async function changeApplication(
  call: Call<'tenants'>,
  {
    appId,
    change,
    check,
    evenArchived = false,
  }: {
    readonly appId: string
    readonly change: Partial<ApplicationRecord>
    readonly check?: (state: ApplicationRecord) => void
    readonly evenArchived?: boolean
  },
): Promise<ApplicationRecord> {
  const { tenants } = call.service
  return tenants.system.definitions.run(async () => {
    refuseLapsedCaller(call, appId, { permission: 'Admin', evenArchived })
    const state = getStateBefore(tenants, appId, evenArchived)
    check?.(state)
    const record = { ...state, ...change }
    const { height } = await tenants.system.chain.append([
      { header: { type: 'application', app: appId }, body: JSON.stringify(record) },
    ])
    await tenants.system.chain.whenApplied(height)
    return record
  })
}
