import { createHmac } from 'node:crypto'
import { makeJsonReply } from '../../http/reply.ts'
import type { Uses } from '../../services/call.ts'
import { readIdempotencyKey } from '../../services/payments/idempotency-key.ts'
import { makePayoutId, requestPayout as order } from '../../services/payments/payouts/payouts.ts'
import type { Operation } from '../operation.ts'
import { describePayout } from './describe-payout.ts'

export const requestPayout: Operation<
  'requestPayout',
  'database' | 'tenants' | 'transfers' | 'world' | 'cursorSecret'
> = async ({ service, requestInfo }, { params, body }) => {
  service.tenants.requireRecord(params.app)
  const { amount, network, idempotency_key } = body
  const key = readIdempotencyKey(requestInfo, idempotency_key)
  const id = key === undefined ? makePayoutId(service) : derivePayoutId(service, params.app, key)
  const asked = amount === undefined ? undefined : BigInt(amount)
  const payout = await order(service, params.app, { id, amount: asked, network })
  return makeJsonReply(describePayout(payout), { status: 202 })
}

/** The same key names the same payout; who has the id may look at it, so it cannot be guessed from the key. */
function derivePayoutId({ cursorSecret }: Uses<'cursorSecret'>, app: string, key: string): string {
  const mac = createHmac('sha256', cursorSecret).update(JSON.stringify(['payout', app, key]))
  return `payout_${mac.digest('hex').slice(0, 32)}`
}
