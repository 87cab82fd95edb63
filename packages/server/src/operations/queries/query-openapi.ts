import { interfaceVersion } from '@tollbase/contract/contract'
import { buildOpenApi, type OpenApi } from '@tollbase/contract/openapi'
import { formats } from '@tollbase/contract/queries'
import type { Route } from '@tollbase/contract/route'
import { AsOf, Lag, StringEnum } from '@tollbase/contract/schemas'
import { type TSchema, type TSchemaOptions, Type } from 'typebox'
import { requirePresent } from '../../base/assert.ts'
import { awaitTurn } from '../../base/await-turn.ts'
import type { QueryDescription } from './describe-query.ts'

/** Queries that are described without a pause. */
const queriesAtOnce = 2

/** Builds an OpenAPI 3.1 document with an operation for each of these queries. Other requests have turns meanwhile. */
export async function buildQueriesOpenapi(
  app: { readonly app_id: string; readonly name: string },
  queries: readonly QueryDescription[],
  baseUrl: string,
): Promise<OpenApi> {
  const parts: OpenApi[] = []
  for (let from = 0; from === 0 || from < queries.length; from += queriesAtOnce) {
    const some = queries.slice(from, from + queriesAtOnce)
    const routes = Object.fromEntries(some.map((query) => [query.name, buildRoute(query)]))
    parts.push(buildOpenApi(routes, { version: interfaceVersion }))
    await awaitTurn()
  }
  const document = joinDocuments(parts)
  const title = `${app.name}: predefined queries`
  const description = `What ${app.app_id} publishes. A call that costs something answers 402 with the price (x402).`
  const { version } = document.info
  return { ...document, info: { title, version, description }, servers: [{ url: baseUrl }] }
}

function joinDocuments([first, ...others]: readonly OpenApi[]): OpenApi {
  const document = requirePresent(first, 'a document')
  const all = [document, ...others]
  const { components } = document
  const schemas = Object.assign({}, ...all.map((each) => each.components.schemas))
  const parameters = Object.assign({}, ...all.map((each) => each.components.parameters))
  const headers = Object.assign({}, ...all.map((each) => each.components.headers))
  return {
    ...document,
    paths: Object.assign({}, ...all.map(({ paths }) => paths)),
    components: { ...components, schemas, parameters, headers },
  }
}

/** Builds the endpoint of one query. */
function buildRoute(query: QueryDescription): Route {
  return {
    method: 'GET',
    path: `/${query.endpoint.slice(1)}`,
    area: 'Predefined Queries',
    summary: `${query.name}, version ${query.version}`,
    ...(query.description !== null && { description: query.description }),
    access: query.public ? 'public' : 'by-policy',
    shows: 'records',
    paid: true,
    query: Type.Object({
      ...Object.fromEntries(query.parameters.map((one) => [one.name, buildSchema(one)])),
      ...buildPageParameters(query),
    }),
    reply: Type.Object({
      data: Type.Array(buildRowSchema(query)),
      count: Type.Integer(),
      query: Type.Literal(query.name),
      version: Type.Integer(),
      as_of: AsOf,
      lag: Type.Optional(Lag),
    }),
    otherReplyTypes: ['text/csv', 'application/x-ndjson'],
    errors: ['QUERY_NOT_FOUND', 'RESULT_TOO_LARGE', 'QUERY_TIMEOUT', 'UNAVAILABLE'],
  }
}

type Parameter = QueryDescription['parameters'][number]

function buildSchema(parameter: Parameter): TSchema {
  const { type, items, required, description, maxItems } = parameter
  const about = {
    ...(description !== undefined && { description }),
    ...(parameter.default !== undefined && { default: parameter.default }),
  }
  const schema =
    type === 'list'
      ? Type.Array(buildValueSchema(items ?? 'string', parameter, {}), {
          ...about,
          ...(maxItems !== undefined && { maxItems }),
        })
      : buildValueSchema(type ?? 'string', parameter, about)
  return required === true ? schema : Type.Optional(schema)
}

function buildValueSchema(
  type: NonNullable<Parameter['items']>,
  { values = [], min, max, pattern, minLength, maxLength }: Parameter,
  about: TSchemaOptions,
): TSchema {
  const bounds = {
    ...about,
    ...(typeof min === 'number' && { minimum: min }),
    ...(typeof max === 'number' && { maximum: max }),
  }
  switch (type) {
    case 'number':
      return Type.Number(bounds)
    case 'integer':
      return Type.Integer(bounds)
    case 'boolean':
      return Type.Boolean(about)
    case 'date':
      return Type.String({ ...about, examples: ['2026-01-31', '2026-01-31T12:00:00Z'] })
    case 'enum':
      return Type.Unsafe({ ...about, enum: [...values] })
    default:
      return Type.String({
        ...about,
        ...(pattern !== undefined && { pattern: pattern.replace(/^\(\?i\)/, '') }),
        ...(minLength !== undefined && { minLength }),
        ...(maxLength !== undefined && { maxLength }),
      })
  }
}

/** Builds the parameters that every query takes, except those whose name a parameter of its own has. */
function buildPageParameters({ parameters }: QueryDescription): Record<string, TSchema> {
  const own = new Set(parameters.map(({ name }) => name))
  const all = {
    limit: Type.Optional(Type.Integer({ minimum: 0, description: 'rows at most' })),
    offset: Type.Optional(Type.Integer({ minimum: 0, description: 'rows that are passed over' })),
    version: Type.Optional(Type.Integer({ minimum: 1, description: 'the newest when not given' })),
    format: Type.Optional(StringEnum(formats)),
  }
  return Object.fromEntries(Object.entries(all).filter(([name]) => !own.has(name)))
}

function buildRowSchema({ columns }: QueryDescription): TSchema {
  if (columns === null) return Type.Object({}, { description: 'a record whole' })
  return Type.Object(Object.fromEntries(columns.map((name) => [name, Type.Unknown()])))
}
