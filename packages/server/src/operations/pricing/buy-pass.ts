import { requirePresent } from '../../base/assert.ts'
import { Fault } from '../../base/fault.ts'
import { makeJsonReply } from '../../http/reply.ts'
import { noSize } from '../../model/compute-cost.ts'
import { freePrice } from '../../model/policy.ts'
import { toApplicationAccount } from '../../projections/ledger-entry.ts'
import { canDescribe } from '../../services/access/access.ts'
import { isSold } from '../../services/pricing/freed-targets.ts'
import type { Operation } from '../operation.ts'
import { isKnown } from './get-pricing.ts'
import { findPassRule, toSoldItem } from './pass-rules.ts'

export const buyPass: Operation<'buyPass', 'tenants' | 'payments' | 'queryPlans'> = async (
  call,
  { params, body },
) => {
  const { service, caller } = call
  const tenant = await service.tenants.load(params.app)
  const { catalog } = tenant.data
  const { target, hours } = body
  const item = toSoldItem(target)
  const rule = findPassRule(catalog, item, hours)
  if (rule === undefined || !(canDescribe(caller, tenant.application) || isKnown(catalog, rule)))
    throw new Fault('PASS_NOT_FOUND')
  if (!(await isSold(call, tenant, rule.target))) throw new Fault('PASS_NOT_FOUND')
  const perAccess = BigInt(requirePresent(rule.amount, 'the amount of a pass'))
  const account = toApplicationAccount(params.app)
  return service.payments.sell(call, {
    tenant,
    operation: 'pass',
    description: `A pass of ${hours} hours for ${item.kind} ${params.app}::${item.name}`,
    meaning: [tenant.application.number, item.kind, item.name, hours],
    payees: [{ account, platformBasisPoints: 0, item }],
    pricedBy: [tenant],
    pricesNow: () => [{ ...freePrice, perAccess, emptyFree: false }],
    mostUnder: () => [noSize],
    sellerUnder: () => params.app,
    breakdownUnder: ([one]) => ({ per_access: Number(one?.perAccess ?? 0n) }),
    pass: { ...item, account, hours },
    deliver: async (_, paymentId) => {
      const reply = makeJsonReply({ pass_id: paymentId, target, hours }, { status: 200 })
      const answer = { status: 200, body: Buffer.from(reply.text) }
      const measured = [{ by: 'pass', hours } as const]
      return { ...answer, sizes: [noSize], measured, rows: 0, asOf: null }
    },
  })
}
