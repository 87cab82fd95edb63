import { Fault } from '../../base/fault.ts'
import { findDerivePrice } from '../../model/find-price.ts'
import { parseRoot } from '../../model/parse-root.ts'
import type { SourceUse } from '../../query/join.ts'
import { canRead } from '../access/access.ts'
import { refuseApi, requireCollectionOrView } from '../access/find-sources.ts'
import type { Tenant } from '../applications/tenants.ts'
import type { Call } from '../call.ts'
import { requireDataSets } from '../data-sets/require-data-sets.ts'
import {
  type AuthorizedSource,
  authorizeSources,
  makeDerivationFault,
  type SourceParts,
} from '../reading/authorize-sources.ts'
import { preparePlaintext } from '../reading/plaintext-sources.ts'
import { listViewSources } from '../reading/view-sources.ts'

export type AuthorizedUses = {
  /** The sources in the order of their uses, those behind views last. */
  readonly sources: readonly AuthorizedSource[]
  /** The sources of other applications, which charge for themselves, whatever the query costs. */
  readonly foreign: readonly AuthorizedSource[]
}

/**
 * Authorizes the sources of a query for its caller. By publishing a query its owner has offered its own sources.
 * Each source of others is authorized for the caller as if the caller queried it directly, and its owner must allow
 * derivation: otherwise somebody could sell another's records under a name of their own.
 */
export async function authorizeUses(
  call: Call<SourceParts>,
  tenant: Tenant,
  uses: readonly SourceUse[],
): Promise<AuthorizedUses> {
  const home = tenant.application.app_id
  const free = canRead(call.caller, tenant.application)
  const sources: AuthorizedSource[] = []
  const behind: AuthorizedSource[] = []
  for (const use of uses) {
    const { app, name } = parseRoot(use.model.includes('::') ? use.model : `${home}::${use.model}`)
    const first = sources[0]?.tenant
    if (app !== home) {
      const [authorized, ...inner] = await authorizeSources(call, [{ ...use, history: false }], {
        home,
        first,
      })
      if (authorized === undefined) throw new Error('a source was not judged')
      const { catalog } = authorized.tenant.data
      if (!authorized.free && findDerivePrice(catalog, authorized.readable) === undefined)
        throw makeDerivationFault(use.model)
      sources.push(authorized)
      behind.push(...inner)
      continue
    }
    const collection = requireCollectionOrView(tenant, name)
    refuseApi(tenant, collection)
    const dataSets = requireDataSets(use.dataSets, call.service.dataSets, { tenant, mayRead: true })
    const { model, kind, used } = use
    await preparePlaintext(tenant, collection, { used, opens: false, home: first ?? tenant })
    sources.push({ model, kind, used, tenant, readable: collection, free, dataSets })
    behind.push(...(await listViewSources(call, tenant, { readable: collection, history: false })))
  }
  const all = [...sources, ...behind]
  const foreign = all.filter((one) => one.tenant.application.app_id !== home)
  return { sources: all, foreign }
}

/** A query without a source would have no position, and nothing to sell. */
export function requireFirstSource(sources: readonly AuthorizedSource[]): AuthorizedSource {
  const [first] = sources
  if (first === undefined)
    throw new Fault('VALIDATION_FAILED', { message: '/sql names no collection' })
  return first
}
