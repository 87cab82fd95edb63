import { limits } from '@tollbase/contract/limits'
import { Fault, makeInvalidFault } from '../../base/fault.ts'
import type { World } from '../../base/world.ts'
import { buildCatalog } from '../../model/catalog.ts'
import type { Definition } from '../../model/definition-entry.ts'
import type { StoredView } from '../../model/definitions.ts'
import { listReplacements, refuseNeeded } from '../../model/dependents.ts'
import { planNewView, type ViewPlan } from '../../model/view-plan.ts'
import { getOutput } from '../../query/tree/query.ts'
import { refuseLapsedCaller } from '../../services/access/lapsed-caller.ts'
import { define } from '../../services/applications/define.ts'
import type { Tenant } from '../../services/applications/tenants.ts'
import type { Call, Uses } from '../../services/call.ts'
import { buildLeadingIndex } from '../../services/collections/leading-index.ts'
import { refuseFreed } from '../../services/pricing/freed-targets.ts'
import { refuseLongView } from '../../services/views/refuse-long-view.ts'
import { readWatermark } from '../../services/views/view-store.ts'
import { findUndecidedWindow } from '../../views/decide-window.ts'
import { type ResolvedView, resolveView, type ViewRequest } from './resolve-view.ts'
import { getVariableField } from './variables.ts'

export type DefinedView = {
  readonly view: StoredView
  /** The place of the group of its entries; undefined where the view existed already. */
  readonly place:
    | { readonly height: number; readonly sequence: number; readonly count: number }
    | undefined
}

/**
 * Writes the definition of a view into the log, after which it waits to be filled. With `replace` the view of that
 * name is read until the new one is whole.
 */
export async function defineView(
  call: Call<'world' | 'database' | 'tenants' | 'queryPlans'>,
  tenant: Tenant,
  sent: ViewRequest,
): Promise<DefinedView> {
  const { service } = call
  refuseTaken(tenant, sent)
  // This comes before the mutex, since it may read other applications' catalogs.
  const first = await resolveView(service.tenants, tenant, keepSettings(tenant, sent))
  return tenant.definitions.run(async () => {
    refuseLapsedCaller(call, tenant.application.app_id, { permission: 'Admin' })
    const { catalog } = tenant.data
    const request = keepSettings(tenant, sent)
    const before = catalog.viewsByName.get(request.name)?.view
    refuseTaken(tenant, request)
    if (before !== undefined && request.ifExists === 'keep')
      return { view: before, place: undefined }
    // An earlier replacement that is not filled yet is given up.
    const given = before === undefined ? [] : listReplacements(catalog, before.id)
    if (before !== undefined)
      refuseNeeded(
        catalog,
        before.name,
        [before, ...given].map(({ id }) => id),
      )
    if (catalog.views.size >= limits.viewsPerApplicationMax)
      throw new Fault('CONFLICT', {
        message: `An application has at most ${limits.viewsPerApplicationMax} views`,
      })
    const read =
      catalog.version === first.version
        ? first
        : await resolveView(service.tenants, tenant, request)
    const view = await buildStoredView(service, tenant, {
      wish: request,
      read,
      replaces: before?.id,
    })
    const plan = await planNewView(view)
    refuseUnreachable(plan, request, sent)
    refuseUndecided(plan, request)
    refuseScattered(plan, request)
    await refuseLongView({ schema: tenant.schema, catalog }, { view, plan })
    refuseUnmaintained(view, plan)
    if (before !== undefined) {
      const views = new Map(catalog.views).set(view.id, { view, plan })
      views.delete(before.id)
      const after = buildCatalog({ ...catalog, views })
      await refuseFreed(call, tenant, { after, confirmed: request.confirmed })
    }
    const definitions = [
      { kind: 'view', id: view.id, body: view } as const,
      ...given.map(({ id }) => ({ kind: 'view', id, body: undefined }) as const),
      ...buildCompanionIndexes(service.world, tenant, { view, plan, before }),
    ]
    const place = await define(tenant, definitions)
    return { view, place: { ...place, count: definitions.length } }
  })
}

/**
 * Keeps the settings that a new definition does not state: nothing becomes open or cheaper, a live view stays live,
 * and readers' parameters stay.
 */
function keepSettings({ data }: Tenant, request: ViewRequest): ViewRequest {
  const before = data.catalog.viewsByName.get(request.name)?.view
  if (request.ifExists !== 'replace' || before === undefined) return request
  const { settings } = request
  return {
    ...request,
    settings: {
      refreshMode: settings.refreshMode ?? before.refresh_mode,
      variables: settings.variables ?? before.variables,
      description: settings.description ?? before.description,
      accessPolicy: settings.accessPolicy ?? before.access_policy,
    },
  }
}

/** Views and collections share their names. */
function refuseTaken({ data }: Tenant, { name, ifExists }: ViewRequest): void {
  if (data.catalog.byName.has(name))
    throw new Fault('COLLECTION_EXISTS', { message: `A collection ${name} already exists` })
  if (ifExists === 'refuse' && data.catalog.viewsByName.has(name))
    throw new Fault('VIEW_EXISTS', { message: `A view ${name} already exists` })
}

async function buildStoredView(
  service: Uses<'world' | 'database' | 'tenants'>,
  tenant: Tenant,
  {
    wish: request,
    read,
    replaces,
  }: { wish: ViewRequest; read: ResolvedView; replaces: string | undefined },
): Promise<StoredView> {
  const { refreshMode, variables, description, accessPolicy } = request.settings
  const positions: Record<string, number> = {}
  for (const app of new Set(read.reads.map((source) => source.app))) {
    if (app === tenant.application.app_id) continue
    const owner = await service.tenants.load(app)
    positions[app] = (await readWatermark(service.database, owner.schema)).leaf
  }
  return {
    id: `view_${service.world.randomBytes(12).toString('hex')}`,
    app: tenant.application.app_id,
    number: tenant.data.catalog.nextNumber,
    name: request.name,
    refresh_mode: refreshMode ?? 'lazy',
    query: read.definition,
    source_collections: read.named,
    sources: read.sources,
    reads: read.reads,
    inner: read.inner,
    types: read.types,
    positions,
    variables,
    description,
    access_policy: accessPolicy,
    least_read: read.leastRead,
    ...(replaces !== undefined && { replaces }),
    created_at: new Date(service.world.now()).toISOString(),
  }
}

/** A variable of a field that no row has would never find anything. */
function refuseUnreachable({ query }: ViewPlan, request: ViewRequest, sent: ViewRequest): void {
  const { columns, records } = getOutput(query)
  // Whole records may have any field.
  if (records.length > 0) return
  const names = columns.map(({ path }) => path.join('.'))
  const isKept = sent.settings.variables === null
  const advice = isKept
    ? '; it is kept from the view that is replaced, unless variables are sent'
    : ''
  for (const [name, path] of Object.entries(request.settings.variables ?? {})) {
    const field = getVariableField(path)
    const isThere = names.some((one) => `${field}.`.startsWith(`${one}.`))
    if (!isThere)
      throw makeInvalidFault(
        `/variables/${name}`,
        `refers to the field ${field}, which the view does not have; it has ${names.join(', ')}${advice}`,
      )
  }
}

/** A result that two computations could give differently is no function of the records. */
function refuseUndecided({ query }: ViewPlan, { sources }: ViewRequest): void {
  const undecided = findUndecidedWindow(query)
  if (undecided !== undefined)
    throw makeInvalidFault(sources === undefined ? '/sql' : '/query', `has ${undecided}`)
}

/** Each table takes part in every change, and in the time that it takes to write the statements. */
function refuseScattered({ program }: ViewPlan, { sources }: ViewRequest): void {
  const { viewTablesMax } = limits
  if (program.tableNames(0).length > viewTablesMax)
    throw makeInvalidFault(
      sources === undefined ? '/sql' : '/query',
      `would be kept in more than ${viewTablesMax} tables; each min, max and count(DISTINCT) needs its own`,
    )
}

/** A live view must follow from the changes of its own application's records. */
function refuseUnmaintained(
  { refresh_mode: mode, reads, sources, app }: StoredView,
  plan: ViewPlan,
): void {
  if (mode !== 'live') return
  if (reads.some((source) => source.app !== app)) {
    // A source behind a view may have a name that its owner has not told.
    const what =
      sources.find((source) => source.app !== app)?.model ?? 'what its sources are made of'
    throw makeInvalidFault(
      '/refresh_mode',
      `cannot be live: ${what} belongs to another application, and a live view follows only its own application's chain; use lazy`,
    )
  }
  const { notIncrementalReason } = plan.program
  if (notIncrementalReason !== undefined)
    throw makeInvalidFault(
      '/refresh_mode',
      `cannot be live: ${notIncrementalReason} cannot be maintained incrementally; use lazy`,
    )
}

/** Builds the indexes of the replaced view, and those that its joins look records up by. */
function buildCompanionIndexes(
  world: World,
  tenant: Tenant,
  made: { view: StoredView; plan: ViewPlan; before: StoredView | undefined },
): Definition[] {
  const { view, before } = made
  const { catalog } = tenant.data
  const old = before === undefined ? [] : (catalog.viewsById.get(before.id)?.indexes ?? [])
  const definitions: Definition[] = old.map((index, at) => {
    const id = `idx_${world.randomBytes(12).toString('hex')}`
    const body = { ...index, id, collection: view.id, number: view.number + 1 + at }
    return { kind: 'index', id, body }
  })
  for (const { model, path } of made.plan.program.joinFields) {
    const source = view.reads.find((one) => one.model === model && one.app === view.app)
    const collection = source && catalog.byId.get(source.id)
    const isFull = (collection?.indexes.length ?? 0) >= limits.indexesPerCollectionMax
    if (collection === undefined || isFull) continue
    const wanted = {
      field: path.join('.'),
      type: 'btree',
      number: view.number + 1,
      others: definitions,
    } as const
    definitions.push(...buildLeadingIndex(world, collection, wanted))
  }
  return definitions
}
