import { present } from '../../base/assert.ts'
import { within } from '../../base/await-within.ts'
import { Fault, invalid } from '../../base/fault.ts'
import type { World } from '../../base/world.ts'
import { readableOfId } from '../../model/catalog.ts'
import type { CollectionState, StoredView, ViewSource } from '../../model/definitions.ts'
import { grantedPriceOf, grantOf } from '../../model/grants.ts'
import { viewStateTable } from '../../projections/view-state.ts'
import type { ListRow } from '../../query/compile-list.ts'
import { parseFieldPath } from '../../query/field-path.ts'
import type { UsedFields } from '../../query/join.ts'
import type { Sort } from '../../query/list-query.ts'
import type { PositionRow } from '../../query/position.ts'
import { readsFreely, refuseUnoffered } from '../access/authorize-collections.ts'
import type { Tenant } from '../applications/tenancy.ts'
import type { Call } from '../call.ts'

/** A source of another application behind a view, judged as those that a query names are. */
export type GrantedSource = {
  readonly model: string
  readonly kind: 'derived'
  readonly used: UsedFields
  readonly tenant: Tenant
  readonly collection: CollectionState
  readonly free: boolean
  /** The application whose view it is. */
  readonly grantee: string
  readonly dataSets: ReadonlyMap<string, never>
}

/**
 * What reading a view uses besides it: every source of another application, which its owner must still grant and
 * which charges the reader, whoever he is, unless it is his own. Of what is no view there is nothing.
 */
export async function sourcesOfView(
  call: Call,
  tenant: Tenant,
  { collection, history }: { collection: CollectionState; history: boolean },
): Promise<readonly GrantedSource[]> {
  const { view } = collection
  if (view === undefined) return []
  if (history)
    throw invalid('/include_history', `is about records; the view ${view.name} keeps no old rows`)
  if (!tenant.data.isFilled(view))
    throw new Fault('VIEW_NOT_READY', {
      message: `The view ${view.name} is being filled for the first time; try again shortly.`,
      retryAfterSeconds: 1,
    })
  if (view.refresh_mode === 'live') {
    tenant.data.waiting.noteRead(view)
    await catchUp(call.service.world, tenant, view)
  }
  return foreignSources(call, tenant, view)
}

/** Longer than this a reader does not wait for rows to be brought on; the position in his answer says how old they are. */
const patienceMs = 1_000

type Following = {
  readonly data: { readonly waiting: Pick<Tenant['data']['waiting'], 'isBehind'> }
  readonly chain: Pick<Tenant['chain'], 'whenCaughtUp'>
}

/** Has a live view take in what the tables have. */
export async function catchUp(
  world: World,
  { data, chain }: Following,
  view: { readonly id: string },
): Promise<void> {
  if (data.waiting.isBehind(view))
    await within(chain.whenCaughtUp(), { world, ms: patienceMs, otherwise: undefined })
}

/**
 * Whether the caller may know how many rows a view has: no other application would ask him for anything if he read it.
 * Else each condition of a definition were a free question of how many records there are.
 */
export async function isCountKnown(call: Call, tenant: Tenant, view: StoredView): Promise<boolean> {
  try {
    const sources = await foreignSources(call, tenant, view)
    return sources.every(
      ({ free, tenant: owner, collection, grantee }) =>
        free || grantedPriceOf(owner.data.catalog, collection, grantee) === 0n,
    )
  } catch (error) {
    if (error instanceof Fault) return false
    throw error
  }
}

async function foreignSources(
  call: Call,
  tenant: Tenant,
  view: StoredView,
): Promise<readonly GrantedSource[]> {
  const sources: GrantedSource[] = []
  for (const source of view.sources) {
    const isForeign = source.app !== view.app
    if (isForeign) sources.push(await grantedSource(call, tenant, { view, source }))
    const owner = isForeign ? await call.service.tenancy.tenant(source.app) : tenant
    const inner = owner.data.catalog.viewsById.get(source.id)?.view
    if (inner !== undefined) sources.push(...(await foreignSources(call, owner, inner)))
  }
  return sources
}

/** A source of another application, or 403 where it is gone or its owner does not grant it (any more). */
async function grantedSource(
  call: Call,
  tenant: Tenant,
  { view, source }: { view: StoredView; source: ViewSource },
): Promise<GrantedSource> {
  const { model, app } = source
  // Its name is not told: it may be private.
  const refusal = new Fault('GRANT_NEEDED', {
    message: `A source of the view ${view.app}::${view.name} is gone, or its owner does not grant its use any more`,
    details: { view: `${view.app}::${view.name}` },
  })
  if (call.service.tenancy.system.applications.get(app)?.status !== 'active') throw refusal
  const owner = await call.service.tenancy.tenant(app)
  const { catalog } = owner.data
  const collection = readableOfId(catalog, source.id)
  if (collection === undefined || grantOf(catalog, collection, view.app) === undefined)
    throw refusal
  const used = usedFields(tenant, { view, source })
  // What its owner does not offer (any more) is not had through a view either.
  refuseUnoffered(collection, used, false)
  const free = readsFreely(call, owner)
  // A grant of no amount is worth what deriving costs, which its owner may have come to deny.
  if (!free && grantedPriceOf(catalog, collection, view.app) === undefined) throw refusal
  return {
    model,
    kind: 'derived',
    used,
    tenant: owner,
    collection,
    free,
    grantee: view.app,
    dataSets: new Map<string, never>(),
  }
}

/** What a view uses of a source that its definition names. */
function usedFields(
  tenant: Tenant,
  { view, source }: { view: StoredView; source: ViewSource },
): UsedFields {
  const { plan } = present(tenant.data.catalog.views.get(view.id), 'the view')
  return plan?.uses.get(source.model) ?? anything
}

/** Of a definition that cannot be read any more. */
const anything: UsedFields = { filter: ['*'], sort: ['*'], select: 'all' }

/**
 * Where an answer's position stands, if views of the first source's application are among its sources: with what is
 * fresher beside it, an answer is no newer than its oldest part.
 */
export function positionOf(
  sources: readonly {
    readonly tenant: Tenant
    readonly collection: CollectionState
    readonly grantee?: string
  }[],
): PositionRow | undefined {
  const [first] = sources
  const ids = sources.flatMap(({ tenant, collection: { view }, grantee }) =>
    view !== undefined && grantee === undefined && tenant === first?.tenant ? [view.number] : [],
  )
  return ids.length === 0 ? undefined : { table: viewStateTable, ids: [...new Set(ids)] }
}

/** The order of a view's rows where a reader asks for none: that of its definition. */
export function sortOfView({ data }: Tenant, { view }: CollectionState): Sort | undefined {
  const order = view && data.catalog.views.get(view.id)?.plan?.defaultOrder
  const [first, ...others] = (order ?? []).map(({ column, descending, nulls }) => ({
    path: parseFieldPath(column, ''),
    descending,
    nulls,
  }))
  return first && { ...first, next: others }
}

/** A member of the reply that says how far a view is behind; nothing of what is no view. */
export function lagText(row: Pick<ListRow, 'lag' | 'refreshed_at'>, now: number): string {
  const { lag, refreshed_at: at = 0n } = row
  if (lag === undefined) return ''
  const ms = lag > 0n ? Math.max(0, now - Number(at)) : 0
  return `,"lag":{"blocks":${lag},"ms":${ms}}`
}
