import { limits } from '@tollbase/contract/limits'
import { Fault, invalid } from '../../base/fault.ts'
import type { Definition } from '../../model/definition-entry.ts'
import type { StoredView } from '../../model/definitions.ts'
import { dependentsOf } from '../../model/dependents.ts'
import { planOf, type ViewPlan } from '../../model/view-plan.ts'
import { outputOf } from '../../query/tree/query.ts'
import { define } from '../../services/applications/define.ts'
import type { Tenant } from '../../services/applications/tenancy.ts'
import type { Service } from '../../services/call.ts'
import { leadingIndex } from '../../services/collections/leading-index.ts'
import { watermarkOf } from '../../services/views/view-store.ts'
import { undecidedWindow } from '../../views/decide-window.ts'
import { type ReadView, readView, type ViewWish } from './resolve-view.ts'
import { fieldOfVariable } from './variables.ts'

export type Defined = {
  readonly view: StoredView
  /** Where the group of its entries stands; undefined where the view was there already. */
  readonly place:
    | { readonly height: number; readonly sequence: number; readonly count: number }
    | undefined
}

/**
 * Writes the definition of a view into the log, after which it waits to be filled. With `replace` the view of that
 * name is read until the new one is whole.
 */
export async function defineView(
  service: Service,
  tenant: Tenant,
  sent: ViewWish,
): Promise<Defined> {
  refuseTaken(tenant, sent)
  // Before the gate: it may read other applications' catalogs.
  const first = await readView(service, tenant, withKeptSettings(tenant, sent))
  return tenant.definitions.run(async () => {
    const { catalog } = tenant.data
    const wish = withKeptSettings(tenant, sent)
    const before = catalog.viewsByName.get(wish.name)?.view
    refuseTaken(tenant, wish)
    if (before !== undefined && wish.ifExists === 'keep') return { view: before, place: undefined }
    if (before !== undefined) refuseNeeded(tenant, before)
    if (catalog.views.size >= limits.viewsPerApplicationMax)
      throw new Fault('CONFLICT', {
        message: `An application has at most ${limits.viewsPerApplicationMax} views`,
      })
    const read = catalog.version === first.version ? first : await readView(service, tenant, wish)
    const view = await storedView(service, tenant, { wish, read, replaces: before?.id })
    const { plan } = await planOf(view)
    if (plan === undefined) throw invalid('/query', 'is not understood')
    refuseUnreachable(plan, wish, sent)
    refuseUndecided(plan, wish)
    refuseUnmaintained(view, plan)
    const definitions = [
      { kind: 'view', id: view.id, body: view } as const,
      ...pendingRemovals(tenant, before),
      ...companions(service, tenant, { view, plan, before }),
    ]
    const place = await define(tenant, definitions)
    return { view, place: { ...place, count: definitions.length } }
  })
}

/**
 * A new definition changes nothing else that it does not speak of: nothing becomes open or cheaper, what follows every
 * write still does, and readers' parameters stay.
 */
function withKeptSettings({ data }: Tenant, wish: ViewWish): ViewWish {
  const before = data.catalog.viewsByName.get(wish.name)?.view
  if (wish.ifExists !== 'replace' || before === undefined) return wish
  const { settings } = wish
  return {
    ...wish,
    settings: {
      refreshMode: settings.refreshMode ?? before.refresh_mode,
      variables: settings.variables ?? before.variables,
      description: settings.description ?? before.description,
      accessPolicy: settings.accessPolicy ?? before.access_policy,
    },
  }
}

/** Views and collections share their names. */
function refuseTaken({ data }: Tenant, { name, ifExists }: ViewWish): void {
  if (data.catalog.byName.has(name))
    throw new Fault('COLLECTION_EXISTS', { message: `A collection ${name} already exists` })
  if (ifExists === 'refuse' && data.catalog.viewsByName.has(name))
    throw new Fault('VIEW_EXISTS', { message: `A view ${name} already exists` })
}

async function storedView(
  service: Service,
  tenant: Tenant,
  { wish, read, replaces }: { wish: ViewWish; read: ReadView; replaces: string | undefined },
): Promise<StoredView> {
  const { refreshMode, variables, description, accessPolicy } = wish.settings
  const positions: Record<string, number> = {}
  for (const app of new Set(read.reads.map((source) => source.app))) {
    if (app === tenant.application.app_id) continue
    const owner = await service.tenancy.tenant(app)
    positions[app] = (await watermarkOf(service.database, owner.schema)).leaf
  }
  return {
    id: `view_${service.world.randomBytes(12).toString('hex')}`,
    app: tenant.application.app_id,
    number: tenant.data.catalog.nextNumber,
    name: wish.name,
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

/** A variable of a field that no row has would find nothing for ever. */
function refuseUnreachable({ query }: ViewPlan, wish: ViewWish, sent: ViewWish): void {
  const { columns, records } = outputOf(query)
  // Whole records may have any field.
  if (records.length > 0) return
  const names = columns.map(({ path }) => path.join('.'))
  const isKept = sent.settings.variables === null
  const advice = isKept
    ? '; it is kept from the view that is replaced, unless variables are sent'
    : ''
  for (const [name, path] of Object.entries(wish.settings.variables ?? {})) {
    const field = fieldOfVariable(path)
    const isThere = names.some((one) => `${field}.`.startsWith(`${one}.`))
    if (!isThere)
      throw invalid(
        `/variables/${name}`,
        `is of the field ${field}, which the view has not; it has ${names.join(', ')}${advice}`,
      )
  }
}

/** What two computations could give differently is no function of the records. */
function refuseUndecided({ query }: ViewPlan, { sources }: ViewWish): void {
  const undecided = undecidedWindow(query)
  if (undecided !== undefined)
    throw invalid(sources === undefined ? '/sql' : '/query', `has ${undecided}`)
}

/** A live view must follow from the changes of its own application's records. */
function refuseUnmaintained(
  { refresh_mode: mode, reads, sources, app }: StoredView,
  plan: ViewPlan,
): void {
  if (mode !== 'live') return
  if (reads.some((source) => source.app !== app)) {
    // What is behind a view may have a name that its owner has not told.
    const what =
      sources.find((source) => source.app !== app)?.model ?? 'what its sources are made of'
    throw invalid(
      '/refresh_mode',
      `cannot be live: ${what} is on the chain of another application, whose writes this one does not see; use lazy`,
    )
  }
  const { obstacle } = plan.program
  if (obstacle !== undefined)
    throw invalid(
      '/refresh_mode',
      `cannot be live: ${obstacle} cannot be kept up with single changes; use lazy`,
    )
}

/** Views that are made of another hold its definition, which must not become a different one behind their backs. */
function refuseNeeded(tenant: Tenant, before: StoredView): void {
  const names = dependentsOf(tenant.data.catalog, before.id).map(({ name }) => name)
  if (names.length === 0) return
  throw new Fault('CONFLICT', {
    message: `${before.name} cannot be replaced: the views ${names.join(', ')} are made of it`,
    details: { views: names },
  })
}

/** Another replacement that is not whole yet is given up. */
function pendingRemovals(tenant: Tenant, before: StoredView | undefined): Definition[] {
  if (before === undefined) return []
  return [...tenant.data.catalog.views.values()]
    .filter(({ view }) => view.replaces === before.id)
    .map(({ view }) => ({ kind: 'view', id: view.id, body: undefined }))
}

/** The indexes of the view that is replaced, and those by which records are found that join. */
function companions(
  service: Service,
  tenant: Tenant,
  made: { view: StoredView; plan: ViewPlan; before: StoredView | undefined },
): Definition[] {
  const { view, before } = made
  const { catalog } = tenant.data
  const old = before === undefined ? [] : (catalog.viewsById.get(before.id)?.indexes ?? [])
  const definitions: Definition[] = old.map((index, at) => {
    const id = `idx_${service.world.randomBytes(12).toString('hex')}`
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
    definitions.push(...leadingIndex(service, collection, wanted))
  }
  return definitions
}
