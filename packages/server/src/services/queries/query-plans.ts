import { limits } from '@tollbase/contract/limits'
import { type Catalog, findReadable } from '../../model/catalog.ts'
import { declaredTypes } from '../../model/declared-types.ts'
import type { StoredQuery } from '../../model/definitions.ts'
import { parseRoot } from '../../model/parse-root.ts'
import { readTemplate, type Template, type TemplateText } from '../../query/predefined/template.ts'
import type { CompiledStatement } from '../../query/sql-text.ts'
import type { ValueType } from '../../query/tree/query.ts'
import type { Tenancy, Tenant } from '../applications/tenancy.ts'
import { type OwnUse, ownUses } from './query-price.ts'

/** A version of a query, read once; its statements are made when they are first needed. */
export type QueryPlan = {
  readonly template: Template
  /** Its uses of what is its application's own. */
  readonly own: readonly OwnUse[]
  readonly statements: Map<string, PlannedStatement>
  /** No other plan of this process has it. */
  readonly number: number
}

export type PlannedStatement = {
  /** No statement of another text has it. */
  readonly key: string
  readonly statement: CompiledStatement
  /** Whether it reads the time of each run. */
  readonly isTimed: boolean
}

/** What a plan was made of; each is replaced as a whole where anything of it changes. */
type Kept = {
  readonly plan: QueryPlan
  readonly stored: StoredQuery
  readonly catalogs: readonly { readonly app: string; readonly catalog: Catalog }[]
}

/** The plans of predefined queries, in the memory of this process; the one unused the longest goes first. */
export class QueryPlans {
  readonly #kept = new Map<string, Kept>()
  #next = 1

  /** The plan of a version under what is defined now. */
  async planOf(tenancy: Tenancy, tenant: Tenant, stored: StoredQuery): Promise<QueryPlan> {
    const key = `${tenant.application.number} ${stored.name} ${stored.version}`
    const kept = this.#kept.get(key)
    const isGood = kept?.stored === stored && (await isUnchanged(tenancy, kept))
    const now =
      kept !== undefined && isGood
        ? kept
        : await made(tenancy, { tenant, stored, number: this.#next++ })
    this.#kept.delete(key)
    this.#kept.set(key, now)
    if (this.#kept.size > limits.queryPlansMax)
      for (const oldest of this.#kept.keys()) {
        this.#kept.delete(oldest)
        break
      }
    return now.plan
  }
}

async function isUnchanged(tenancy: Tenancy, { catalogs }: Kept): Promise<boolean> {
  for (const { app, catalog } of catalogs)
    if ((await tenancy.tenant(app)).data.catalog !== catalog) return false
  return true
}

async function made(
  tenancy: Tenancy,
  { tenant, stored, number }: { tenant: Tenant; stored: StoredQuery; number: number },
): Promise<Kept> {
  const home = tenant.application.app_id
  const foreign = stored.sources.filter((name) => name.includes('::'))
  const apps = new Set([home, ...foreign.map((model) => parseRoot(model).app)])
  const tenants = await Promise.all([...apps].map((app) => tenancy.tenant(app)))
  const template = await templateOf(tenancy, home, stored)
  return {
    stored,
    plan: { template, own: ownUses(template.uses, home), statements: new Map(), number },
    catalogs: tenants.map(({ application, data }) => ({
      app: application.app_id,
      catalog: data.catalog,
    })),
  }
}

type Text = Pick<
  StoredQuery,
  'sql' | 'source_collection' | 'base_query' | 'parameters' | 'min_group_size'
>

/** The template of a text with the types that the collections it reads declare; a 400 names what is wrong. */
export async function templateOf(tenancy: Tenancy, home: string, stored: Text): Promise<Template> {
  const text = textOf(stored)
  const types = new Map<string, ReadonlyMap<string, ValueType>>()
  const typesOf = (model: string) => types.get(model)
  const models =
    stored.sql === undefined
      ? [stored.source_collection ?? '']
      : (await readTemplate(text, { home, typesOf })).uses.map(({ model }) => model)
  for (const name of models) {
    const model = name.includes('::') ? name : `${home}::${name}`
    const root = parseRoot(model)
    const { data } = await tenancy.tenant(root.app)
    const declared = declaredTypes(findReadable(data.catalog, root.name)?.schema_definition)
    if (declared.size > 0) types.set(model, declared)
  }
  return readTemplate(text, { home, typesOf })
}

function textOf({ sql, source_collection, base_query, parameters, min_group_size }: Text) {
  const text: TemplateText = {
    parameters,
    minGroupSize: min_group_size ?? undefined,
    ...(sql !== undefined && { sql }),
    ...(source_collection !== undefined && { source_collection }),
    ...(base_query !== undefined && { base_query }),
  }
  return text
}
