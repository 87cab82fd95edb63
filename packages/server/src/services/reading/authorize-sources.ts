import { Fault } from '../../base/fault.ts'
import type { CollectionState } from '../../model/definitions.ts'
import { parseRoot } from '../../model/parse-root.ts'
import { derivePriceOf, isUnsold } from '../../model/price.ts'
import type { Resolve, Source, SourceUse } from '../../query/join.ts'
import { readableSource, refuseUnoffered } from '../access/authorize-collections.ts'
import type { Tenant } from '../applications/tenancy.ts'
import type { Call } from '../call.ts'
import type { FoundDataSet } from '../data-sets/operator-data-sets.ts'
import { findDataSets } from '../data-sets/require-data-sets.ts'
import { sourcesOfView } from './view-sources.ts'

/** One use of a collection that the caller may make of it. */
export type JudgedSource = Pick<SourceUse, 'model' | 'kind' | 'used'> & {
  readonly tenant: Tenant
  readonly collection: CollectionState
  /** The caller pays nothing for it: it is his own. */
  readonly free: boolean
  /** Behind a view: the application whose view it is, and which needs its owner's grant. */
  readonly grantee?: string
  /** Those that conditions on it look into. */
  readonly dataSets: ReadonlyMap<string, FoundDataSet>
}

export type SourceRequest = SourceUse & {
  /** Every version of its records is asked for. */
  readonly history: boolean
}

/**
 * Judges each source by itself, in its order: 404 or 401 where the caller may not know of it, 403 where its owner does
 * not offer a field, or does not let others derive. What is behind views comes last. `home` is the application of models without one.
 */
export async function judgeSources(
  call: Call,
  requests: readonly SourceRequest[],
  home: string,
): Promise<JudgedSource[]> {
  const judged: JudgedSource[] = []
  const behind: JudgedSource[] = []
  for (const request of requests) {
    const { model, kind, used, history } = request
    const { tenant, collection, free } = await namedSource(call, model, home)
    if (!free) {
      refuseUnoffered(collection, used, history)
      if (kind === 'derived' && derivePriceOf(tenant.data.catalog, collection) === undefined)
        throw derivationDenied(`${tenant.application.app_id}::${collection.name}`)
      refuseUnsold(tenant, collection)
    }
    const dataSets = findDataSets(request.dataSets, call.service.dataSets, {
      tenant,
      mayRead: free,
    })
    judged.push({ model, kind, used, tenant, collection, free, dataSets })
    if (collection.view !== undefined)
      behind.push(...(await sourcesOfView(call, tenant, { collection, history })))
  }
  return behind.length === 0 ? judged : [...judged, ...behind]
}

/** The collection that a model names, if the caller may read it, free or by paying; 404, 401 or 403 if not. */
export async function namedSource(
  call: Call,
  model: string,
  home: string,
): Promise<Pick<JudgedSource, 'tenant' | 'collection' | 'free'>> {
  const { app, name } = parseRoot(model.includes('::') ? model : `${home}::${model}`)
  const tenant = await call.service.tenancy.tenant(app)
  return { tenant, ...readableSource(call, tenant, name) }
}

/** The tables of judged sources, and of nothing else. */
export function tablesOf(sources: readonly JudgedSource[]): Resolve {
  const tables = new Map<string, Source>()
  // A collection may be used several times, each time with other data sets.
  for (const { model, tenant, collection, dataSets } of sources) {
    const others = tables.get(model)?.dataSets
    tables.set(model, {
      schema: tenant.schema,
      table: collection.table,
      dataSets: others === undefined ? dataSets : new Map([...others, ...dataSets]),
    })
  }
  return (model) => tables.get(model)
}

/** 403 for a view that others cannot buy. */
export function refuseUnsold({ application, data }: Tenant, collection: CollectionState): void {
  if (!isUnsold(data.catalog, collection)) return
  const name = `${application.app_id}::${collection.name}`
  throw new Fault('DERIVATION_DENIED', {
    message: `${name} is made of what others may not derive from, and is not to be had until its owner sets a price for it (one of 0 makes it free)`,
    details: { collection: name },
  })
}

/** `name` is app::collection. */
export function derivationDenied(name: string): Fault {
  return new Fault('DERIVATION_DENIED', {
    message: `The owner of ${name} does not allow others to join, aggregate or combine it`,
    details: { collection: name },
  })
}
