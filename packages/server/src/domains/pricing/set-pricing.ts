import { limits } from '@tollbase/contract/limits'
import { Fault, invalid } from '../../base/fault.ts'
import type { Operation } from '../operation.ts'
import { define } from '../tenancy/define.ts'
import type { PriceRule } from '../tenancy/definitions.ts'
import { pricingView } from './get-pricing.ts'

const readModels = ['per_access', 'per_row', 'per_kb', 'per_record']
const writeModels = ['per_access', 'per_record', 'per_row', 'per_kb']

export const setPricing: Operation<'setPricing'> = async ({ service }, { params, body }) => {
  const tenant = await service.tenancy.tenant(params.app)
  return tenant.definitions.run(async () => {
    const rules = body.rules.map((rule, at): PriceRule => {
      if (!('collection' in rule.target)) throw notBuilt(at)
      if (!tenant.data.catalog.byName.has(rule.target.collection)) {
        throw new Fault('COLLECTION_NOT_FOUND', {
          message: `/rules/${at}/target: there is no collection ${rule.target.collection}`,
        })
      }
      if (rule.model === 'field_value') throw notBuilt(at)
      if (!(rule.operation === 'read' ? readModels : writeModels).includes(rule.model))
        throw invalid(`/rules/${at}/model`, `is not one for a ${rule.operation}`)
      if (rule.amount === undefined) throw invalid(`/rules/${at}/amount`, 'is needed')
      if (BigInt(rule.amount) > limits.amountAtomicMax)
        throw invalid(`/rules/${at}/amount`, `must be at most ${limits.amountAtomicMax}`)
      return {
        target: { collection: rule.target.collection },
        operation: rule.operation,
        model: rule.model,
        amount: String(rule.amount),
      }
    })
    const seen = new Set<string>()
    for (const [at, rule] of rules.entries()) {
      // A row and a record are one thing under two names.
      const model = rule.model === 'per_record' ? 'per_row' : rule.model
      const name = `${rule.target.collection} ${rule.operation} ${model}`
      if (seen.has(name))
        throw invalid(`/rules/${at}`, `says again what another rule says: ${name}`)
      seen.add(name)
    }
    await define(tenant, [{ kind: 'pricing', id: 'pricing', body: { rules } }])
    return pricingView(service, rules)
  })
}

function notBuilt(at: number): Fault {
  return new Fault('NOT_IMPLEMENTED', {
    message: `/rules/${at}: prices of views, queries, API collections and by field value are not built yet`,
  })
}
