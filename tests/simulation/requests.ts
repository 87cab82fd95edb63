import { createAuthorization } from '../../packages/server/src/operations/authorizations/create-authorization.ts'
import { revokeAuthorization } from '../../packages/server/src/operations/authorizations/revoke-authorization.ts'
import { refundSale } from '../../packages/server/src/operations/billing/refund-sale.ts'
import { updateCollection } from '../../packages/server/src/operations/collections/update-collection.ts'
import { createKey } from '../../packages/server/src/operations/keys/create-key.ts'
import { revokeKey } from '../../packages/server/src/operations/keys/revoke-key.ts'
import { rotateKey } from '../../packages/server/src/operations/keys/rotate-key.ts'
import { listRecords } from '../../packages/server/src/operations/listing/list-records.ts'
import { getReceipt } from '../../packages/server/src/operations/payments/get-receipt.ts'
import { settlePayment } from '../../packages/server/src/operations/payments/settle-payment.ts'
import { verifyPayment } from '../../packages/server/src/operations/payments/verify-payment.ts'
import { cancelPayout } from '../../packages/server/src/operations/payouts/cancel-payout.ts'
import { getPayoutInfo } from '../../packages/server/src/operations/payouts/get-payout-info.ts'
import { requestPayout } from '../../packages/server/src/operations/payouts/request-payout.ts'
import { setPayoutSettings } from '../../packages/server/src/operations/payouts/set-payout-settings.ts'
import { setPricing } from '../../packages/server/src/operations/pricing/set-pricing.ts'
import { storeRecords } from '../../packages/server/src/operations/records/store-records.ts'
import { depositToApplication } from '../../packages/server/src/operations/wallets/deposit-to-application.ts'
import { getPlatformWallet } from '../../packages/server/src/operations/wallets/get-platform-wallet.ts'
import { getWallet } from '../../packages/server/src/operations/wallets/get-wallet.ts'
import { withdrawFromPlatform } from '../../packages/server/src/operations/wallets/withdraw-from-platform.ts'
import { withdrawFromWallet } from '../../packages/server/src/operations/wallets/withdraw-from-wallet.ts'
import { makeLetterRules } from './letter-rules.ts'
import { makeParcelRule } from './parcel-rules.ts'
import type { Asked } from './send-request.ts'
import { agency, application, news, press, supplier } from './shop.ts'

export function makeStoreRequest(
  collection: string,
  data: readonly object[],
  app: string = application,
): Asked {
  return {
    operationId: 'storeRecords',
    path: '/store',
    body: { root: `${app}::${collection}`, data },
    // The body was made here, in the form that the contract requires.
    run: (call, body) => storeRecords(call, { query: {}, body: body as never }),
  }
}

/** Stores samples, and waits until they can be read. */
export function makeSampleStoreRequest(data: readonly object[]): Asked {
  return {
    ...makeStoreRequest('samples', data),
    run: (call, body) => storeRecords(call, { query: { wait: true }, body: body as never }),
  }
}

/** Reads all news of the press, whose own wallet may be paid for them. */
export function makeNewsRequest(): Asked {
  return {
    operationId: 'listRecords',
    path: '/list',
    body: { root: `${press}::news`, limit: news.length },
    run: (call, body) => listRecords(call, { body: body as never }),
  }
}

/** A row read and a record written cost the same. */
export function makePriceList(amount: bigint) {
  const rule = (collection: string, operation: 'read' | 'write', model: 'per_row' | 'per_record') =>
    ({ target: { collection }, operation, model, amount: String(amount) }) as const
  const own = [rule('goods', 'read', 'per_row'), rule('notes', 'write', 'per_record')]
  return { rules: [...own, ...makeLetterRules(), makeParcelRule(amount)] }
}

export function makeListRequest(limit: number): Asked {
  return {
    operationId: 'listRecords',
    path: '/list',
    body: { root: `${application}::goods`, limit },
    run: (call, body) => listRecords(call, { body: body as never }),
  }
}

/** The same list, joined with the supplier's records. */
export function makeJoinRequest(limit: number): Asked {
  const resolve = { find: { id: '$data.id' } }
  const find = { feed: { model: `${supplier}::feeds`, many: false, resolve } }
  return { ...makeListRequest(limit), body: { root: `${application}::goods`, limit, find } }
}

export const deriveAt = (amount: bigint) => ({
  read: 'public' as const,
  derive: { per_access: String(amount) },
})

/** Sets another price of the supplier. */
export function makeDeriveRequest(amount: bigint): Asked {
  const params = { app: supplier, collection: 'feeds' }
  return {
    operationId: 'updateCollection',
    path: `/api/apps/${supplier}/collections/feeds`,
    params,
    body: { access_policy: deriveAt(amount) },
    run: (call, body) => updateCollection(call, { params, body: body as never }),
  }
}

/** Makes a payment for nothing but the payer's balance. */
export function makeDepositRequest(paymentPayload: {
  readonly x402Version: number
  readonly accepted?: object
}): Asked {
  const { x402Version, accepted: paymentRequirements = {} } = paymentPayload
  return {
    operationId: 'settlePayment',
    path: '/api/payments/settle',
    body: { x402Version, paymentPayload, paymentRequirements },
    run: (call, body) => settlePayment(call, { body: body as never }),
  }
}

/** A payment to another server, and what that asks for. */
type Sent = {
  readonly paymentPayload: { readonly x402Version: number }
  readonly paymentRequirements: object
}

/** Asks for a payment to another server to be settled. */
export function makeSettlementRequest(sent: Sent): Asked {
  return {
    operationId: 'settlePayment',
    path: '/api/payments/settle',
    body: { x402Version: sent.paymentPayload.x402Version, ...sent },
    run: (call, body) => settlePayment(call, { body: body as never }),
  }
}

/** Asks whether a payment to another server is good. */
export function makeVerificationRequest(sent: Sent): Asked {
  return {
    operationId: 'verifyPayment',
    path: '/api/payments/verify',
    body: { x402Version: sent.paymentPayload.x402Version, ...sent },
    run: (call, body) => verifyPayment(call, { body: body as never }),
  }
}

export function makeReceiptRequest(id: string): Asked {
  return {
    operationId: 'getReceipt',
    path: `/api/receipts/${id}`,
    body: {},
    run: (call) => getReceipt(call, { params: { id } }),
  }
}

export function makeWithdrawalRequest(address: string, body: object): Asked {
  const params = { address }
  return {
    operationId: 'withdrawFromWallet',
    path: `/api/wallets/${address}/withdraw`,
    params,
    body,
    run: (call, sent) => withdrawFromWallet(call, { params, body: sent as never }),
  }
}

/** Takes money out of the operator's own balance. */
export function makeEarningsRequest(body: object): Asked {
  return {
    operationId: 'withdrawFromPlatform',
    path: '/api/platform/wallet/withdraw',
    body,
    run: (call, sent) => withdrawFromPlatform(call, { body: sent as never }),
  }
}

export function makePlatformRequest(): Asked {
  return {
    operationId: 'getPlatformWallet',
    path: '/api/platform/wallet',
    body: {},
    run: (call, body) => getPlatformWallet(call, body),
  }
}

export function makeWalletRequest(address: string): Asked {
  const params = { address }
  return {
    operationId: 'getWallet',
    path: `/api/wallets/${address}`,
    params,
    body: {},
    run: (call) => getWallet(call, { params }),
  }
}

const shopParams = { app: application }

export function makePayoutRequest(body: object): Asked {
  return {
    operationId: 'requestPayout',
    path: `/api/apps/${application}/payout/request`,
    params: shopParams,
    body,
    run: (call, sent) => requestPayout(call, { params: shopParams, body: sent as never }),
  }
}

export function makePayoutInfoRequest(): Asked {
  return {
    operationId: 'getPayoutInfo',
    path: `/api/apps/${application}/payout/info`,
    params: shopParams,
    body: {},
    run: (call, body) => getPayoutInfo(call, { params: shopParams, body }),
  }
}

export function makePayoutSettingsRequest(body: object): Asked {
  return {
    operationId: 'setPayoutSettings',
    path: `/api/apps/${application}/payout/settings`,
    params: shopParams,
    body,
    run: (call, sent) => setPayoutSettings(call, { params: shopParams, body: sent as never }),
  }
}

export function makeCancelRequest(id: string): Asked {
  const params = { ...shopParams, payout_id: id }
  return {
    operationId: 'cancelPayout',
    path: `/api/apps/${application}/payout/${id}/cancel`,
    params,
    body: {},
    run: (call) => cancelPayout(call, { params }),
  }
}

export function makePricingRequest(amount: bigint): Asked {
  const params = { app: application }
  return {
    operationId: 'setPricing',
    path: `/api/apps/${application}/pricing`,
    params,
    body: makePriceList(amount),
    run: (call, body) => setPricing(call, { params, body: body as never }),
  }
}

export function makeFundingRequest(amount: bigint): Asked {
  const params = { app: agency }
  return {
    operationId: 'depositToApplication',
    path: `/api/apps/${agency}/wallet/deposit`,
    params,
    body: { amount: String(amount) },
    run: (call, body) => depositToApplication(call, { params, body: body as never }),
  }
}

export function makeKeyRequest(body: object): Asked {
  const params = { app: agency }
  return {
    operationId: 'createKey',
    path: `/api/apps/${agency}/keys`,
    params,
    body,
    run: (call, sent) => createKey(call, { params, body: sent as never }),
  }
}

export function makeRotateRequest(hash: string, seconds: number): Asked {
  const params = { app: agency, key_hash: hash }
  return {
    operationId: 'rotateKey',
    path: `/api/apps/${agency}/keys/${hash}/rotate`,
    params,
    body: { overlap_seconds: seconds },
    run: (call, body) => rotateKey(call, { params, body: body as never }),
  }
}

export function makeRevokeRequest(hash: string): Asked {
  const params = { app: agency, key_hash: hash }
  return {
    operationId: 'revokeKey',
    path: `/api/apps/${agency}/keys/${hash}/revoke`,
    params,
    body: {},
    run: (call, body) => revokeKey(call, { params, body }),
  }
}

export function makeGrantRequest(body: object): Asked {
  const params = { app: agency }
  return {
    operationId: 'createAuthorization',
    path: `/api/apps/${agency}/authorizations`,
    params,
    body,
    run: (call, sent) => createAuthorization(call, { params, body: sent as never }),
  }
}

export function makeRefundRequest(
  app: string,
  { paymentId, amount }: { readonly paymentId: string; readonly amount: bigint | undefined },
): Asked {
  const params = { app, payment_id: paymentId }
  return {
    operationId: 'refundSale',
    path: `/api/apps/${app}/sales/${paymentId}/refund`,
    params,
    body: amount === undefined ? {} : { amount: String(amount) },
    run: (call, body) => refundSale(call, { params, body: body as never }),
  }
}

export function makeRevokeGrantRequest(id: string): Asked {
  const params = { app: agency, id }
  return {
    operationId: 'revokeAuthorization',
    path: `/api/apps/${agency}/authorizations/${id}/revoke`,
    params,
    body: {},
    run: (call, body) => revokeAuthorization(call, { params, body }),
  }
}
