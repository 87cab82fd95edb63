import { type ErrorCode, errors } from './errors.ts'
import { listRefusalHeaders, listSuccessHeaders } from './list-reply-headers.ts'
import {
  headers,
  type Parameter,
  parameters,
  paymentSchemas,
  type Schema,
  securitySchemes,
} from './openapi-components.ts'
import { isRight, rights } from './permissions.ts'
import { type Schemas, toPlainSchema } from './plain-schema.ts'
import { type ReplyHeader, replyHeaders } from './reply-headers.ts'
import { paymentHeaders, type RequestHeader, requestHeaders } from './request-headers.ts'
import { type Access, areas, type Contract, canChange, type Route, type Shows } from './route.ts'
import { ErrorBody } from './schemas.ts'

type Reference = { readonly $ref: string }
type Content = { readonly [mediaType: string]: { readonly schema: Schema } }

export type Response = {
  readonly description: string
  readonly headers?: { readonly [name: string]: Reference }
  readonly content: Content
  /** The error codes that this status stands for here. */
  readonly 'x-error-codes'?: readonly ErrorCode[]
}

export type Operation = {
  readonly operationId: string
  readonly tags: readonly string[]
  readonly summary: string
  readonly description?: string
  readonly security: readonly { readonly [scheme: string]: readonly string[] }[]
  readonly parameters?: readonly (Parameter | Reference)[]
  readonly requestBody?: { readonly required: boolean; readonly content: Content }
  readonly responses: { readonly [status: string]: Response }
  readonly 'x-access': Access
  readonly 'x-shows': Shows
  readonly 'x-paid': boolean
  readonly 'x-aliases'?: readonly string[]
  /** The operation whose other path this is. */
  readonly 'x-alias-of'?: string
}

export type OpenApi = {
  readonly openapi: '3.1.0'
  readonly info: {
    readonly title: string
    readonly version: string
    readonly description: string
    readonly license?: { readonly name: string; readonly identifier: string }
  }
  readonly servers: readonly { readonly url: string }[]
  readonly tags: readonly { readonly name: string }[]
  readonly paths: { readonly [path: string]: { readonly [method: string]: Operation } }
  readonly components: {
    readonly schemas: { readonly [name: string]: Schema }
    readonly securitySchemes: typeof securitySchemes
    readonly parameters: typeof parameters
    readonly headers: typeof headers
  }
}

/**
 * Builds the OpenAPI 3.1 document of a contract, as plain JSON. Aliases of an operation stand beside it, with
 * `x-alias-of`. A schema with an `$id` becomes a component. Throws where two schemas share an `$id`, or a path
 * names a parameter without a schema.
 */
export function buildOpenApi(contract: Contract, options: { readonly version: string }): OpenApi {
  const schemas = new Map<string, Schema>(Object.entries(paymentSchemas))
  toPlainSchema(ErrorBody, schemas)
  const paths: Record<string, Record<string, Operation>> = {}
  for (const [operationId, route] of Object.entries(contract)) {
    const operation = makeOperation(operationId, route, schemas)
    for (const [at, place] of [route.path, ...(route.aliases ?? [])].entries()) {
      const path = toTemplate(place)
      const alias = { operationId: `${operationId}_${at + 1}`, 'x-alias-of': operationId }
      const methods = { [route.method.toLowerCase()]: { ...operation, ...(at > 0 && alias) } }
      paths[path] = { ...paths[path], ...methods }
    }
  }
  const used = new Set(Object.values(contract).map((route) => route.area))
  const named = listNamedComponents(paths)
  const filterNamed = <T>(components: { readonly [name: string]: T }, kind: string) =>
    Object.fromEntries(Object.entries(components).filter(([name]) => named.has(`${kind}/${name}`)))
  return {
    openapi: '3.1.0',
    info: {
      title: 'Tollbase',
      version: options.version,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      description:
        'Store application data on a chain of your own, charge for it over HTTP 402, and prove every answer. Every path below `/api/apps/` is served below `/apps/` too. Every reply, a refusal too, has `X-Request-Id` and `X-Content-Type-Options: nosniff`, and `RateLimit` with `RateLimit-Policy` where a quota applied to it.',
    },
    servers: [{ url: '/' }],
    tags: areas.filter((area) => used.has(area)).map((name) => ({ name })),
    paths,
    components: {
      schemas: Object.fromEntries([...schemas].sort(([a], [b]) => (a < b ? -1 : 1))),
      securitySchemes,
      parameters: filterNamed(parameters, 'parameters'),
      headers: filterNamed(headers, 'headers'),
    },
  }
}

/** Lists the components that operations name, each as `<kind>/<name>`. */
function listNamedComponents(paths: OpenApi['paths']): ReadonlySet<string> {
  const [, ...references] = JSON.stringify(paths).split('"#/components/')
  return new Set(references.map((text) => text.slice(0, text.indexOf('"'))))
}

/**
 * Lists all codes that a route can answer with, in the order of the catalogue: its own, and those that its form
 * implies (a body can be too large, a payment malformed).
 */
export function listErrorCodes(route: Route): readonly ErrorCode[] {
  const codes = new Set<ErrorCode>([...commonCodes, ...listOwnCodes(route)])
  // A sale is written whatever the method is.
  if (route.method !== 'GET' || route.paid) for (const code of storageCodes) codes.add(code)
  if (route.method !== 'GET' && isRight(route.access) && rights[route.access].stores)
    codes.add('QUOTA_EXCEEDED')
  if (route.access !== 'public') codes.add('FORBIDDEN')
  if (route.path.includes('/:app')) codes.add('APPLICATION_NOT_FOUND')
  if (route.paid) for (const code of paymentCodes) codes.add(code)
  if (route.paid && !route.onlyByPayment) codes.add('SPENDING_LIMIT')
  if (canChange(route)) for (const code of namedCodes) codes.add(code)
  const catalogue = Object.keys(errors) as ErrorCode[]
  return catalogue.filter((code) => codes.has(code))
}

/** The codes that a route names, and those that follow from what it names: one that names collections meets each kind. */
function listOwnCodes({ errors: named = [] }: Route): readonly ErrorCode[] {
  return named.includes('COLLECTION_NOT_FOUND') ? [...named, ...kindCodes] : named
}

/** Refusals of what a collection cannot do because it is encrypted, or holds no records. */
const kindCodes = ['NOT_ON_PRIVATE', 'API_COLLECTION'] as const

const commonCodes = [
  'VALIDATION_FAILED',
  'UNKNOWN_MEMBER',
  'CREDENTIALS_CONFLICT',
  'UNAUTHORIZED',
  'REQUEST_TIMEOUT',
  'PAYLOAD_TOO_LARGE',
  'RATE_LIMITED',
  'HEADERS_TOO_LARGE',
  'INTERNAL',
  'UNAVAILABLE',
] as const
const namedCodes = ['IDEMPOTENCY_KEY_USED', 'REQUEST_IN_PROGRESS', 'ANSWER_LOST'] as const
const storageCodes = ['STORAGE_FULL', 'STORAGE_READ_ONLY'] as const
const paymentCodes = [
  'PAYMENT_MALFORMED',
  'PAYMENT_REQUIRED',
  'PAYMENT_ALREADY_USED',
  'PAYMENT_HELD',
  'OFFER_CHANGED',
  'PAYMENT_REPLY_GONE',
  'PAYMENT_PENDING',
  'PAYMENT_NETWORK_UNREACHABLE',
] as const

function makeOperation(operationId: string, route: Route, schemas: Schemas): Operation {
  const listed = listParameters(route, schemas)
  return {
    operationId,
    tags: [route.area],
    summary: route.summary,
    ...(route.description !== undefined && { description: route.description }),
    security: toSecurity(route.access),
    ...(listed.length > 0 && { parameters: listed }),
    ...(route.form && {
      requestBody: {
        required: true,
        content: { 'multipart/form-data': { schema: toPlainSchema(route.form, schemas) } },
      },
    }),
    ...(route.stream !== undefined && {
      requestBody: {
        required: route.bodyOptional !== true,
        content: { [route.stream]: { schema: { type: 'string', format: 'binary' } } },
      },
    }),
    ...(route.body && {
      requestBody: {
        required: route.bodyOptional !== true,
        content: { 'application/json': { schema: toPlainSchema(route.body, schemas) } },
      },
    }),
    responses: {
      ...makeSuccesses(route, schemas),
      ...makeRefusals(route, schemas),
    },
    'x-access': route.access,
    'x-shows': route.shows,
    'x-paid': route.paid ?? false,
    ...(route.aliases && { 'x-aliases': route.aliases.map(toTemplate) }),
  }
}

function listParameters(route: Route, schemas: Schemas): (Parameter | Reference)[] {
  const named = [...route.path.matchAll(/:(\w+)/g)].map(([, name = '']) => name)
  const properties = route.params?.properties ?? {}
  const missing = named.find((name) => properties[name] === undefined)
  if (missing !== undefined) throw new Error(`${route.path}: no schema for :${missing}`)
  return [
    ...named.map((name) =>
      makeParameter(
        { name, in: 'path', required: true },
        toPlainSchema(properties[name] ?? {}, schemas),
      ),
    ),
    ...Object.entries(route.query?.properties ?? {}).map(([name, schema]) => {
      const required = route.query?.required?.includes(name) ?? false
      return makeParameter({ name, in: 'query', required }, toPlainSchema(schema, schemas))
    }),
    ...listFreeParameters(route.query, schemas),
    ...listRequestHeaders(route).map((name) => ({
      $ref: `#/components/parameters/${requestHeaders[name].component}`,
    })),
  ]
}

/** Describes the parameters that a query string may have beside the named ones: together they are one object. */
function listFreeParameters(query: Route['query'], schemas: Schemas): readonly Parameter[] {
  const { properties: _, required: __, ...schema } = query ? toPlainSchema(query, schemas) : {}
  if (schema.additionalProperties !== true) return []
  const place = { name: 'parameters', in: 'query', required: false } as const
  return [{ ...makeParameter(place, schema), style: 'form', explode: true }]
}

/** Lists the headers that change what a route answers: those that its form implies, and its own. */
function listRequestHeaders(route: Route): readonly RequestHeader[] {
  return [
    ...(route.paid === true ? paymentHeaders : []),
    ...(route.paid === true || canChange(route) ? (['Idempotency-Key'] as const) : []),
    ...(route.requestHeaders ?? []),
  ]
}

/** Moves the description from the schema to the parameter, where readers look for it. */
function makeParameter(
  place: { name: string; in: 'path' | 'query'; required: boolean },
  { description, ...schema }: Schema,
): Parameter {
  return { ...place, ...(typeof description === 'string' && { description }), schema }
}

function toSecurity(access: Access): Operation['security'] {
  const keys = [{ app_key: [] }, { x_api_key: [] }, { bearer: [] }, { api_key: [] }]
  const paying = [{ agent_key: [] }, { user_key: [] }]
  const wallet = { wallet_address: [], wallet_timestamp: [], wallet_signature: [] }
  if (isRight(access)) return [...keys, { operator: [] }, wallet]
  switch (access) {
    case 'public':
    case 'by-policy':
      return [{}, ...keys, ...paying, wallet]
    case 'operator':
      return [{ operator: [] }]
    case 'owner':
    case 'registrar':
      return [{ operator: [] }, wallet]
  }
}

type SuccessStatus = NonNullable<Route['status'] | NonNullable<Route['otherStatuses']>[number]>

function makeSuccesses(route: Route, schemas: Schemas): Record<string, Response> {
  const statuses = [route.status ?? 200, ...(route.otherStatuses ?? [])]
  return Object.fromEntries(
    statuses.map((status) => [String(status), makeSuccess(status, route, schemas)]),
  )
}

function makeSuccess(status: SuccessStatus, route: Route, schemas: Schemas): Response {
  const descriptions = {
    200: 'Done.',
    201: 'Created.',
    202: 'Accepted; durable from now on.',
    204: 'Done; the headers have the answer.',
    206: 'The part that Range asks for.',
    304: 'The caller has this answer.',
  }
  return {
    description: descriptions[status],
    headers: toHeaders(listSuccessHeaders(route)),
    content: status === 204 || status === 304 ? {} : makeContent(status, route, schemas),
  }
}

function toHeaders(names: readonly ReplyHeader[]): NonNullable<Response['headers']> {
  const refer = (name: ReplyHeader) => ({
    $ref: `#/components/headers/${replyHeaders[name].component}`,
  })
  return Object.fromEntries(names.map((name) => [name, refer(name)]))
}

function makeContent(status: SuccessStatus, route: Route, schemas: Schemas): Content {
  const others = (route.otherReplyTypes ?? []).map((type) => [
    type,
    { schema: { type: 'string', ...(type === '*/*' && { format: 'binary' }) } },
  ])
  // A part of the bytes is never written as JSON.
  if (status === 206) return Object.fromEntries(others)
  return {
    [route.replyType ?? 'application/json']: { schema: toPlainSchema(route.reply, schemas) },
    ...Object.fromEntries(others),
  }
}

function makeRefusals(route: Route, schemas: Schemas): Record<string, Response> {
  const byStatus = new Map<number, ErrorCode[]>()
  for (const code of listErrorCodes(route)) {
    const { status } = errors[code]
    byStatus.set(status, [...(byStatus.get(status) ?? []), code])
  }
  const statuses = [...byStatus].sort(([a], [b]) => a - b)
  return Object.fromEntries(
    statuses.map(([status, codes]) => {
      const own = route.refusalReplies?.[status]
      const schema = own && toPlainSchema(own, schemas)
      return [String(status), makeRefusal(status, { codes, schema })]
    }),
  )
}

function makeRefusal(
  status: number,
  { codes, schema }: { codes: readonly ErrorCode[]; schema: Schema | undefined },
): Response {
  const retry = status === 429 || status === 503 || codes.includes('REQUEST_IN_PROGRESS')
  const names = listRefusalHeaders(status, retry)
  const common = {
    $ref: `#/components/schemas/${status === 402 ? 'PaymentRequired' : 'Error'}`,
  }
  return {
    description: codes.map((code) => `\`${code}\`: ${errors[code].text}`).join('\n\n'),
    ...(names.length > 0 && { headers: toHeaders(names) }),
    content: {
      'application/json': { schema: schema === undefined ? common : { anyOf: [schema, common] } },
    },
    'x-error-codes': codes,
  }
}

function toTemplate(path: string): string {
  return path.replace(/:(\w+)/g, '{$1}')
}
