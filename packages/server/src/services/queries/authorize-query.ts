import { Fault } from '../../base/fault.ts'
import { parseRoot } from '../../model/parse-root.ts'
import { derivePriceOf } from '../../model/price.ts'
import type { SourceUse } from '../../query/join.ts'
import { mayRead } from '../access/access.ts'
import { readableOf } from '../access/authorize-collections.ts'
import type { Tenant } from '../applications/tenancy.ts'
import type { Call } from '../call.ts'
import { findDataSets } from '../data-sets/require-data-sets.ts'
import { derivationDenied, type JudgedSource, judgeSources } from '../reading/authorize-sources.ts'
import { sourcesOfView } from '../reading/view-sources.ts'

export type JudgedUses = {
  /** In the order of the uses, what is behind views last. */
  readonly sources: readonly JudgedSource[]
  /** Those that charge for themselves, whatever the query costs: of other applications. */
  readonly foreign: readonly JudgedSource[]
}

/**
 * The sources of a query for whoever asks it. By publishing it its owner has offered what it uses of his own. Of others'
 * sources each is judged for the caller, as if he asked it himself, and its owner must allow derivation: nobody sells
 * another's records under a name of his own without that.
 */
export async function judgeUses(
  call: Call,
  tenant: Tenant,
  uses: readonly SourceUse[],
): Promise<JudgedUses> {
  const home = tenant.application.app_id
  const free = mayRead(call.caller, tenant.application)
  const sources: JudgedSource[] = []
  const behind: JudgedSource[] = []
  for (const use of uses) {
    const { app, name } = parseRoot(use.model.includes('::') ? use.model : `${home}::${use.model}`)
    if (app !== home) {
      const [judged, ...inner] = await judgeSources(call, [{ ...use, history: false }], home)
      if (judged === undefined) throw new Error('a source was not judged')
      const { catalog } = judged.tenant.data
      if (!judged.free && derivePriceOf(catalog, judged.collection) === undefined)
        throw derivationDenied(use.model)
      sources.push(judged)
      behind.push(...inner)
      continue
    }
    const collection = readableOf(tenant, name)
    const dataSets = findDataSets(use.dataSets, call.service.dataSets, { tenant, mayRead: true })
    const { model, kind, used } = use
    sources.push({ model, kind, used, tenant, collection, free, dataSets })
    behind.push(...(await sourcesOfView(call, tenant, { collection, history: false })))
  }
  const all = [...sources, ...behind]
  const foreign = all.filter((one) => one.tenant.application.app_id !== home)
  return { sources: all, foreign }
}

/** A query without a source would have no position, and nothing to sell. */
export function firstSource(sources: readonly JudgedSource[]): JudgedSource {
  const [first] = sources
  if (first === undefined)
    throw new Fault('VALIDATION_FAILED', { message: '/sql names no collection' })
  return first
}
