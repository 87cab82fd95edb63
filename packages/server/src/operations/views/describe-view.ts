import type { ViewInfo, ViewRefreshMetadata } from '@tollbase/contract/views'
import type { Static } from 'typebox'
import { Fault } from '../../base/fault.ts'
import { isRecord } from '../../base/is-record.ts'
import type { Catalog } from '../../model/catalog.ts'
import type { StoredView } from '../../model/definitions.ts'
import { getReadPrice, isFree } from '../../model/find-price.ts'
import type { Price } from '../../model/policy.ts'
import { isOpen, resolveReadLevel } from '../../model/read-level.ts'
import type { Collection, View } from '../../model/readable.ts'
import { readProgress, type ViewProgress } from '../../projections/view-state.ts'
import type { Tenant, Tenants } from '../../services/applications/tenants.ts'
import type { Call, Uses } from '../../services/call.ts'
import { makeFreeTurn } from '../../services/reading/query-turn.ts'
import { makeReader } from '../../services/reading/run-query.ts'
import { catchUp, isCountKnown } from '../../services/reading/view-sources.ts'
import { checkGrants } from '../../services/views/build-view.ts'
import { countLiveBelow, countRows, findNewestBelow } from '../../services/views/view-store.ts'
import { getRowsName } from '../../views/view-rows.ts'

type Info = Static<typeof ViewInfo>
type Metadata = Static<typeof ViewRefreshMetadata>

/** The parts of the service by which a view is described. */
export type DescribeParts = 'world' | 'database' | 'tenants' | 'queryRunner'

/** Describes all views of an application, each with its pending replacement. */
export async function describeViews(call: Call<DescribeParts>, tenant: Tenant): Promise<Info[]> {
  const { service } = call
  const views = [...tenant.data.catalog.views.values()]
  await Promise.all(views.map(({ view }) => catchUp(service.world, tenant, view)))
  const progress = await readProgress(service.database, tenant.schema)
  const counting = { isLate: false }
  const infos: Info[] = []
  for (const state of tenant.data.catalog.viewsByName.values())
    infos.push(await describeState({ call, tenant, progress, counting }, state))
  return infos
}

export async function describeView(
  call: Call<DescribeParts>,
  tenant: Tenant,
  state: View,
): Promise<Info> {
  const { service } = call
  await catchUp(service.world, tenant, state.view)
  const progress = await readProgress(service.database, tenant.schema)
  return describeState({ call, tenant, progress, counting: { isLate: false } }, state)
}

type DescribedSite = {
  /** Set once the counts of a view took too long: those of others are not waited for. */
  readonly counting: { isLate: boolean }
  readonly call: Call<DescribeParts>
  readonly tenant: Tenant
  readonly progress: ReadonlyMap<string, ViewProgress>
}

async function describeState(site: DescribedSite, state: View): Promise<Info> {
  const { call, tenant, progress } = site
  const { view } = state
  const { catalog } = tenant.data
  const refusal = await findRefusal(call.service.tenants, tenant, view)
  const now = progress.get(view.id)
  const price = getReadPrice(catalog, state)
  const warning = findWarning(catalog, state, price)
  const next = [...catalog.views.values()].find((one) => one.view.replaces === view.id)
  return {
    name: view.name,
    source_collections: [...view.source_collections],
    query: view.query,
    created_at: view.created_at,
    refresh_mode: view.refresh_mode,
    refresh_metadata: await buildMetadata(site, state, { now, isGranted: refusal === undefined }),
    variables: view.variables,
    description: view.description,
    ...describeStatus(now, refusal),
    ...(next !== undefined && {
      replacement: describeStatus(progress.get(next.view.id), undefined),
    }),
    access_policy: describePolicy(catalog, state),
    price: {
      per_access: String(price.perAccess),
      per_row: String(price.perRow),
      per_kb: String(price.perKb),
    },
    ...(warning !== undefined && { _warning: warning }),
  }
}

/** Returns the policy as sent, with the read level in force where the owner left that to the sources. */
function describePolicy(catalog: Catalog, state: View): unknown {
  const { policy, access_policy: sent } = state
  if (policy.read !== undefined) return sent
  return { ...(isRecord(sent) ? sent : {}), read: resolveReadLevel(catalog, state) }
}

const unknownPolicy =
  'access_policy has a shape that is not understood; the view is treated as private'

const closedThoughPriced =
  'strangers cannot buy the view: a source of it is not open to them; say public: true to publish it'

/** Returns the effect of the policy that its owner may not expect. */
function findWarning(catalog: Catalog, state: View, price: Price): string | undefined {
  if (state.policy.unknownShape) return unknownPolicy
  const isLeftToSources = state.policy.read === undefined
  return isLeftToSources && !isFree(price) && !isOpen(catalog, state)
    ? closedThoughPriced
    : undefined
}

function describeStatus(now: ViewProgress | undefined, refusal: string | undefined) {
  if (refusal !== undefined) return { status: 'stale' as const, stale_reason: refusal }
  const { status = 'building', reason = null } = now ?? {}
  return { status, ...(status === 'stale' && { stale_reason: reason ?? 'unknown' }) }
}

/** Returns why its sources may not be used any more; undefined where they may. */
async function findRefusal(
  tenants: Tenants,
  tenant: Tenant,
  view: StoredView,
): Promise<string | undefined> {
  try {
    await checkGrants({ tenantOf: (app) => tenants.load(app) }, tenant, view)
    return undefined
  } catch (error) {
    if (error instanceof Fault) return error.message
    throw error
  }
}

/**
 * Returns the progress of the view. It tells nothing about sources that another application does not grant (any
 * more), and no exact counts over records that another application sells: otherwise each condition of a definition
 * would be a free question of how many records there are.
 */
async function buildMetadata(
  site: DescribedSite,
  state: View,
  { now, isGranted }: { now: ViewProgress | undefined; isGranted: boolean },
): Promise<Metadata> {
  const { call, tenant } = site
  const { service } = call
  const { view } = state
  const refreshed = now?.refreshedAt
  const isTold = now !== undefined && refreshed !== undefined && isGranted
  const last = isTold ? await findLastSource(service, tenant, { view, now }) : undefined
  const isCounted = isTold && (await isCountKnown(call, tenant, view))
  const counts = isCounted ? await countInTime(site, { view, now }) : undefined
  return {
    last_processed_block_height: last === undefined ? 0 : (now?.height ?? 0),
    last_processed_sequence: last === undefined ? 0 : (now?.sequence ?? 0),
    last_processed_timestamp: last?.time ?? view.created_at,
    last_processed_tx_id: last?.transaction ?? null,
    last_refresh_timestamp:
      refreshed === undefined ? view.created_at : new Date(refreshed).toISOString(),
    total_source_records: counts?.source ?? 0,
    total_view_records: counts?.view ?? 0,
    ...(isTold && counts === undefined && { counts_hidden: true }),
  }
}

/** Counts as far as there is time: a view is described, though its counts wait for others, or take too long. */
async function countInTime(
  { call, tenant, counting }: DescribedSite,
  counted: { readonly view: StoredView; readonly now: ViewProgress },
) {
  if (counting.isLate) return undefined
  try {
    return await countRecords(call, tenant, counted)
  } catch (error) {
    if (!(error instanceof Fault && [429, 503].includes(error.status))) throw error
    counting.isLate = true
    return undefined
  }
}

/** Counts the records that were live in its sources at its position, and its rows. */
async function countRecords(
  call: Call<DescribeParts>,
  tenant: Tenant,
  { view, now }: { view: StoredView; now: ViewProgress },
) {
  const { service } = call
  const turn = makeFreeTurn(call, tenant.application.app_id)
  const database = makeReader(service.queryRunner, turn)
  let source = 0
  for (const { owner, collection, below } of await listSourcesBelow(service.tenants, tenant, {
    view,
    now,
  }))
    source += await countLiveBelow(database, owner.schema, { ...collection, below })
  return { source, view: await countRows(database, tenant.schema, getRowsName(view.number)) }
}

type SourceBelow = {
  readonly owner: Tenant
  readonly collection: Collection
  readonly below: number
}

/** Lists the collections that the view reads, each once, and the position up to which it has counted each. */
async function listSourcesBelow(
  tenants: Tenants,
  tenant: Tenant,
  { view, now }: { view: StoredView; now: ViewProgress },
): Promise<readonly SourceBelow[]> {
  const sources = new Map<string, SourceBelow>()
  for (const { app, id } of view.reads) {
    const owner = app === view.app ? tenant : await tenants.load(app)
    const collection = owner.data.catalog.byId.get(id)
    const below = app === view.app ? now.leaf : (now.positions[app] ?? 0)
    if (collection !== undefined) sources.set(id, { owner, collection, below })
  }
  return [...sources.values()]
}

/** Returns the newest record that the view has counted, from its own application where it reads any of that. */
async function findLastSource(
  service: Uses<'database' | 'tenants'>,
  tenant: Tenant,
  { view, now }: { view: StoredView; now: ViewProgress },
): Promise<{ time: string; transaction: string } | undefined> {
  const sources = await listSourcesBelow(service.tenants, tenant, { view, now })
  const own = sources.filter(({ owner }) => owner === tenant)
  let newest: { leaf: bigint; height: bigint; sequence: number; owner: Tenant } | undefined
  for (const { owner, collection, below } of own.length > 0 ? own : sources) {
    const row = await findNewestBelow(service.database, owner.schema, { ...collection, below })
    if (row !== undefined && (newest === undefined || row.leaf > newest.leaf))
      newest = { ...row, owner }
  }
  const block = newest && (await newest.owner.chain.readOutline(Number(newest.height)))
  if (newest === undefined || block === undefined) return undefined
  return {
    time: new Date(block.time).toISOString(),
    transaction: `0x${block.leafHash(newest.sequence).toString('hex')}`,
  }
}
