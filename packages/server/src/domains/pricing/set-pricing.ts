import { limits } from '@tollbase/contract/limits'
import { Fault, invalid } from '../../base/fault.ts'
import { parseFieldPath } from '../../query/field-path.ts'
import type { Operation } from '../operation.ts'
import { define } from '../tenancy/define.ts'
import type { PriceRule } from '../tenancy/definitions.ts'
import type { Tenant } from '../tenancy/tenancy.ts'
import { pricingView } from './get-pricing.ts'

const readModels = ['per_access', 'per_row', 'per_kb', 'per_record']
const writeModels = ['per_access', 'per_record', 'per_row', 'per_kb', 'field_value']

export const setPricing: Operation<'setPricing'> = async ({ service }, { params, body }) => {
  const tenant = await service.tenancy.tenant(params.app)
  return tenant.definitions.run(async () => {
    const rules = body.rules.map((rule, at): PriceRule => {
      const target = targetOf(tenant, rule.target, at)
      if (!('collection' in target) && rule.operation === 'write')
        throw invalid(
          `/rules/${at}/operation`,
          `must be read: nobody writes to a ${Object.keys(target).join()}`,
        )
      if (!(rule.operation === 'read' ? readModels : writeModels).includes(rule.model))
        throw invalid(`/rules/${at}/model`, `is not one for a ${rule.operation}`)
      return {
        target,
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
      const kind = rule.target.query === undefined ? '' : 'query '
      const name = `${kind}${Object.values(rule.target).join('')} ${rule.operation} ${what}`
      if (seen.has(name))
        throw invalid(`/rules/${at}`, `says again what another rule says: ${name}`)
      seen.add(name)
    }
    await define(tenant, [{ kind: 'pricing', id: 'pricing', body: { rules } }])
    return pricingView(service, rules)
  })
}

type SentTarget = Readonly<Record<string, string>>

/** Collections and views share their names. */
function targetOf(
  tenant: Tenant,
  sent: SentTarget,
  at: number,
): { collection: string } | { view: string } | { query: string } {
  const { byName, viewsByName, queries } = tenant.data.catalog
  const { collection, view, query } = sent
  const unknown = (what: string) => ({ message: `/rules/${at}/target: there is no ${what}` })
  if (collection !== undefined) {
    if (byName.has(collection)) return { collection }
    throw new Fault('COLLECTION_NOT_FOUND', unknown(`collection ${collection}`))
  }
  if (query !== undefined) {
    if (queries.has(query)) return { query }
    throw new Fault('QUERY_NOT_FOUND', unknown(`query ${query}`))
  }
  if (view === undefined) throw notBuilt(at)
  if (!viewsByName.has(view)) throw new Fault('VIEW_NOT_FOUND', unknown(`view ${view}`))
  return { view }
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
    message: `/rules/${at}: prices of API collections are not built yet`,
  })
}
