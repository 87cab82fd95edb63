import { LRUCache } from 'lru-cache'
import { Fault } from '../../base/fault.ts'
import { type Catalog, findReadable } from '../../model/catalog.ts'
import { parseRoot } from '../../model/parse-root.ts'
import {
  findPrimaryColumn,
  getFieldTypes,
  getRowSizes,
  hasNoField,
  type Readable,
} from '../../model/readable.ts'
import { countQueryChars, type KeptQuery } from '../../model/stored-query.ts'
import { readTemplate, type Template, type TemplateText } from '../../query/predefined/template.ts'
import type { CompiledStatement } from '../../query/sql-text.ts'
import { awaitTurnAfterSteps } from '../../query/steps.ts'
import type { ValueType } from '../../query/tree/query.ts'
import type { Tenant, Tenants } from '../applications/tenants.ts'
import { listOwnUses, type OwnUse } from './query-price.ts'

/**
 * Versions of queries that one process keeps parsed, and characters of their definitions, which take some ten bytes
 * each; and characters of the statements that it keeps of them, a value counted as a few.
 */
export const queryPlansMax = 1_000
const planCharsMax = 16 * 1024 * 1024
const statementCharsMax = 64 * 1024 * 1024
const charsPerValue = 32

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

/**
 * A plan and the definitions that it was made from; each of these is replaced as a whole where anything in it
 * changes.
 */
type CachedPlan = {
  readonly plan: QueryPlan
  readonly stored: KeptQuery
  /** The version of each catalog: the catalog itself would keep what is deleted by now in memory. */
  readonly catalogs: readonly { readonly app: string; readonly version: number }[]
}

/** The plans of predefined queries, in the memory of this process; the least recently used goes first. */
export class QueryPlans {
  readonly #kept = new LRUCache<string, CachedPlan>({
    max: queryPlansMax,
    maxSize: planCharsMax,
    sizeCalculation: ({ stored }) => countQueryChars({ ...stored, exampleTexts: {} }),
  })
  /** Those of all plans, whose keys name them. One query can have more variants than anybody asks for. */
  readonly #statements = new LRUCache<string, PlannedStatement>({
    maxSize: statementCharsMax,
    sizeCalculation: ({ statement: { text, values } }, key) =>
      key.length + text.length + values.length * charsPerValue,
  })
  #next = 1

  /** Finds the plan of a version; undefined where it cannot be read any more, as where its source is gone. */
  find(tenants: Tenants, tenant: Tenant, stored: KeptQuery): Promise<QueryPlan | undefined> {
    return this.load(tenants, tenant, stored).catch((error: unknown) => {
      if (error instanceof Fault) return undefined
      throw error
    })
  }

  /** Returns the plan of a version under the present definitions. */
  async load(tenants: Tenants, tenant: Tenant, stored: KeptQuery): Promise<QueryPlan> {
    const key = `${tenant.application.number} ${stored.name} ${stored.version}`
    const kept = this.#kept.get(key)
    if (kept?.stored === stored && (await isUnchanged(tenants, kept))) return kept.plan
    const made = await makePlan(tenants, {
      ...{ tenant, stored, number: this.#next++ },
      statements: this.#statements,
    })
    this.#kept.set(key, made)
    return made.plan
  }
}

async function isUnchanged(tenants: Tenants, { catalogs }: CachedPlan): Promise<boolean> {
  for (const { app, version } of catalogs)
    if ((await tenants.load(app)).data.catalog.version !== version) return false
  return true
}

async function makePlan(
  tenants: Tenants,
  {
    tenant,
    stored,
    ...made
  }: { tenant: Tenant; stored: KeptQuery } & Pick<QueryPlan, 'number' | 'statements'>,
): Promise<CachedPlan> {
  const home = tenant.application.app_id
  const foreign = stored.sources.filter((name) => name.includes('::'))
  const apps = new Set([home, ...foreign.map((model) => parseRoot(model).app)])
  const findCatalog = makeCatalogFinder(tenants)
  // Definitions may change while the text is read; then the plan is not of those that are noted here.
  const catalogs = await Promise.all(
    [...apps].map(async (app) => ({ app, version: (await findCatalog(app)).version })),
  )
  const template = await loadTemplate(findCatalog, home, { text: stored, isStored: true })
  const own = listOwnUses(template.uses, home)
  return { stored, plan: { template, own, ...made }, catalogs }
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
