import { LRUCache } from 'lru-cache'
import { requirePresent } from '../../base/assert.ts'
import { awaitTurn } from '../../base/await-turn.ts'
import { FairCache, type FairCacheBounds } from '../../base/fair-cache.ts'
import { Fault } from '../../base/fault.ts'
import { Singleflight } from '../../base/singleflight.ts'
import type { NoteRead } from '../../http/request-context.ts'
import { type Catalog, findReadable } from '../../model/catalog.ts'
import { parseRoot } from '../../model/parse-root.ts'
import {
  findPrimaryColumn,
  getFieldTypes,
  getRowSizes,
  hasNoField,
  type Readable,
} from '../../model/readable.ts'
import type { KeptQuery } from '../../model/stored-query.ts'
import type { DeclaredParameter } from '../../query/predefined/declared-parameter.ts'
import { readTemplate, type Template, type TemplateText } from '../../query/predefined/template.ts'
import type { CompiledStatement } from '../../query/sql-text.ts'
import { awaitTurnAfterSteps } from '../../query/steps.ts'
import type { ValueType } from '../../query/tree/query.ts'
import type { Tenant, Tenants } from '../applications/tenants.ts'
import { computeFactsBytes, computePlanBytes, computeStatementBytes } from './query-bytes.ts'
import { listOwnUses, type OwnUse } from './query-price.ts'

/**
 * The bytes of memory of all queries that this process keeps read, with their statements, and the most of these that
 * one application has.
 */
const planBounds: FairCacheBounds = {
  bytesMax: 256 * 1024 * 1024,
  shareBytesMax: 64 * 1024 * 1024,
}
/** Statements of one version, and their bytes: each subset of its parameters can make another one. */
const statementsOfPlanMax = 64
const statementBytesOfPlanMax = 8 * 1024 * 1024

/** A version of a query, read once; its statements are made when they are first needed. */
export type QueryPlan = {
  readonly template: Template
  /** The uses of its own application's sources. */
  readonly own: readonly OwnUse[]
  readonly statements: PlannedStatements
  /** A number that no other plan of this process has. */
  readonly number: number
}

type PlannedStatements = {
  readonly get: (key: string) => PlannedStatement | undefined
  readonly set: (key: string, planned: PlannedStatement) => unknown
}

export type PlannedStatement = {
  /** A key that no statement of another text has. */
  readonly key: string
  readonly statement: CompiledStatement
  /** True where it reads the time of each run. */
  readonly isTimed: boolean
}

/** The part of a plan that descriptions and prices need; it is small, however long the query is. */
type QueryFacts = Pick<QueryPlan, 'own'> &
  Pick<Template, 'columns'> & { readonly parameters: readonly ParameterFacts[] }

type ParameterFacts = Pick<DeclaredParameter, 'name' | 'type' | 'isList' | 'default' | 'required'>

/**
 * A query as it was read, and what it was read from; each of these is replaced as a whole where anything in it changes.
 */
type ReadQuery = {
  /** Undefined where only its description was asked for. */
  readonly plan: QueryPlan | undefined
  readonly facts: QueryFacts
  /** A reference that keeps nothing in memory once it is deleted. */
  readonly stored: WeakRef<KeptQuery>
  /** The version of each catalog: the catalog itself would keep what is deleted by now in memory. */
  readonly catalogs: readonly { readonly app: string; readonly version: number }[]
}

type Wanted = {
  readonly stored: KeptQuery
  /** Called where the query was not in memory, and has to be read. */
  readonly onRead: NoteRead
}

/**
 * The predefined queries that are in the memory of this process; what was unused the longest goes first. Descriptions
 * of all queries of an application leave their facts here, not their plans.
 */
export class QueryPlans {
  readonly #kept: FairCache<ReadQuery>
  readonly #reading = new Singleflight()
  #next = 1

  constructor(bounds: FairCacheBounds = planBounds) {
    this.#kept = new FairCache(bounds)
  }

  /** The bytes of all that is kept. */
  get bytes(): number {
    return this.#kept.bytes
  }

  /** Finds the facts of a version; undefined where it cannot be read any more, as where its source is gone. */
  findFacts(tenants: Tenants, tenant: Tenant, wanted: Wanted): Promise<QueryFacts | undefined> {
    return this.loadFacts(tenants, tenant, wanted).catch((error: unknown) => {
      if (error instanceof Fault) return undefined
      throw error
    })
  }

  /** Returns the facts of a version under the present definitions. */
  async loadFacts(tenants: Tenants, tenant: Tenant, wanted: Wanted): Promise<QueryFacts> {
    return (await this.#load({ ...wanted, tenants, tenant, part: 'facts' })).facts
  }

  /** Returns the plan of a version under the present definitions. */
  async load(tenants: Tenants, tenant: Tenant, wanted: Wanted): Promise<QueryPlan> {
    const { plan } = await this.#load({ ...wanted, tenants, tenant, part: 'plan' })
    return requirePresent(plan, 'the plan that was asked for')
  }

  async #load(asked: Asked): Promise<ReadQuery> {
    const kept = await this.#findKept(asked)
    if (kept !== undefined) return kept
    const first = await this.#share(asked)
    // The one who began to read it may have seen other definitions. The next reading begins after this request did.
    if (first.isOwn || (await isCurrent(first.read, asked))) return first.read
    const next = await this.#share(asked)
    return next.read.stored.deref() === asked.stored ? next.read : this.#read(asked)
  }

  /** Reads a query once for all who ask for it at the same time. */
  async #share(asked: Asked): Promise<{ readonly read: ReadQuery; readonly isOwn: boolean }> {
    const { holder, key } = formatPlace(asked)
    let isOwn = false
    const read = await this.#reading.run(`${holder} ${key}`, asked.part, () => {
      isOwn = true
      return this.#read(asked)
    })
    return { read, isOwn }
  }

  async #findKept(asked: Asked): Promise<ReadQuery | undefined> {
    const { holder, key } = formatPlace(asked)
    const kept = this.#kept.get(holder, key)
    if (kept === undefined || (asked.part === 'plan' && kept.plan === undefined)) return undefined
    return (await isCurrent(kept, asked)) ? kept : undefined
  }

  async #read(asked: Asked): Promise<ReadQuery> {
    const kept = await this.#findKept(asked)
    if (kept !== undefined) return kept
    const { stored, part, onRead } = asked
    const { sql = '', base_query, parameters } = stored
    onRead({ sql: sql.length, other: JSON.stringify([base_query, parameters]).length })
    // Some callers need all queries of an application.
    await awaitTurn()
    const { template, own, catalogs } = await readQuery(asked)
    const facts = { parameters: template.parameters.map(toFacts), columns: template.columns, own }
    const statements = new LRUCache<string, PlannedStatement>({
      max: statementsOfPlanMax,
      maxSize: statementBytesOfPlanMax,
      sizeCalculation: computeStatementBytes,
    })
    const read: ReadQuery = {
      ...{ facts, stored: new WeakRef(stored), catalogs },
      plan:
        part === 'facts'
          ? undefined
          : {
              ...{ template, own, number: this.#next++ },
              statements: {
                get: (key) => statements.get(key),
                set: (key, planned) => {
                  statements.set(key, planned)
                  this.#resize(asked, read, statements.calculatedSize)
                },
              },
            },
    }
    this.#keep(asked, read, 0)
    return read
  }

  /** A plan that is not kept any more stays so: its statements go with it. */
  #resize(asked: Asked, read: ReadQuery, statementBytes: number): void {
    const { holder, key } = formatPlace(asked)
    if (this.#kept.get(holder, key) === read) this.#keep(asked, read, statementBytes)
  }

  #keep(asked: Asked, read: ReadQuery, statementBytes: number): void {
    const { holder, key } = formatPlace(asked)
    const planBytes = read.plan === undefined ? 0 : computePlanBytes(asked.stored)
    const bytes = computeFactsBytes(read.facts) + planBytes + statementBytes
    this.#kept.set(holder, key, { value: read, bytes })
  }
}

type Asked = Wanted & {
  readonly tenants: Tenants
  readonly tenant: Tenant
  readonly part: 'plan' | 'facts'
}

function formatPlace({ tenant, stored }: Asked): { readonly holder: string; readonly key: string } {
  return { holder: String(tenant.application.number), key: `${stored.name} ${stored.version}` }
}

async function isCurrent(
  { stored, catalogs }: ReadQuery,
  { tenants, stored: wanted }: Asked,
): Promise<boolean> {
  if (stored.deref() !== wanted) return false
  for (const { app, version } of catalogs)
    if ((await tenants.load(app)).data.catalog.version !== version) return false
  return true
}

/** Picks what is told of a parameter, without what its values are judged by. */
function toFacts({ name, type, isList, default: value, required }: ParameterFacts): ParameterFacts {
  return { name, type, isList, default: value, required }
}

async function readQuery({
  tenants,
  tenant,
  stored,
}: Asked): Promise<Pick<QueryPlan, 'template' | 'own'> & Pick<ReadQuery, 'catalogs'>> {
  const home = tenant.application.app_id
  const foreign = stored.sources.filter((name) => name.includes('::'))
  const apps = new Set([home, ...foreign.map((model) => parseRoot(model).app)])
  const findCatalog = makeCatalogFinder(tenants)
  // Definitions may change while the text is read; then the plan is not of those that are noted here.
  const catalogs = await Promise.all(
    [...apps].map(async (app) => ({ app, version: (await findCatalog(app)).version })),
  )
  const template = await loadTemplate(findCatalog, home, { text: stored, isStored: true })
  return { template, own: listOwnUses(template.uses, home), catalogs }
}

/** Finds what an application has defined now; throws 404 where there is none. */
export type CatalogFinder = (app: string) => Promise<Catalog>

export function makeCatalogFinder(tenants: Pick<Tenants, 'load'>): CatalogFinder {
  return async (app) => (await tenants.load(app)).data.catalog
}

type QueryText = Pick<
  KeptQuery,
  'sql' | 'source_collection' | 'base_query' | 'parameters' | 'min_group_size'
>

/**
 * Loads the template of a query with the types that its collections declare; a 400 names what is wrong. `isStored`:
 * the text was taken in once; `isBounded`: by somebody else (see SqlOptions).
 */
export async function loadTemplate(
  findCatalog: CatalogFinder,
  home: string,
  { text: stored, isStored, isBounded = !isStored }: StoredText,
): Promise<Template> {
  const text = toTemplateText(stored)
  const readables = new Map<string, Readable>()
  const types = new Map<string, ReadonlyMap<string, ValueType>>()
  const known = {
    home,
    isStored,
    isBounded,
    typesOf: (model: string) => types.get(model),
    sizesOf: (model: string) => {
      const readable = readables.get(model)
      return readable && getRowSizes(readable)
    },
    primaryOf: (model: string) => {
      const readable = readables.get(model)
      return readable && findPrimaryColumn(readable)
    },
    lacks: (model: string, name: string) => {
      const readable = readables.get(model)
      return readable !== undefined && hasNoField(readable, name)
    },
  }
  const models =
    stored.sql === undefined
      ? [stored.source_collection ?? '']
      : (await readTemplate(text, { ...known, leavesOpen: true })).uses.map(({ model }) => model)
  for (const name of models) {
    const model = name.includes('::') ? name : `${home}::${name}`
    const root = parseRoot(model)
    const readable = findReadable(await findCatalog(root.app), root.name)
    if (readable === undefined) continue
    types.set(model, getFieldTypes(readable))
    readables.set(model, readable)
  }
  await awaitTurnAfterSteps()
  return readTemplate(text, known)
}

type StoredText = {
  readonly text: QueryText
  readonly isStored: boolean
  readonly isBounded?: boolean
}

function toTemplateText({
  sql,
  source_collection,
  base_query,
  parameters,
  min_group_size,
}: QueryText) {
  const text: TemplateText = {
    parameters,
    minGroupSize: min_group_size ?? undefined,
    ...(sql !== undefined && { sql }),
    ...(source_collection !== undefined && { source_collection }),
    ...(base_query !== undefined && { base_query }),
  }
  return text
}
