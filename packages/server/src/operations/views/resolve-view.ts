import { limits } from '@tollbase/contract/limits'
import { Fault, invalid } from '../../base/fault.ts'
import { findReadable } from '../../model/catalog.ts'
import { declaredTypes } from '../../model/declared-types.ts'
import type { CollectionState, StoredView, ViewSource } from '../../model/definitions.ts'
import { grantOf } from '../../model/grants.ts'
import { parseRoot } from '../../model/parse-root.ts'
import { readPolicy } from '../../model/policy.ts'
import { leastReadOf, readOf, strictest } from '../../model/read-level.ts'
import { queryAsWritten, usesOf } from '../../model/view-plan.ts'
import type { ValueType } from '../../query/tree/query.ts'
import { noSuchCollection, refuseUnoffered } from '../../services/access/authorize-collections.ts'
import type { Tenant } from '../../services/applications/tenancy.ts'
import type { Service } from '../../services/call.ts'
import { checkGrantsBehind } from '../../services/views/build-view.ts'
import type { KnownModels } from '../../views/definition/parse-view-sql.ts'
import {
  modelsOfDefinition,
  readViewDefinition,
} from '../../views/definition/read-view-definition.ts'
import type { ViewDefinition } from '../../views/definition/view-definition.ts'
import { selectsWritten } from '../../views/selects-written.ts'
import { planView } from '../../views/view-program.ts'

/** What a seller wants as a view; its parts are checked as far as a schema can. */
export type ViewWish = {
  readonly name: string
  readonly query: unknown
  /** As sent; undefined where the query alone says what it reads. */
  readonly sources: readonly string[] | undefined
  /** Members of the query that stand beside it. */
  readonly siblings: Readonly<Record<string, unknown>>
  readonly settings: ViewSettings
  readonly ifExists: 'refuse' | 'keep' | 'replace'
}

/** What is said of a view beside its definition; null where nothing is. */
export type ViewSettings = {
  readonly refreshMode: 'live' | 'lazy' | null
  readonly variables: Readonly<Record<string, string>> | null
  readonly description: string | null
  /** With the price in it, if one was given. */
  readonly accessPolicy: unknown
}

/** A definition with all that its meaning depends on, as the catalogs say now. */
export type ReadView = {
  readonly definition: ViewDefinition
  /** Plain names, `app::name` of what is another application's. */
  readonly named: readonly string[]
  readonly sources: readonly ViewSource[]
  readonly reads: readonly ViewSource[]
  readonly inner: StoredView['inner']
  readonly types: StoredView['types']
  /** See StoredView. */
  readonly leastRead: StoredView['least_read']
  /** Of the catalog that this was read by. */
  readonly version: number
}

type Named = { readonly model: string; readonly owner: Tenant; readonly source: CollectionState }

/** Reads a definition: first for what it names, which is judged, then with the types that its sources declare. */
export async function readView(
  service: Service,
  tenant: Tenant,
  wish: ViewWish,
): Promise<ReadView> {
  const { app_id: app } = tenant.application
  const { version } = tenant.data.catalog
  const options = {
    app,
    self: `${app}::${wish.name}`,
    siblings: wish.siblings,
    ...(wish.sources !== undefined && { sources: wish.sources }),
  }
  const models = modelsOfDefinition(wish.query, options)
  const named = await namedSources(service, tenant, models)
  const inner = innerDefinitions(named)
  const viewOf = (model: string) => inner[model]
  const untyped = await readViewDefinition(wish.query, { ...options, viewOf })
  const pointer = wish.sources === undefined ? '/sql' : '/query'
  if (selectsWritten(untyped.query) > limits.viewSelectsMax)
    throw invalid(
      pointer,
      `becomes more than ${limits.viewSelectsMax} SELECTs where what WITH and other views name is written out`,
    )
  const uses = usesOf(await queryAsWritten(untyped.definition, { app }), named)
  for (const { model, owner, source } of named) {
    const used = uses.get(model)
    if (owner !== tenant && used !== undefined) refuseUnoffered(source, used, false)
  }
  refusePrivate(tenant, wish, named)
  const reads = await readSources(service, tenant, planView(untyped.query).models)
  const types = typesOf(reads)
  const typed = new Map(
    Object.entries(types).map(([model, fields]) => [model, new Map(Object.entries(fields))]),
  )
  const { definition } = await readViewDefinition(wish.query, {
    ...options,
    viewOf,
    typesOf: (model) => typed.get(model),
  })
  return {
    definition,
    named: namesFor(models, { app, sent: wish.sources }),
    sources: named.map(referenceTo),
    reads: reads.map(referenceTo),
    inner,
    types,
    leastRead:
      readPolicy(wish.settings.accessPolicy).read === undefined
        ? strictest(
            named.map(({ model, owner, source }) =>
              leastReadOf(owner.data.catalog, source, {
                isOwn: owner === tenant,
                used: uses.get(model),
              }),
            ),
          )
        : null,
    version,
  }
}

/** What is known of the models of a statement, by which it is judged. */
export async function knownModels(
  service: Service,
  tenant: Tenant,
  models: readonly string[],
): Promise<KnownModels> {
  const named = await namedSources(service, tenant, models)
  const inner = innerDefinitions(named)
  const types = typesOf(named)
  return {
    viewOf: (model) => inner[model],
    typesOf: (model) => new Map(Object.entries(types[model] ?? {})),
  }
}

function referenceTo({ model, owner, source }: Named): ViewSource {
  return { model, app: owner.application.app_id, id: source.id }
}

/** What the query names; 404 where it is not there, 403 where another application's owner does not grant it. */
async function namedSources(
  service: Service,
  tenant: Tenant,
  models: readonly string[],
): Promise<Named[]> {
  const named: Named[] = []
  for (const model of models) {
    const { app, name } = parseRoot(model)
    const owner = app === tenant.application.app_id ? tenant : await service.tenancy.tenant(app)
    const source = findReadable(owner.data.catalog, name)
    if (source === undefined) throw noSuchCollection(owner, name)
    if (owner !== tenant) refuseUngranted(tenant, { model, owner, source })
    if (source.view !== undefined)
      await checkGrantsBehind(portsOf(service), tenant, { model, owner, view: source.view })
    named.push({ model, owner, source })
  }
  return named
}

/** What one may not know of answers as what is not there. */
function refuseUngranted(tenant: Tenant, { model, owner, source }: Named): void {
  const { app_id: grantee } = tenant.application
  if (grantOf(owner.data.catalog, source, grantee) !== undefined) return
  if (readOf(owner.data.catalog, source) === 'private') throw noSuchCollection(owner, source.name)
  throw new Fault('GRANT_NEEDED', {
    message: `The owner of ${model} has not granted ${grantee} its use in views`,
    details: { source: model, grantee },
  })
}

/** The definitions of the views among the sources, and of those that they are made of. */
function innerDefinitions(named: readonly Named[]): Record<string, ViewDefinition> {
  const inner: Record<string, ViewDefinition> = {}
  for (const { model, source } of named) {
    if (source.view === undefined) continue
    Object.assign(inner, source.view.inner, { [model]: source.view.query })
  }
  return inner
}

/** The collections that are really read. Those behind views are judged with the views. */
async function readSources(
  service: Service,
  tenant: Tenant,
  models: readonly string[],
): Promise<Named[]> {
  const reads: Named[] = []
  for (const model of models) {
    const { app, name } = parseRoot(model)
    const owner = app === tenant.application.app_id ? tenant : await service.tenancy.tenant(app)
    const source = owner.data.catalog.byName.get(name)
    if (source === undefined) throw noSuchCollection(owner, name)
    reads.push({ model, owner, source })
  }
  return reads
}

function typesOf(reads: readonly Named[]): Record<string, Record<string, ValueType>> {
  return Object.fromEntries(
    reads.flatMap(({ model, source }) => {
      const types = declaredTypes(source.schema_definition)
      return types.size === 0 ? [] : [[model, Object.fromEntries(types)]]
    }),
  )
}

/** Private data is not published by a view of its own application; to another's its owner has granted it. */
function refusePrivate(tenant: Tenant, wish: ViewWish, named: readonly Named[]): void {
  if (readPolicy(wish.settings.accessPolicy).read !== 'public') return
  const { catalog } = tenant.data
  const found = named.find(
    ({ owner, source }) => owner === tenant && readOf(catalog, source) === 'private',
  )
  if (found === undefined) return
  throw invalid(
    '/access_policy/read',
    `cannot be public: ${found.model} is private; what is "key" can be published`,
  )
}

/** The models as they are shown, in the order in which they were sent. */
function namesFor(
  models: readonly string[],
  { app, sent }: { app: string; sent: readonly string[] | undefined },
): readonly string[] {
  const own = `${app}::`
  const names = (sent ?? models).map((name) =>
    name.startsWith(own) ? name.slice(own.length) : name,
  )
  return [...new Set(names)]
}

function portsOf({ tenancy }: Service) {
  return { tenantOf: (app: string) => tenancy.tenant(app) }
}
