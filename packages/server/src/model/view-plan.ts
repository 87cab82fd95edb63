import { Fault } from '../base/fault.ts'
import type { UsedFields } from '../query/join.ts'
import { awaitTurnAfterSteps, limitSteps, runUnbound } from '../query/steps.ts'
import { computeRowSizes, type RowSizes } from '../query/tree/estimate-sizes.ts'
import type { Query, ValueType } from '../query/tree/query.ts'
import { collectQuerySources, isRowQuery } from '../query/tree/query-sources.ts'
import type { DefaultOrder } from '../views/definition/default-order.ts'
import { readViewDefinition } from '../views/definition/read-view-definition.ts'
import { planView, type ViewProgram } from '../views/view-program.ts'
import type { StoredView } from './definitions.ts'

/** A view with what its definition comes to. */
export type PlannedView = {
  readonly view: StoredView
  /** Undefined where this version of the service cannot read the definition any more. */
  readonly plan: ViewPlan | undefined
}

export type ViewPlan = {
  readonly query: Query
  /** True if it gives rows of one source one by one, even of a view. */
  readonly isRows: boolean
  /** The fields used of each source that its definition names, by model. */
  readonly uses: SourceUses
  readonly program: ViewProgram
  readonly rowSizes: RowSizes
  readonly defaultOrder: DefaultOrder | undefined
}

export type SourceUses = ReadonlyMap<string, UsedFields>

/** The fields that a view may use of each source where its definition cannot be read any more: all. */
export const anyFields: UsedFields = { filter: ['*'], sort: ['*'], select: 'all' }

/** Reads a stored definition. It contains all that its meaning depends on, so the outcome is the same at any time. */
export async function planStoredView(view: StoredView): Promise<PlannedView> {
  try {
    return { view, plan: await planNewView(view, false) }
  } catch (error) {
    // A definition that was taken in once must not stop the application.
    if (error instanceof Fault) return { view, plan: undefined }
    throw error
  }
}

/** Plans a view that has been checked; throws a 400 where that takes more steps than a new view may take. */
export async function planNewView(view: StoredView, isBounded = true): Promise<ViewPlan> {
  const run = isBounded ? limitSteps : runUnbound
  const { query, defaultOrder } = await readViewDefinition(view.query, {
    app: view.app,
    typesOf: (model) => findTypes(view, model),
    viewOf: (model) => view.inner[model],
    isStored: true,
    isBounded,
  })
  const hasViews = Object.keys(view.inner).length > 0
  const written = hasViews ? await readQueryAsWritten(view.query, view) : query
  const uses = listSourceUses(written, view.sources)
  const isRows = written !== undefined && isRowQuery(written)
  const program = run(() => planView(query))
  const rowSizes = run(() => computeRowSizes(query))
  await awaitTurnAfterSteps()
  return { query, isRows, uses, program, rowSizes, defaultOrder }
}

/**
 * The definition with its views as sources, where `ViewPlan.query` has the definitions of these in their places;
 * undefined where it cannot be read without those.
 */
export async function readQueryAsWritten(
  definition: unknown,
  { app }: { readonly app: string },
): Promise<Query | undefined> {
  try {
    return (await readViewDefinition(definition, { app, isStored: true })).query
  } catch (error) {
    if (error instanceof Fault) return undefined
    throw error
  }
}

/** Lists the fields that a query uses of each model; all of them where the query cannot be read by itself. */
export function listSourceUses(
  query: Query | undefined,
  sources: readonly { readonly model: string }[],
): SourceUses {
  const found = query === undefined ? [] : collectQuerySources(query)
  return new Map(
    sources.map(({ model }) => {
      const own = found.filter((use) => use.model === model).map(({ used }) => used)
      const all = query === undefined || own.some(({ select }) => select === 'all')
      return [
        model,
        {
          filter: query === undefined ? ['*'] : own.flatMap(({ filter }) => filter),
          sort: query === undefined ? ['*'] : own.flatMap(({ sort }) => sort),
          select: all ? 'all' : own.flatMap(({ select }) => (select === 'all' ? [] : select)),
        },
      ]
    }),
  )
}

function findTypes(
  { types }: StoredView,
  model: string,
): ReadonlyMap<string, ValueType> | undefined {
  const known = types[model]
  return known === undefined ? undefined : new Map(Object.entries(known))
}
