import { Fault } from '../../base/fault.ts'
import { isRecord } from '../../base/is-record.ts'
import type { OutputColumn, Query, ValueType } from '../../query/tree/query.ts'
import { isRowQuery } from '../../query/tree/sources.ts'
import type { DefaultOrder } from '../../views/definition/default-order.ts'
import { readViewDefinition } from '../../views/definition/read-view-definition.ts'
import { planView, type ViewProgram } from '../../views/view-program.ts'
import type { CollectionState, IndexDefinition, StoredView } from './definitions.ts'
import { readPolicy } from './policy.ts'

/** A view with what its definition comes to. */
export type PlannedView = {
  readonly view: StoredView
  /** Undefined where this version of the service cannot read the definition any more. */
  readonly plan: ViewPlan | undefined
}

export type ViewPlan = {
  readonly query: Query
  /** It gives rows of one source one by one, be that a view. */
  readonly isRows: boolean
  readonly program: ViewProgram
  readonly defaultOrder: DefaultOrder | undefined
}

/** Reads a stored definition. It names all that its meaning depends on, so the outcome is the same at any time. */
export async function planOf(view: StoredView): Promise<PlannedView> {
  try {
    const { query, defaultOrder } = await readViewDefinition(view.query, {
      app: view.app,
      typesOf: (model) => typesOf(view, model),
      viewOf: (model) => view.inner[model],
    })
    const isRows = await givesRows(view, query)
    return { view, plan: { query, isRows, program: planView(query), defaultOrder } }
  } catch (error) {
    // A definition that was taken in once must not stop the application.
    if (error instanceof Fault) return { view, plan: undefined }
    throw error
  }
}

/** Judged by the definition as it is written: `query` has the definitions of its views in their places. */
async function givesRows(view: StoredView, query: Query): Promise<boolean> {
  if (Object.keys(view.inner).length === 0) return isRowQuery(query)
  try {
    return isRowQuery((await readViewDefinition(view.query, { app: view.app })).query)
  } catch (error) {
    // What can be read of views alone is no row of one of them.
    if (error instanceof Fault) return false
    throw error
  }
}

function typesOf({ types }: StoredView, model: string): ReadonlyMap<string, ValueType> | undefined {
  const known = types[model]
  return known === undefined ? undefined : new Map(Object.entries(known))
}

export function viewTable({ number }: { readonly number: number }): string {
  return `v_${number}`
}

/** A view as what it is read as: a collection of rows without keys. */
export function viewStateOf(
  { view, plan }: PlannedView,
  from: {
    readonly indexes: readonly IndexDefinition[]
    /** Collections and views of the same application, by id. */
    readonly sourceOf: (id: string) => CollectionState | undefined
  },
): CollectionState {
  const { id, number, name, created_at } = view
  const access_policy = policyNow(view, from.sourceOf)
  return {
    id,
    number,
    name,
    namespace: name,
    // No field has this name, so none is looked for as a key.
    primary_column: '',
    sort_column: null,
    collection_type: 'document',
    access_policy,
    schema_definition: { fields: fieldsOf(plan?.program.columns ?? []) },
    created_at,
    updated_at: created_at,
    table: viewTable(view),
    policy: readPolicy(access_policy),
    indexes: from.indexes,
    view,
  }
}

/** From the least strict on. */
export const strictness = ['public', 'key', 'private'] as const

/** The policy with `read` filled in where its owner left that to the sources. */
function policyNow(
  { app, sources, access_policy: sent, least_read: least }: StoredView,
  sourceOf: (id: string) => CollectionState | undefined,
): unknown {
  if (least === null) return sent
  const own = sources.filter((source) => source.app === app).map(({ id }) => sourceOf(id))
  const levels = [least, ...own.map((source) => source?.policy.read ?? least)]
  const read = strictness[Math.max(...levels.map((level) => strictness.indexOf(level)))]
  return { ...(isRecord(sent) ? sent : {}), read }
}

/** The declaration of a view's fields, as far as its definition says what they are. */
function fieldsOf(columns: readonly OutputColumn[]): Record<string, { type: string }> {
  const types: Partial<Record<ValueType, string>> = {
    number: 'number',
    boolean: 'boolean',
    text: 'string',
  }
  return Object.fromEntries(
    columns.flatMap(({ path, type }) => {
      const declared = types[type]
      return declared === undefined || path.length > 1 ? [] : [[path.join('.'), { type: declared }]]
    }),
  )
}
