import { makeInvalidFault } from '../../base/fault.ts'
import { extendPointer } from '../../query/field-path.ts'
import { buildQuery, type SqlOptions } from '../../query/sql/parse-sql.ts'
import { readSource } from '../../query/sql/source-text.ts'
import { awaitTurnAfterSteps } from '../../query/steps.ts'
import type { Query } from '../../query/tree/query.ts'
import { type DefaultOrder, splitDefaultOrder } from './default-order.ts'
import { locateSql } from './marked-sql.ts'
import { makePlace } from './print-definition.ts'
import { toModel } from './print-names.ts'
import { readQueryParts } from './read-query.ts'
import { readViewStatements } from './read-view-statements.ts'
import type { ViewDefinition } from './view-definition.ts'

export type DefinitionOptions = {
  /** The application of bare names of collections. */
  readonly app: string
  /** The view that is defined, `app::name`, which must not read itself. */
  readonly self?: string
  /**
   * `source_collections` as sent: must equal the sources that are read; its first is read if the query has no
   * `from`.
   */
  readonly sources?: unknown
  /** Members of the query that stand beside it in the request. */
  readonly siblings?: Readonly<Record<string, unknown>>
  /** The types that collections declare for their fields, by dotted name. */
  readonly typesOf?: SqlOptions['typesOf']
  /** Definitions of the models that are views. */
  readonly viewOf?: (model: string) => ViewDefinition | undefined
  /** True for a definition that was taken in once (see SqlOptions). */
  readonly isStored?: boolean
  /** True if it may take no more steps than a new one (see SqlOptions). */
  readonly isBounded?: boolean
}

export type ReadDefinition = {
  readonly definition: ViewDefinition
  /**
   * The checked query, in which the views that it reads are sub-queries. An order that chooses no rows is left out.
   */
  readonly query: Query
  /** Collections and views that it names, as `app::name`, each once. */
  readonly models: readonly string[]
  /** The order that it gives its rows, for readers that ask for none. */
  readonly defaultOrder: DefaultOrder | undefined
}

/**
 * Reads a view's query, sent in the grammar or one of its short forms: returns its canonical form with the checked
 * query that it states, or throws a 400 that names the member by JSON pointer.
 */
export async function readViewDefinition(
  sent: unknown,
  options: DefinitionOptions,
): Promise<ReadDefinition> {
  const { json, sql, models } = readParts(sent, options)
  const { text, relocated } = locateSql(sql)
  const views = await readViewStatements(models, { pointer: '/query', ...options })
  try {
    const source = await readSource(text)
    // A part without a place of its own is the whole query's: the member around it could be any other's.
    const refuse: typeof source.refuse = (location, problem) => source.refuse(location, problem)
    const query = buildQuery(
      { ...source, refuse },
      {
        now: undefined,
        recordCalls: true,
        isStored: options.isStored ?? false,
        ...(options.isBounded === undefined ? {} : { isBounded: options.isBounded }),
        viewOf: (model) => views.get(model),
        ...(options.typesOf === undefined ? {} : { typesOf: options.typesOf }),
      },
    )
    const parts = splitDefaultOrder(query)
    await awaitTurnAfterSteps()
    return { definition: json, models, ...parts }
  } catch (error) {
    throw relocated(error)
  }
}

/** Lists the collections and views that a definition names, before anything is known of them. */
export function listModels(
  sent: unknown,
  options: Pick<DefinitionOptions, 'app' | 'sources' | 'siblings'>,
): readonly string[] {
  return readParts(sent, options).models
}

function readParts(
  sent: unknown,
  { app, sources, siblings }: Pick<DefinitionOptions, 'app' | 'sources' | 'siblings'>,
) {
  const place = makePlace(app)
  const beside = Object.entries(siblings ?? {}).filter(([, value]) => value !== undefined)
  const names = parseSources(sources)
  const [first] = names ?? []
  const root = { value: first, place: { ...place, pointer: extendPointer(pointer, 0) } }
  const read = readQueryParts(
    [
      { value: sent, place },
      { value: Object.fromEntries(beside), place: { ...place, pointer: '' } },
    ],
    first === undefined ? undefined : root,
  )
  const models = [...place.models]
  if (models.length === 0) throw makeInvalidFault('/query', 'reads no collection')
  if (names !== undefined) checkSources(names, models, app)
  return { ...read, models }
}

const pointer = '/source_collections'

function parseSources(sources: unknown): readonly string[] | undefined {
  if (sources === undefined || sources === null) return undefined
  if (!Array.isArray(sources)) throw makeInvalidFault(pointer, 'must be a list of collections')
  return sources.map((name: unknown, index) => {
    if (typeof name !== 'string')
      throw makeInvalidFault(extendPointer(pointer, index), 'must be a string')
    return name
  })
}

function checkSources(sources: readonly string[], models: readonly string[], app: string): void {
  const named = sources.map((name, index) => toModel(name, app, extendPointer(pointer, index)))
  const unread = named.findIndex((model) => !models.includes(model))
  if (unread >= 0)
    throw makeInvalidFault(
      extendPointer(pointer, unread),
      `is ${named[unread]}, which the query does not read; it reads ${models.join(', ')}`,
    )
  const missing = models.find((model) => !named.includes(model))
  if (missing !== undefined)
    throw makeInvalidFault(pointer, `lacks ${missing}, which the query reads`)
}
