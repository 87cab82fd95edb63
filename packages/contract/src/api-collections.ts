import { type Static, Type } from 'typebox'
import { Price } from './access-policy.ts'
import { limits } from './limits.ts'
import { QueryParameter } from './query-definition.ts'
import { defineContract } from './route.ts'
import {
  AppParams,
  Atomic,
  Described,
  Description,
  extendAppParams,
  MapOf,
  Name,
  Nullable,
  open,
  StringEnum,
  Time,
} from './schemas.ts'

const closed = { additionalProperties: false } as const

export const upstreamMethods = ['GET', 'POST'] as const
export const parameterPlaces = ['path', 'query', 'body'] as const

const Upstream = Type.Object(
  {
    url: Type.String({
      minLength: 1,
      maxLength: limits.upstreamUrlCharsMax,
      description:
        'http or https; `{name}` in its path stands for a parameter: `https://api.example.com/v1/forecast/{city}`',
    }),
    method: Type.Optional(
      StringEnum(upstreamMethods, { description: 'GET by default; POST sends a JSON body' }),
    ),
    headers: Type.Optional(
      MapOf(Type.String({ maxLength: limits.upstreamHeaderCharsMax }), {
        description:
          'headers that are sent with each request, keys of the API among them: `{"Authorization": "Bearer …"}`; kept encrypted and never shown again',
      }),
    ),
  },
  { ...closed, description: 'the request to your API that makes an answer' },
)

const { field_path: _, ...declared } = QueryParameter.properties

/** A parameter that callers can set, and its place in the request to the upstream. */
export const ApiParameter = Type.Object(
  {
    ...declared,
    in: Type.Optional(
      Type.Unsafe<(typeof parameterPlaces)[number]>({
        ...StringEnum(parameterPlaces),
        description:
          'path where the url names it, query otherwise; body: a member of the JSON body of a POST',
      }),
    ),
    as: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 100,
        description: 'its name in the query or the body of the upstream, if that is another one',
      }),
    ),
  },
  { $id: 'ApiParameter', ...closed },
)
export type ApiParameter = Static<typeof ApiParameter>

const Parameters = Type.Array(ApiParameter, {
  maxItems: limits.queryParametersMax,
  description: 'the values that callers give, each with its type and its place; none by default',
})

const CacheSeconds = Type.Integer({
  minimum: 0,
  maximum: limits.upstreamCacheSecondsMax,
  description:
    'seconds for which an answer is given again for the same parameters; 0, as by default: never',
})

const settings = {
  description: Type.Optional(Nullable(Description)),
  upstream: Upstream,
  parameters: Type.Optional(Parameters),
  cache_seconds: Type.Optional(CacheSeconds),
}

export const ApiCollection = Type.Object(
  {
    name: Name,
    collection_id: Type.String({ description: 'an id that stays when the name changes' }),
    description: Nullable(Type.String()),
    endpoint: Type.String({ description: 'path of its data' }),
    parameters: Parameters,
    price: Type.Object(
      { per_access: Atomic, per_row: Atomic, per_kb: Atomic },
      { description: 'for others; an answer counts as one row' },
    ),
    cache_seconds: CacheSeconds,
    upstream: Type.Optional(
      Type.Object(
        {
          url: Type.String(),
          method: StringEnum(upstreamMethods),
          headers: Type.Array(Type.String(), { description: 'the names of those that are set' }),
        },
        { description: 'for keys of the application' },
      ),
    ),
    created_at: Time,
    updated_at: Time,
  },
  { $id: 'ApiCollection' },
)

const ApiParams = extendAppParams({
  name: Described(Name, 'the name of the API collection', ['forecast']),
})
const refusals = ['APPLICATION_NOT_FOUND', 'COLLECTION_NOT_FOUND'] as const

export const apiCollections = defineContract({
  createApiCollection: {
    method: 'POST',
    path: '/api/apps/:app/api-collections',
    area: 'API Collections',
    summary: 'Sell an HTTP API of your own through this service',
    description:
      'Makes a collection of type `api`: it holds no records, and each read of its data is a request to the upstream. The price is asked for an answer, of which only one that the upstream gives with a 2xx status counts.',
    access: 'Admin',
    shows: 'definitions',
    status: 201,
    params: AppParams,
    body: Type.Object(
      {
        name: Described(Name, 'the name in paths: 1-63 of a-z A-Z 0-9 _ -'),
        ...settings,
        price: Type.Optional(Nullable(Price)),
        read: Type.Optional(
          Type.Unsafe<'public' | 'key' | 'private'>({
            ...StringEnum(['public', 'key', 'private']),
            description:
              'public: anyone, for the price where there is one; key: keys of the application; private: these, and others do not learn of it. By default the keys, and buyers as soon as it has a price',
          }),
        ),
      },
      {
        ...closed,
        examples: [
          {
            name: 'forecast',
            upstream: {
              url: 'https://api.example.com/v1/forecast/{city}',
              headers: { Authorization: 'Bearer my-own-key' },
            },
            parameters: [
              { name: 'city', maxLength: 80 },
              { name: 'days', type: 'integer', min: 1, max: 14, default: 3 },
            ],
            price: { per_access: '2000' },
            cache_seconds: 60,
          },
        ],
      },
    ),
    reply: ApiCollection,
    errors: ['APPLICATION_NOT_FOUND', 'COLLECTION_EXISTS', 'VIEW_EXISTS', 'CONFLICT'],
  },
  getApiCollection: {
    method: 'GET',
    path: '/api/apps/:app/api-collections/:name',
    area: 'API Collections',
    summary:
      'An API collection with its parameters and price; its upstream is for keys of the application',
    access: 'by-policy',
    shows: 'definitions',
    params: ApiParams,
    reply: ApiCollection,
    errors: refusals,
  },
  updateApiCollection: {
    method: 'PUT',
    path: '/api/apps/:app/api-collections/:name',
    area: 'API Collections',
    summary: 'Replace the upstream and the parameters of an API collection',
    description:
      'Headers that are not sent again are no longer set. Price and readers change as those of any collection do; `DELETE /api/apps/{app}/collections/{name}` deletes it.',
    access: 'Admin',
    shows: 'definitions',
    params: ApiParams,
    body: Type.Object(settings, closed),
    reply: ApiCollection,
    errors: [...refusals, 'CONFLICT'],
  },
  getApiCollectionData: {
    method: 'GET',
    path: '/api/apps/:app/api-collections/:name/data',
    area: 'API Collections',
    summary: 'Ask an API collection',
    description:
      'Its parameters stand in the query string: an unknown, a missing and an ill-typed one are 400. The answer is the body that the upstream gave, with its content type. Where it has a price, the reply without a payment is 402; an answer that the upstream does not give costs nothing.',
    access: 'by-policy',
    shows: 'records',
    paid: true,
    isForeign: true,
    params: ApiParams,
    query: Type.Object(
      {
        max_kb: Type.Optional(
          Type.Integer({
            minimum: 1,
            maximum: limits.upstreamBytesMax / 1024,
            description:
              'the most KB (1,024 bytes) of an answer that is sold by the KB, and of its quote; 64 by default. Without a price by the KB it bounds nothing',
          }),
        ),
      },
      {
        ...open,
        description:
          'the values of the `parameters` of the API collection, each a parameter of its own: `?city=Graz&days=3`',
        examples: [{ city: 'Graz' }],
      },
    ),
    reply: Type.Unknown({ description: 'as the upstream gave it' }),
    otherReplyTypes: ['*/*'],
    errors: [
      ...refusals,
      'CONFLICT',
      'PAYMENT_REQUIRED',
      'RATE_LIMITED',
      'RESULT_TOO_LARGE',
      'UPSTREAM_FAILED',
      'UPSTREAM_TIMEOUT',
      'UNAVAILABLE',
      'OFFER_CHANGED',
      'PAYMENT_ALREADY_USED',
      'PAYMENT_HELD',
      'PAYMENT_PENDING',
    ],
  },
})
