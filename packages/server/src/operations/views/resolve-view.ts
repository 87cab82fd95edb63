import { limits } from '@tollbase/contract/limits'
import { Fault, makeInvalidFault } from '../../base/fault.ts'
import { findReadable } from '../../model/catalog.ts'
import type { StoredView, ViewSource } from '../../model/definitions.ts'
import { refuseWhileReplaced } from '../../model/dependents.ts'
import { findGrant } from '../../model/grants.ts'
import { parseRoot } from '../../model/parse-root.ts'
import { parsePolicy, type ReadLevel } from '../../model/policy.ts'
import { getLeastReadLevel, getStrictest, resolveReadLevel } from '../../model/read-level.ts'
import { getFieldTypes, type Readable } from '../../model/readable.ts'
import { listSourceUses, readQueryAsWritten } from '../../model/view-plan.ts'
import type { ValueType } from '../../query/tree/query.ts'
import { collectQuerySources } from '../../query/tree/query-sources.ts'
import {
  makeNoCollectionFault,
  refuseApi,
  refuseUnoffered,
} from '../../services/access/find-sources.ts'
import type { Tenant, Tenants } from '../../services/applications/tenants.ts'
import type { Target } from '../../services/pricing/freed-targets.ts'
import { checkGrantsBehind } from '../../services/views/build-view.ts'
import { countWrittenSelects } from '../../views/count-selects.ts'
import type { KnownModels } from '../../views/definition/parse-view-sql.ts'
import { listModels, readViewDefinition } from '../../views/definition/read-view-definition.ts'
import type { ViewDefinition } from '../../views/definition/view-definition.ts'

/** A seller's request for a view; its parts are checked as far as a schema can. */
export type ViewRequest = {
  readonly name: string
  readonly query: unknown
  /** The sources as sent; undefined where only the query names them. */
  readonly sources: readonly string[] | undefined
  /** Members of the query that stand beside it. */
  readonly siblings: Readonly<Record<string, unknown>>
  readonly settings: ViewSettings
  readonly ifExists: 'refuse' | 'keep' | 'replace'
  /** The targets that the seller confirms to give away, where it replaces a view. */
  readonly confirmed: readonly Target[]
}

/** The settings of a view beside its definition; null where one is not stated. */
export type ViewSettings = {
  readonly refreshMode: 'live' | 'lazy' | null
  readonly variables: Readonly<Record<string, string>> | null
  readonly description: string | null
  /** With the price in it, if one was given. */
  readonly accessPolicy: unknown
}

/** A definition with all that its meaning depends on, as the catalogs are now. */
export type ResolvedView = {
  readonly definition: ViewDefinition
  /** Plain names, and `app::name` for another application's sources. */
  readonly named: readonly string[]
  readonly sources: readonly ViewSource[]
  readonly reads: readonly ViewSource[]
  readonly inner: StoredView['inner']
  readonly types: StoredView['types']
  /** See StoredView. */
  readonly leastRead: ReadLevel | null
  /** The version of the catalog by which the definition was resolved. */
  readonly version: number
}

type NamedSource = {
  readonly model: string
  readonly owner: Tenant
  readonly source: Readable
}

/**
 * Resolves a definition: first for the sources that it names, which are authorized, then with the types that they
 * declare.
 */
export async function resolveView(
  tenants: Tenants,
  tenant: Tenant,
  request: ViewRequest,
): Promise<ResolvedView> {
  const { app_id: app } = tenant.application
  const { version } = tenant.data.catalog
  const options = {
    app,
    self: `${app}::${request.name}`,
    siblings: request.siblings,
    ...(request.sources !== undefined && { sources: request.sources }),
  }
  const models = listModels(request.query, options)
  const named = await requireSources(tenants, tenant, models)
  const inner = collectInnerDefinitions(named)
  const findInnerView = (model: string) => inner[model]
  const untyped = await readViewDefinition(request.query, { ...options, viewOf: findInnerView })
  const pointer = request.sources === undefined ? '/sql' : '/query'
  if (countWrittenSelects(untyped.query) > limits.viewSelectsMax)
    throw makeInvalidFault(
      pointer,
      `becomes more than ${limits.viewSelectsMax} SELECTs where what WITH and other views name is written out`,
    )
  const uses = listSourceUses(await readQueryAsWritten(untyped.definition, { app }), named)
  for (const { model, owner, source } of named) {
    const used = uses.get(model)
    if (owner !== tenant && used !== undefined) refuseUnoffered(source, used, false)
  }
  refusePrivate(tenant, request, named)
  const read = collectQuerySources(untyped.query).map(({ model }) => model)
  const reads = await readSources(tenants, tenant, [...new Set(read)])
  const types = collectTypes(reads)
  const typed = new Map(
    Object.entries(types).map(([model, fields]) => [model, new Map(Object.entries(fields))]),
  )
  const { definition } = await readViewDefinition(request.query, {
    ...options,
    viewOf: findInnerView,
    typesOf: (model) => typed.get(model),
  })
  return {
    definition,
    named: listShownNames(models, { app, sent: request.sources }),
    sources: named.map(toReference),
    reads: reads.map(toReference),
    inner,
    types,
    leastRead:
      parsePolicy(request.settings.accessPolicy).read === undefined
        ? getStrictest(
            named.map(({ model, owner, source }) =>
              getLeastReadLevel(owner.data.catalog, source, {
                isOwn: owner === tenant,
                used: uses.get(model),
              }),
            ),
          )
        : null,
    version,
  }
}

/** Loads the definitions and types of the models that a statement names. */
export async function loadKnownModels(
  tenants: Tenants,
  tenant: Tenant,
  models: readonly string[],
): Promise<KnownModels> {
  const named = await requireSources(tenants, tenant, models)
  const inner = collectInnerDefinitions(named)
  const types = collectTypes(named)
  return {
    viewOf: (model) => inner[model],
    typesOf: (model) => new Map(Object.entries(types[model] ?? {})),
  }
}

function toReference({ model, owner, source }: NamedSource): ViewSource {
  return { model, app: owner.application.app_id, id: source.id }
}

/**
 * Returns the sources that the query names; 404 where one does not exist, 403 where another application's owner
 * does not grant it, 409 where one is being replaced.
 */
async function requireSources(
  tenants: Tenants,
  tenant: Tenant,
  models: readonly string[],
): Promise<NamedSource[]> {
  const named: NamedSource[] = []
  for (const model of models) {
    const { app, name } = parseRoot(model)
    const owner = app === tenant.application.app_id ? tenant : await tenants.load(app)
    const source = findReadable(owner.data.catalog, name)
    if (source === undefined) throw makeNoCollectionFault(owner, name)
    if (owner !== tenant) refuseUngranted(tenant, { model, owner, source })
    refuseApi(owner, source)
    refuseWhileReplaced(owner.data.catalog, source)
    if (source.kind === 'view')
      await checkGrantsBehind(makePorts(tenants), tenant, { model, owner, view: source.view })
    named.push({ model, owner, source })
  }
  return named
}

/** A source that the application may not know of answers like one that does not exist. */
function refuseUngranted(tenant: Tenant, { model, owner, source }: NamedSource): void {
  const { app_id: grantee } = tenant.application
  if (findGrant(owner.data.catalog, source, grantee) !== undefined) return
  if (resolveReadLevel(owner.data.catalog, source) === 'private')
    throw makeNoCollectionFault(owner, source.name)
  throw new Fault('GRANT_NEEDED', {
    message: `The owner of ${model} has not granted ${grantee} its use in views`,
    details: { source: model, grantee },
  })
}

/** The definitions of the views among the sources, and of those that they are made of. */
function collectInnerDefinitions(named: readonly NamedSource[]): Record<string, ViewDefinition> {
  const inner: Record<string, ViewDefinition> = {}
  for (const { model, source } of named) {
    if (source.kind === 'collection') continue
    Object.assign(inner, source.view.inner, { [model]: source.view.query })
  }
  return inner
}

/** Returns the collections that are actually read. Those behind views are authorized with the views. */
async function readSources(
  tenants: Tenants,
  tenant: Tenant,
  models: readonly string[],
): Promise<NamedSource[]> {
  const reads: NamedSource[] = []
  for (const model of models) {
    const { app, name } = parseRoot(model)
    const owner = app === tenant.application.app_id ? tenant : await tenants.load(app)
    const source = owner.data.catalog.byName.get(name)
    if (source === undefined) throw makeNoCollectionFault(owner, name)
    reads.push({ model, owner, source })
  }
  return reads
}

function collectTypes(reads: readonly NamedSource[]): Record<string, Record<string, ValueType>> {
  return Object.fromEntries(
    reads.flatMap(({ model, source }) => {
      const types = getFieldTypes(source)
      return types.size === 0 ? [] : [[model, Object.fromEntries(types)]]
    }),
  )
}

/**
 * Refuses a public view over private data of its own application; another application's data was granted by its
 * owner.
 */
function refusePrivate(tenant: Tenant, request: ViewRequest, named: readonly NamedSource[]): void {
  if (parsePolicy(request.settings.accessPolicy).read !== 'public') return
  const { catalog } = tenant.data
  const found = named.find(
    ({ owner, source }) => owner === tenant && resolveReadLevel(catalog, source) === 'private',
  )
  if (found === undefined) return
  throw makeInvalidFault(
    '/access_policy/read',
    `cannot be public: ${found.model} is private; what is "key" can be published`,
  )
}

/** The models as they are shown, in the order in which they were sent. */
function listShownNames(
  models: readonly string[],
  { app, sent }: { app: string; sent: readonly string[] | undefined },
): readonly string[] {
  const own = `${app}::`
  const names = (sent ?? models).map((name) =>
    name.startsWith(own) ? name.slice(own.length) : name,
  )
  return [...new Set(names)]
}

function makePorts(tenants: Tenants) {
  return { tenantOf: (app: string) => tenants.load(app) }
}
