import { Fault } from '../../base/fault.ts'
import { getQueriedTable } from '../../model/encrypted-collections.ts'
import { filterUnindexed } from '../../model/filter-unindexed.ts'
import { findDerivePrice, isUnsold } from '../../model/find-price.ts'
import { parseRoot } from '../../model/parse-root.ts'
import type { Readable } from '../../model/readable.ts'
import type { Resolve, Source, SourceUse } from '../../query/join.ts'
import { refuseUnoffered, requireReadableSource } from '../access/find-sources.ts'
import type { Tenant } from '../applications/tenants.ts'
import type { Call } from '../call.ts'
import type { VersionedDataSet } from '../data-sets/operator-data-sets.ts'
import { requireDataSets } from '../data-sets/require-data-sets.ts'
import { preparePlaintext } from './plaintext-sources.ts'
import { listViewSources } from './view-sources.ts'

/** The parts of the service by which the sources of a read are authorized. */
export type SourceParts = 'world' | 'tenants' | 'dataSets'

/** A use of a collection that the caller is authorized for. */
export type AuthorizedSource = Pick<SourceUse, 'model' | 'kind' | 'used'> & {
  readonly tenant: Tenant
  readonly readable: Readable
  /** True where the caller pays nothing for it, as it is the caller's own. */
  readonly free: boolean
  /**
   * For a source behind a view: the application that owns the view, and that needs the grant of the source's owner.
   */
  readonly grantee?: string
  /** The data sets that conditions on it look into. */
  readonly dataSets: ReadonlyMap<string, VersionedDataSet>
}

export type SourceRequest = SourceUse & {
  /** Every version of its records is asked for. */
  readonly history: boolean
  /** The answer is made of records that the service opens, if the collection is encrypted. */
  readonly opens?: boolean
}

/**
 * Authorizes each source by itself, in its order: 404 or 401 where the caller may not know of it, 403 where its
 * owner does not offer a field, or does not let others derive. Sources behind views come last. `home` is the
 * application of models without one; `first` is the application of the first source, where earlier sources of the
 * same answer were authorized before these.
 */
export async function authorizeSources(
  call: Call<SourceParts>,
  requests: readonly SourceRequest[],
  { home, first }: { readonly home: string; readonly first?: Tenant | undefined },
): Promise<AuthorizedSource[]> {
  const authorized: AuthorizedSource[] = []
  const behind: AuthorizedSource[] = []
  for (const request of requests) {
    const { model, kind, used, history } = request
    const { tenant, readable, free } = await requireSource(call, model, home)
    const opens = request.opens === true
    const stating = first ?? authorized[0]?.tenant ?? tenant
    await preparePlaintext(tenant, readable, { used, opens, home: stating })
    if (!free) {
      refuseUnoffered(readable, used, history)
      if (kind === 'derived' && findDerivePrice(tenant.data.catalog, readable) === undefined)
        throw makeDerivationFault(`${tenant.application.app_id}::${readable.name}`)
      refuseUnsold(tenant, readable)
    }
    const dataSets = requireDataSets(request.dataSets, call.service.dataSets, {
      tenant,
      mayRead: free,
    })
    authorized.push({ model, kind, used, tenant, readable, free, dataSets })
    behind.push(...(await listViewSources(call, tenant, { readable, history })))
  }
  return behind.length === 0 ? authorized : [...authorized, ...behind]
}

/**
 * Returns the collection that a model names, if the caller may read it, free or by paying; 404, 401 or 403 if not.
 */
export async function requireSource(
  call: Call<'tenants'>,
  model: string,
  home: string,
): Promise<Pick<AuthorizedSource, 'tenant' | 'readable' | 'free'>> {
  const { app, name } = parseRoot(model.includes('::') ? model : `${home}::${model}`)
  const tenant = await call.service.tenants.load(app)
  const { collection: readable, free } = requireReadableSource(call.caller, tenant, name)
  return { tenant, readable, free }
}

/** Makes a resolver of the tables of authorized sources, and of nothing else. */
export function makeTableResolver(sources: readonly AuthorizedSource[]): Resolve {
  const tables = new Map<string, Source>()
  // A collection may be used several times, each time with other data sets.
  for (const { model, tenant, readable, dataSets } of sources) {
    const others = tables.get(model)?.dataSets
    tables.set(model, {
      schema: tenant.schema,
      table: getQueriedTable(readable),
      dataSets: others === undefined ? dataSets : new Map([...others, ...dataSets]),
      ...getColumns(tenant, readable),
    })
  }
  return (model) => tables.get(model)
}

/** Returns the field columns of a table, and those that conditions may test. */
export function getColumns({ data }: Tenant, readable: Readable) {
  const fieldColumns = data.getFieldColumns(readable)
  return { fieldColumns, filterColumns: filterUnindexed(fieldColumns, readable.indexes) }
}

/** Throws 403 for a view that others cannot buy. */
export function refuseUnsold({ application, data }: Tenant, collection: Readable): void {
  if (!isUnsold(data.catalog, collection)) return
  const name = `${application.app_id}::${collection.name}`
  throw new Fault('DERIVATION_DENIED', {
    message: `${name} is made from data that others may not derive from. It cannot be read until its owner sets a price for it (0 makes it free)`,
    details: { collection: name },
  })
}

/** `name` is app::collection. */
export function makeDerivationFault(name: string): Fault {
  return new Fault('DERIVATION_DENIED', {
    message: `The owner of ${name} does not allow others to join, aggregate or combine it`,
    details: { collection: name },
  })
}
