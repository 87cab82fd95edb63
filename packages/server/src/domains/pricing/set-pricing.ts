import { limits } from '@tollbase/contract/limits'
import { Fault, invalid } from '../../base/fault.ts'
import { parseFieldPath } from '../../query/field-path.ts'
import type { Operation } from '../operation.ts'
import { define } from '../tenancy/define.ts'
import type { PriceRule } from '../tenancy/definitions.ts'
import { pricingView } from './get-pricing.ts'

const readModels = ['per_access', 'per_row', 'per_kb', 'per_record']
const writeModels = ['per_access', 'per_record', 'per_row', 'per_kb', 'field_value']

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
      if (!(rule.operation === 'read' ? readModels : writeModels).includes(rule.model))
        throw invalid(`/rules/${at}/model`, `is not one for a ${rule.operation}`)
      return {
        target: { collection: rule.target.collection },
        operation: rule.operation,
        model: rule.model,
        ...(rule.model === 'field_value' ? fieldOf(rule, at) : amountOf(rule, at)),
      }
    })
    const seen = new Set<string>()
    for (const [at, rule] of rules.entries()) {
      // A row and a record are one thing under two names.
      const model = rule.model === 'per_record' ? 'per_row' : rule.model
      const what = rule.field === undefined ? model : `${model} of ${rule.field}`
      const name = `${rule.target.collection} ${rule.operation} ${what}`
      if (seen.has(name))
        throw invalid(`/rules/${at}`, `says again what another rule says: ${name}`)
      seen.add(name)
    }
    await define(tenant, [{ kind: 'pricing', id: 'pricing', body: { rules } }])
    return pricingView(service, rules)
  })
}

type SentRule = { readonly amount?: string | number; readonly field?: string }

function amountOf({ amount }: SentRule, at: number): { amount: string } {
  if (amount === undefined) throw invalid(`/rules/${at}/amount`, 'is needed')
  if (BigInt(amount) > limits.amountAtomicMax)
    throw invalid(`/rules/${at}/amount`, `must be at most ${limits.amountAtomicMax}`)
  return { amount: String(amount) }
}

/** The value of the field is the price, in whole tokens. */
function fieldOf({ amount, field }: SentRule, at: number): { field: string } {
  if (amount !== undefined)
    throw invalid(`/rules/${at}/amount`, 'is not for field_value: the field says the amount')
  if (field === undefined) throw invalid(`/rules/${at}/field`, 'is needed')
  return { field: parseFieldPath(field, `/rules/${at}/field`).join('.') }
}

function notBuilt(at: number): Fault {
  return new Fault('NOT_IMPLEMENTED', {
    message: `/rules/${at}: prices of views, queries and API collections are not built yet`,
  })
}
