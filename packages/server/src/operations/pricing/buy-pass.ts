import { requirePresent } from '../../base/assert.ts'
import { Fault } from '../../base/fault.ts'
import { makeJsonReply } from '../../http/reply.ts'
import type { Catalog } from '../../model/catalog.ts'
import { noSize } from '../../model/cost.ts'
import type { PriceRule } from '../../model/definitions.ts'
import { freePrice } from '../../model/policy.ts'
import type { SoldItem } from '../../projections/sales.ts'
import { canDescribe } from '../../services/access/access.ts'
import { toApplicationAccount } from '../../services/payments/ledger-entries.ts'
import type { Operation } from '../operation.ts'
import { isKnown } from './get-pricing.ts'
import type { Target } from './list-freed.ts'

export const buyPass: Operation<'buyPass', 'tenants' | 'payments'> = async (
  call,
  { params, body },
) => {
  const { service, caller } = call
  const tenant = await service.tenants.load(params.app)
  const { catalog } = tenant.data
  const { target, hours } = body
  const rule = findPassRule(catalog, target, hours)
  if (rule === undefined || !(canDescribe(caller, tenant.application) || isKnown(catalog, rule)))
    throw new Fault('PASS_NOT_FOUND')
  const perAccess = BigInt(requirePresent(rule.amount, 'the amount of a pass'))
  const account = toApplicationAccount(params.app)
  const item = toSoldItem(target)
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
      return { ...answer, sizes: [noSize], rows: 0, asOf: null }
    },
  })
}

function findPassRule({ pricing }: Catalog, target: Target, hours: number): PriceRule | undefined {
  const asked = toSoldItem(target)
  return pricing.rules.find((rule) => {
    const { kind, name } = toSoldItem(rule.target)
    return (
      rule.model === 'time_pass' &&
      rule.hours === hours &&
      kind === asked.kind &&
      name === asked.name
    )
  })
}

/** The thing that sales of the target name; an API collection is a collection there. */
function toSoldItem(target: Readonly<Record<string, string>>): SoldItem {
  const { collection, api_collection, view, query } = target
  if (query !== undefined) return { kind: 'query', name: query }
  if (view !== undefined) return { kind: 'view', name: view }
  return { kind: 'collection', name: collection ?? api_collection ?? '' }
}
