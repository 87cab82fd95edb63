import { Fault } from '../../base/fault.ts'
import type { Resolve, SourceUse } from '../../query/join.ts'
import type { Call } from '../call.ts'
import { readableCollection, refuseUnoffered } from '../collections/visibility.ts'
import type { CollectionState } from '../tenancy/definitions.ts'
import { derivePriceOf } from '../tenancy/price.ts'
import { parseRoot } from '../tenancy/root.ts'
import type { Tenant } from '../tenancy/tenancy.ts'

/** One use of a collection that the caller may make of it. */
export type JudgedSource = Pick<SourceUse, 'model' | 'kind'> & {
  readonly tenant: Tenant
  readonly collection: CollectionState
  /** The caller pays nothing for it: it is his own. */
  readonly free: boolean
}

export type SourceRequest = SourceUse & {
  /** Every version of its records is asked for. */
  readonly history: boolean
}

/**
 * Judges each source by itself, in its order: 404 or 401 where the caller may not know of it, 403 where its owner does
 * not offer a field, or does not let others derive. `home` is the application of models without one.
 */
export async function judgeSources(
  call: Call,
  requests: readonly SourceRequest[],
  home: string,
): Promise<JudgedSource[]> {
  const judged: JudgedSource[] = []
  for (const request of requests) {
    const { model, kind, used, history } = request
    const { tenant, collection, free } = await readableSource(call, model, home)
    if (!free) {
      refuseUnoffered(collection, used, history)
      if (kind === 'derived' && derivePriceOf(tenant.data.catalog, collection) === undefined)
        throw derivationDenied({ tenant, collection })
    }
    judged.push({ model, kind, tenant, collection, free })
  }
  return judged
}

/** The collection that a model names, if the caller may read it, free or by paying; 404, 401 or 403 if not. */
export async function readableSource(
  call: Call,
  model: string,
  home: string,
): Promise<Omit<JudgedSource, 'model' | 'kind'>> {
  const { app, name } = parseRoot(model.includes('::') ? model : `${home}::${model}`)
  const tenant = await call.service.tenancy.tenant(app)
  return { tenant, ...readableCollection(call, tenant, name) }
}

/** The tables of judged sources, and of nothing else. */
export function tablesOf(sources: readonly JudgedSource[]): Resolve {
  const tables = new Map(
    sources.map(({ model, tenant, collection }) => [
      model,
      { schema: tenant.schema, table: collection.table },
    ]),
  )
  return (model) => tables.get(model)
}

export function derivationDenied({
  tenant,
  collection,
}: Pick<JudgedSource, 'tenant' | 'collection'>): Fault {
  const name = `${tenant.application.app_id}::${collection.name}`
  return new Fault('DERIVATION_DENIED', {
    message: `The owner of ${name} does not allow others to join, aggregate or combine it`,
    details: { collection: name },
  })
}
