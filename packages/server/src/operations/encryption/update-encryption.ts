import type { Tollbase } from '@tollbase/contract/contract'
import type { Input } from '@tollbase/contract/route'
import { makeInvalidFault } from '../../base/fault.ts'
import { type HttpReply, makeJsonReply } from '../../http/reply.ts'
import { findCollection } from '../../model/catalog.ts'
import { noSize } from '../../model/compute-cost.ts'
import { freePrice } from '../../model/policy.ts'
import { platformAccount } from '../../projections/ledger-entry.ts'
import { requirePermission } from '../../services/access/access.ts'
import type { Tenant } from '../../services/applications/tenants.ts'
import type { Call, Uses } from '../../services/call.ts'
import {
  changeEncryption,
  describeCurrentState,
  type EncryptionState,
  type EncryptionWish,
  refuseWish,
} from '../../services/encryption/change-encryption.ts'
import { hasPayment } from '../../services/payments/presented/presented-payment.ts'
import type { WriteForm } from '../../services/payments/quotes/write-answer-form.ts'
import { makeWriteDelivery } from '../../services/payments/write-delivery.ts'
import type { Operation } from '../operation.ts'

type Body = Input<Tollbase['updateEncryption']>['body']

/**
 * Checks the shape first, then the price, which anyone may ask for, and the rights before any money moves. A caller
 * without rights learns nothing about the collections in the request.
 */
export const updateEncryption: Operation<
  'updateEncryption',
  'world' | 'database' | 'tenants' | 'payments' | 'encryptionPrice' | 'resealings' | 'ticketKey'
> = async (call, { params, body }) => {
  const { service } = call
  const tenant = await service.tenants.load(params.app)
  refuseShape(body)
  const price = service.encryptionPrice
  if (price === 0n || hasPayment(call)) requireAdmin(call, params.app)
  const wish = isAdmin(call, params.app) ? parseWish(tenant, body) : undefined
  const { number, app_id: appId } = tenant.application
  return service.payments.sell(call, {
    tenant,
    operation: 'encryption',
    description: `A change of the encryption settings of ${appId}`,
    meaning: [
      ...[number, body.private_app ?? null, body.action ?? null, body.collections ?? null],
      ...(typeof body.queryable === 'boolean' ? [body.queryable] : []),
    ],
    payees: [{ account: platformAccount, platformBasisPoints: 10_000 }],
    pricedBy: [tenant],
    onlyByPayment: true,
    pricesNow: () => [{ ...freePrice, perAccess: price, emptyFree: false }],
    mostUnder: () => [noSize],
    sellerUnder: () => appId,
    breakdownUnder: ([one]) => ({ per_access: Number(one?.perAccess ?? 0n) }),
    refuseUndeliverable: () => {
      if (wish !== undefined) refuseWish(tenant, wish)
    },
    writes,
    deliver: async (prices, paymentId) => {
      requireAdmin(call, params.app)
      const wished = wish ?? parseWish(tenant, body)
      const done = await changeEncryption(service, tenant, { ...wished, paymentId })
      return makeWriteDelivery(makeReply(done), writes, prices)
    },
  })
}

const writes: WriteForm = { operation: 'encryption', rows: 0 }

/** Answers a change that was made: with the settings of now, and the tasks that are under way. */
export async function answerEncryption(
  parts: Uses<'database' | 'ticketKey'>,
  tenant: Tenant,
): Promise<HttpReply> {
  return makeReply(await describeCurrentState(parts, tenant))
}

/** Where records change their form, the answer names the tasks, and says what no setting takes back. */
function makeReply({ settings, tasks, isRecordsToo, isBlobsToo }: EncryptionState): HttpReply {
  const plain = settings.queryable_collections.join(', ')
  const updated = 'Encryption settings updated successfully'
  const under = tasks.map(({ collection }) => collection).join(', ')
  const message = [
    updated,
    ...(tasks.length > 0 ? [`the records of ${under} follow in the background`] : []),
    ...(isBlobsToo ? ['blobs get other ids, to which those from before are redirected'] : []),
    ...(plain === ''
      ? []
      : [
          `queryable: the records of ${plain} are also kept as plaintext in the database of the service, where its operator can read them; the log, blocks, backups and other chains have ciphertext alone`,
        ]),
    ...(isRecordsToo
      ? [
          'copies of records in backups, on other chains and with earlier readers cannot be taken back',
        ]
      : []),
  ].join('; ')
  const body = { success: true, message, ...settings, ...(tasks.length > 0 && { tasks }) }
  return makeJsonReply(body, { status: 200 })
}

function requireAdmin({ caller, service: { tenants } }: Call<'tenants'>, appId: string): void {
  requirePermission(caller, 'Admin', { appId, tenants })
}

function isAdmin(call: Call<'tenants'>, appId: string): boolean {
  try {
    requireAdmin(call, appId)
    return true
  } catch {
    return false
  }
}

function refuseShape({ private_app, action, collections, queryable }: Body): void {
  const names = collections ?? []
  if ((private_app ?? undefined) === undefined && (action ?? undefined) === undefined)
    throw names.length > 0
      ? makeInvalidFault('/action', 'is needed: add or remove')
      : makeInvalidFault('', 'must have private_app, or action and collections')
  if ((action ?? undefined) === undefined && names.length > 0)
    throw makeInvalidFault('/action', 'is needed: add or remove')
  if ((action ?? undefined) !== undefined && names.length === 0)
    throw makeInvalidFault('/collections', 'must name the collections of the action')
  if (typeof queryable === 'boolean' && (action !== 'add' || private_app === true))
    throw makeInvalidFault('/queryable', 'is about the collections that the action `add` names')
}

function parseWish({ data }: Tenant, body: Body): EncryptionWish {
  const collections = (body.collections ?? []).map((name, at) => {
    const found = findCollection(data.catalog, name)
    if (found === undefined)
      throw makeInvalidFault(`/collections/${at}`, `names no collection: there is no ${name}`)
    return found.id
  })
  return {
    privateApp: body.private_app ?? undefined,
    action: body.action ?? undefined,
    queryable: body.queryable ?? undefined,
    collections: [...new Set(collections)],
  }
}
