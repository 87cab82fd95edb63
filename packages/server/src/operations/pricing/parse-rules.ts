import { limits } from '@tollbase/contract/limits'
import { priceModels, ruleMembers } from '@tollbase/contract/price-models'
import type { Rule } from '@tollbase/contract/pricing'
import type { Static } from 'typebox'
import { Fault, makeInvalidFault } from '../../base/fault.ts'
import type { Catalog } from '../../model/catalog.ts'
import type { PriceRule } from '../../model/definitions.ts'
import { parseFieldPath } from '../../query/field-path.ts'
import type { Target } from '../../services/pricing/freed-targets.ts'

type SentRule = Static<typeof Rule>

/** The fields that name a rule. */
type RuleName = {
  readonly target: Readonly<Record<string, string>>
  readonly operation: string
  readonly model: string
  readonly field?: string | undefined
  readonly unit?: string | undefined
  readonly hours?: number | undefined
}

/** Checks rules as they were sent under a member of the body; 400 names the rule, 404 a target that is not there. */
export function parseRules(
  catalog: Catalog,
  sent: readonly SentRule[],
  pointer: '/rules' | '/set',
): readonly PriceRule[] {
  const names = new Set<string>()
  return sent.map((one, index) => {
    const at = `${pointer}/${index}`
    const rule = parseRule(catalog, one, at)
    const name = formatRuleName(rule)
    if (names.has(name)) throw makeInvalidFault(at, `says again what another rule says: ${name}`)
    names.add(name)
    return rule
  })
}

/** Refuses rules of one target that contradict each other. */
export function refuseContradictions(rules: readonly PriceRule[]): void {
  const amounts = new Map(rules.map((rule) => [formatRuleName(rule), BigInt(rule.amount ?? 0)]))
  for (const rule of rules) {
    if (rule.model !== 'minimum') continue
    const minimum = BigInt(rule.amount ?? 0)
    const maximum = amounts.get(formatRuleName({ ...rule, model: 'maximum' }))
    if (maximum !== undefined && minimum > maximum)
      throw makeInvalidFault(
        '',
        `would make the ${formatRuleName(rule)}, which is ${minimum}, larger than the maximum, ${maximum}`,
      )
  }
}

/** Formats the name of a rule, which no two rules share. A row and a record are one thing under two names. */
export function formatRuleName({ target, operation, model, ...more }: RuleName): string {
  const [[kind, name] = []] = Object.entries(target)
  const counted = model === 'per_record' ? 'per_row' : model
  const { field, unit, hours } = more
  const which = [
    ...(field === undefined ? [] : [` of ${field}`]),
    ...(unit === undefined ? [] : [` of ${unit}s`]),
    ...(hours === undefined ? [] : [` for ${hours} hours`]),
  ]
  return `${kind} ${name}, ${operation} ${counted}${which.join('')}`
}

function parseRule(catalog: Catalog, rule: SentRule, at: string): PriceRule {
  const target = parseTarget(catalog, rule.target, at)
  const { operation, model } = rule
  if (!('collection' in target) && operation === 'write')
    throw makeInvalidFault(
      `${at}/operation`,
      `must be read: nobody writes to a ${Object.keys(target).join()}`,
    )
  const operations: readonly string[] = priceModels[model].operations
  if (!operations.includes(operation))
    throw makeInvalidFault(`${at}/model`, `is not one for a ${operation}`)
  return { target, operation, model, ...parseMembers(rule, at) }
}

/** Parses the members that the model needs, and those that it may have; 400 for another one. */
function parseMembers(rule: SentRule, at: string): Partial<PriceRule> {
  const { needs, may } = priceModels[rule.model]
  const needed: readonly string[] = needs
  const allowed: readonly string[] = rule.operation === 'read' ? [...needs, ...may] : needs
  for (const member of ruleMembers) {
    const isGiven = rule[member] !== undefined
    if (needed.includes(member) && !isGiven) throw makeInvalidFault(`${at}/${member}`, 'is needed')
    if (isGiven && !allowed.includes(member))
      throw makeInvalidFault(`${at}/${member}`, `is not for ${rule.operation} ${rule.model}`)
  }
  const { amount, field, model, tiers, ...counted } = rule
  if (counted.period !== undefined && model !== 'free_quota' && tiers === undefined)
    throw makeInvalidFault(`${at}/period`, 'is for prices with tiers')
  return {
    ...(amount !== undefined && { amount: parseAmount(amount, `${at}/amount`, model) }),
    ...(field !== undefined && { field: parseFieldPath(field, `${at}/field`).join('.') }),
    ...(tiers !== undefined && { tiers: parseTiers(tiers, amount, `${at}/tiers`) }),
    ...(counted.period !== undefined && { period: counted.period }),
    ...(counted.unit !== undefined && { unit: counted.unit }),
    ...(counted.quantity !== undefined && { quantity: counted.quantity }),
    ...(counted.hours !== undefined && { hours: counted.hours }),
  }
}

/** A quote is the most that anybody pays, so who has bought more never pays more for each. */
export function parseTiers(
  tiers: NonNullable<SentRule['tiers']>,
  base: SentRule['amount'],
  at: string,
): NonNullable<PriceRule['tiers']> {
  let before = { above: 0, amount: BigInt(base ?? 0) }
  return tiers.map((tier, index) => {
    const { above } = tier
    if (above <= before.above)
      throw makeInvalidFault(`${at}/${index}/above`, `must be more than ${before.above}`)
    const amount = BigInt(tier.amount)
    if (amount > before.amount)
      throw makeInvalidFault(
        `${at}/${index}/amount`,
        `must be at most ${before.amount}, the amount before it`,
      )
    before = { above, amount }
    return { above, amount: String(amount) }
  })
}

/** Collections and views share their names; an API collection is named as such, however it was sent. */
function parseTarget(
  { byName, viewsByName, queries }: Catalog,
  sent: Readonly<Record<string, string>>,
  at: string,
): Target {
  const { view, query, api_collection, collection = api_collection } = sent
  const unknown = (what: string) => ({ message: `${at}/target: there is no ${what}` })
  if (collection !== undefined) {
    const isApi = byName.get(collection)?.collection_type === 'api'
    if (isApi) return { api_collection: collection }
    if (byName.has(collection) && api_collection === undefined) return { collection }
    throw new Fault('COLLECTION_NOT_FOUND', unknown(`collection ${collection}`))
  }
  if (query !== undefined) {
    if (queries.has(query)) return { query }
    throw new Fault('QUERY_NOT_FOUND', unknown(`query ${query}`))
  }
  if (view === undefined || !viewsByName.has(view))
    throw new Fault('VIEW_NOT_FOUND', unknown(`view ${view}`))
  return { view }
}

function parseAmount(amount: string | number, at: string, model: string): string {
  if (BigInt(amount) > limits.amountAtomicMax)
    throw makeInvalidFault(at, `must be at most ${limits.amountAtomicMax}`)
  // Either would give everything away by another name.
  if ((model === 'maximum' || model === 'time_pass') && BigInt(amount) === 0n)
    throw makeInvalidFault(at, 'must be at least 1')
  return String(amount)
}
