import { requirePresent } from '../../base/assert.ts'
import { awaitWithin } from '../../base/await-within.ts'
import { Fault, makeInvalidFault } from '../../base/fault.ts'
import type { World } from '../../base/world.ts'
import { findReadableById } from '../../model/catalog.ts'
import type { StoredView, ViewSource } from '../../model/definitions.ts'
import { getPlaintextPositionTable, isQueryable } from '../../model/encrypted-collections.ts'
import { findGrant, findGrantedPrice } from '../../model/grants.ts'
import type { Readable } from '../../model/readable.ts'
import { anyFields } from '../../model/view-plan.ts'
import { viewStateTable } from '../../projections/view-state.ts'
import type { ListRow } from '../../query/compile-list.ts'
import { parseFieldPath } from '../../query/field-path.ts'
import type { UsedFields } from '../../query/join.ts'
import type { Sort } from '../../query/list-query.ts'
import type { PositionRow } from '../../query/position.ts'
import { canReadFree, refuseUnoffered } from '../access/find-sources.ts'
import type { Tenant } from '../applications/tenants.ts'
import type { Call } from '../call.ts'

/** A source of another application behind a view, authorized like the sources that a query names. */
export type GrantedSource = {
  readonly model: string
  readonly kind: 'derived'
  readonly used: UsedFields
  readonly tenant: Tenant
  readonly readable: Readable
  readonly free: boolean
  /** The application whose view it is. */
  readonly grantee: string
  readonly dataSets: ReadonlyMap<string, never>
}

/**
 * Lists the sources that reading a view uses besides the view: every source of another application, which its owner
 * must still grant and which charges every reader but its owner. A collection has none.
 */
export async function listViewSources(
  call: Call<'world' | 'tenants'>,
  tenant: Tenant,
  { readable, history }: { readable: Readable; history: boolean },
): Promise<readonly GrantedSource[]> {
  if (readable.kind === 'collection') return []
  const { view } = readable
  if (history)
    throw makeInvalidFault(
      '/include_history',
      `is about records; the view ${view.name} keeps no old rows`,
    )
  if (!tenant.data.isFilled(view))
    throw new Fault('VIEW_NOT_READY', {
      message: `The view ${view.name} is being filled for the first time; try again shortly.`,
      retryAfterSeconds: 1,
    })
  if (view.refresh_mode === 'live') {
    tenant.data.waiting.noteRead(view)
    await catchUp(call.service.world, tenant, view)
  }
  return listForeignSources(call, tenant, view)
}

/** The time that a reader waits for a live view to catch up; the position in the answer says how old its rows are. */
const patienceMs = 1_000

type CatchingUp = {
  readonly data: { readonly waiting: Pick<Tenant['data']['waiting'], 'isBehind'> }
  readonly chain: Pick<Tenant['chain'], 'whenCaughtUp'>
}

/** Waits until a live view has caught up with the tables. */
export async function catchUp(
  world: World,
  { data, chain }: CatchingUp,
  view: { readonly id: string },
): Promise<void> {
  if (data.waiting.isBehind(view))
    await awaitWithin(chain.whenCaughtUp(), { world, ms: patienceMs, otherwise: undefined })
}

/**
 * Returns whether the caller may know how many rows a view has: only if no other application would charge the caller
 * for reading it. Otherwise anybody could define views with different conditions, and learn for nothing how many
 * records match each of them.
 */
export async function isCountKnown(
  call: Call<'tenants'>,
  tenant: Tenant,
  view: StoredView,
): Promise<boolean> {
  try {
    const sources = await listForeignSources(call, tenant, view)
    return sources.every(
      ({ free, tenant: owner, readable, grantee }) =>
        free || findGrantedPrice(owner.data.catalog, readable, grantee) === 0n,
    )
  } catch (error) {
    if (error instanceof Fault) return false
    throw error
  }
}

/**
 * Lists the sources of other applications, also behind the views that this one is made of; 403 where one of either is
 * gone.
 */
async function listForeignSources(
  call: Call<'tenants'>,
  tenant: Tenant,
  view: StoredView,
): Promise<readonly GrantedSource[]> {
  const sources: GrantedSource[] = []
  for (const source of view.sources) {
    const isForeign = source.app !== view.app
    if (isForeign) sources.push(await requireGrantedSource(call, tenant, { view, source }))
    const owner = isForeign ? await call.service.tenants.load(source.app) : tenant
    const readable = findReadableById(owner.data.catalog, source.id)
    // Nobody knows any more whose grants it needed, and for how much.
    if (readable === undefined) throw makeGrantFault(view)
    if (readable.kind === 'view')
      sources.push(...(await listForeignSources(call, owner, readable.view)))
  }
  return sources
}

/** Returns a source of another application; 403 where it is gone or its owner does not grant it (any more). */
async function requireGrantedSource(
  call: Call<'tenants'>,
  tenant: Tenant,
  { view, source }: { view: StoredView; source: ViewSource },
): Promise<GrantedSource> {
  const { model, app } = source
  const refusal = makeGrantFault(view)
  if (call.service.tenants.system.applications.get(app)?.status !== 'active') throw refusal
  const owner = await call.service.tenants.load(app)
  const { catalog } = owner.data
  const readable = findReadableById(catalog, source.id)
  if (readable === undefined || findGrant(catalog, readable, view.app) === undefined) throw refusal
  const used = getUsedFields(tenant, { view, source })
  // A field that its owner does not offer (any more) cannot be had through a view either.
  refuseUnoffered(readable, used, false)
  const free = canReadFree(call.caller, owner)
  // A grant without an amount costs the derive price, and its owner may allow no derivation any more.
  if (!free && findGrantedPrice(catalog, readable, view.app) === undefined) throw refusal
  return {
    model,
    kind: 'derived',
    used,
    tenant: owner,
    readable,
    free,
    grantee: view.app,
    dataSets: new Map<string, never>(),
  }
}

/** The refusal does not name the source, which may be private. */
function makeGrantFault({ app, name }: StoredView): Fault {
  return new Fault('GRANT_NEEDED', {
    message: `A source of the view ${app}::${name} is gone, or its owner does not grant its use any more`,
    details: { view: `${app}::${name}` },
  })
}

/** Returns the fields that a view uses of a source that its definition names. */
function getUsedFields(
  tenant: Tenant,
  { view, source }: { view: StoredView; source: ViewSource },
): UsedFields {
  const { plan } = requirePresent(tenant.data.catalog.views.get(view.id), 'the view')
  return plan?.uses.get(source.model) ?? anyFields
}

/**
 * Returns where an answer's position is stored, if views or plaintext tables of the first source's application are
 * among its sources: an answer is no newer than its oldest part.
 */
export function findPositionRow(
  sources: readonly {
    readonly tenant: Tenant
    readonly readable: Readable
    readonly grantee?: string
  }[],
): PositionRow | undefined {
  const [first] = sources
  const own = sources.filter(
    ({ tenant, grantee }) => grantee === undefined && tenant === first?.tenant,
  )
  const ids = own.flatMap(({ readable: { kind, number } }) => (kind === 'view' ? [number] : []))
  const singles = own.flatMap(({ readable }) =>
    readable.kind === 'collection' && isQueryable(readable)
      ? [getPlaintextPositionTable(readable)]
      : [],
  )
  if (ids.length + singles.length === 0) return undefined
  return { table: viewStateTable, ids: [...new Set(ids)], singles: [...new Set(singles)] }
}

/** Returns the default order of a view's rows, which its definition states. */
export function findViewSort(readable: Readable): Sort | undefined {
  const order = readable.kind === 'view' ? readable.plan?.defaultOrder : undefined
  const [first, ...others] = (order ?? []).map(({ column, descending, nulls }) => ({
    path: parseFieldPath(column, ''),
    descending,
    nulls,
  }))
  return first && { ...first, next: others }
}

/** Formats the member of the reply that says how far a view is behind; empty for a collection. */
export function formatLag(row: Pick<ListRow, 'lag' | 'refreshed_at'>, now: number): string {
  const { lag, refreshed_at: at = 0n } = row
  if (lag === undefined) return ''
  const ms = lag > 0n ? Math.max(0, now - Number(at)) : 0
  return `,"lag":{"blocks":${lag},"ms":${ms}}`
}
