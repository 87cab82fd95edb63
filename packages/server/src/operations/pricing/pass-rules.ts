import type { SoldItem } from '@tollbase/verify/sale-details'
import type { Catalog } from '../../model/catalog.ts'
import type { PriceRule } from '../../model/definitions.ts'

/** Finds the rule by which passes for a thing are sold. */
export function findPassRule(
  { pricing }: Catalog,
  asked: { readonly kind: string; readonly name: string },
  hours: number,
): PriceRule | undefined {
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
export function toSoldItem(target: Readonly<Record<string, string>>): SoldItem {
  const { collection, api_collection, view, query } = target
  if (query !== undefined) return { kind: 'query', name: query }
  if (view !== undefined) return { kind: 'view', name: view }
  return { kind: 'collection', name: collection ?? api_collection ?? '' }
}
