import { Type } from 'typebox'
import { limits } from './limits.ts'
import { contract } from './route.ts'
import {
  AppParams,
  Atomic,
  AtomicInput,
  CollectionParams,
  Name,
  Nullable,
  OneOf,
  open,
  Success,
  Time,
} from './schemas.ts'

export const Price = Type.Object(
  {
    per_access: Type.Optional(Nullable(AtomicInput)),
    per_row: Type.Optional(Nullable(AtomicInput)),
    per_kb: Type.Optional(Nullable(AtomicInput)),
  },
  {
    $id: 'Price',
    additionalProperties: false,
    description: 'Atomic units per access, per row returned, per 1,024 bytes returned',
  },
)

const FieldList = Type.Array(Type.String({ minLength: 1, maxLength: limits.fieldPathCharsMax }), {
  maxItems: 500,
})

/** The shape that is understood; anything else is stored as sent, enforced as private and answered with `_warning`. */
export const AccessPolicy = Type.Object(
  {
    read: Type.Optional(
      Type.Union([Type.Literal('public'), Type.Literal('key'), Type.Literal('private')]),
    ),
    price: Type.Optional(Nullable(Price)),
    preview: Type.Optional(
      Nullable(
        Type.Object(
          {
            rows: Type.Integer({ minimum: 0, maximum: limits.previewRowsMax }),
            fields: Type.Optional(FieldList),
          },
          { additionalProperties: false },
        ),
      ),
    ),
    derive: Type.Optional(
      Type.Union([
        Type.Literal('deny'),
        Type.Object({ per_access: AtomicInput }, { additionalProperties: false }),
      ]),
    ),
    offered: Type.Optional(
      Nullable(
        Type.Object(
          {
            select: Type.Optional(FieldList),
            filter: Type.Optional(FieldList),
            sort: Type.Optional(FieldList),
          },
          { additionalProperties: false },
        ),
      ),
    ),
    empty_answer: Type.Optional(Type.Union([Type.Literal('per_access'), Type.Literal('free')])),
  },
  { $id: 'AccessPolicy', additionalProperties: false },
)

export const collectionTypes = ['document', 'event', 'blob', 'api'] as const

export const Collection = Type.Object(
  {
    collection_id: Type.String(),
    name: Type.String(),
    namespace: Type.String(),
    primary_column: Type.String(),
    sort_column: Nullable(Type.String()),
    collection_type: Type.String(),
    access_policy: Type.Unknown(),
    schema_definition: Type.Unknown(),
    indexes: Type.Array(Type.Unknown()),
    created_at: Time,
    updated_at: Time,
    metadata: Type.Object({
      document_count: Type.Integer(),
      storage_size: Type.Integer({ description: 'bytes of the records as stored' }),
      avg_document_size: Type.Number(),
    }),
    _warning: Type.Optional(Type.String()),
  },
  { $id: 'Collection' },
)

const Column = Type.String({ minLength: 1, maxLength: limits.fieldPathCharsMax })
const settings = {
  namespace: Type.Optional(Nullable(Type.String({ minLength: 1, maxLength: limits.nameCharsMax }))),
  primary_column: Type.Optional(Nullable(Column)),
  sort_column: Type.Optional(Nullable(Column)),
  collection_type: Type.Optional(Nullable(OneOf(collectionTypes))),
  access_policy: Type.Optional(Type.Unknown()),
  schema_definition: Type.Optional(Type.Unknown()),
}

const StatsQuery = Type.Object({ include_stats: Type.Optional(Type.Boolean()) })

export const collections = contract({
  createCollection: {
    method: 'POST',
    path: '/api/apps/:app/collections',
    area: 'Collections',
    summary: 'Create a collection',
    access: 'Write',
    status: 201,
    params: AppParams,
    body: Type.Object({ name: Name, ...settings }, open),
    reply: Collection,
    errors: ['APPLICATION_NOT_FOUND', 'COLLECTION_EXISTS', 'CONFLICT'],
  },
  listCollections: {
    method: 'GET',
    path: '/api/apps/:app/collections',
    area: 'Collections',
    summary: 'List collections: all with a key of the application, the public ones without',
    access: 'public',
    params: AppParams,
    query: StatsQuery,
    reply: Type.Array(Collection),
    errors: ['APPLICATION_NOT_FOUND'],
  },
  getCollection: {
    method: 'GET',
    path: '/api/apps/:app/collections/:collection',
    area: 'Collections',
    summary: 'Get a collection by name or collection_id',
    access: 'by-policy',
    params: CollectionParams,
    query: StatsQuery,
    reply: Collection,
    errors: ['COLLECTION_NOT_FOUND'],
  },
  updateCollection: {
    method: 'PUT',
    path: '/api/apps/:app/collections/:collection',
    area: 'Collections',
    summary: 'Change a collection',
    access: 'Admin',
    params: CollectionParams,
    body: Type.Object({ name: Type.Optional(Name), ...settings }, open),
    reply: Collection,
    errors: ['COLLECTION_NOT_FOUND', 'CONFLICT'],
  },
  deleteCollection: {
    method: 'DELETE',
    path: '/api/apps/:app/collections/:collection',
    area: 'Collections',
    summary: 'Delete a collection; its entries stay in the chain',
    access: 'Admin',
    params: CollectionParams,
    body: Type.Object(
      { force: Type.Optional(Type.Boolean()), cascade: Type.Optional(Type.Boolean()) },
      open,
    ),
    bodyOptional: true,
    reply: Success,
    errors: ['COLLECTION_NOT_FOUND'],
  },
  validateRecord: {
    method: 'POST',
    path: '/api/apps/:app/collections/:collection/validate',
    area: 'Collections',
    summary: 'Check a record, or a list of them, against the schema, without storing it',
    access: 'Write',
    params: CollectionParams,
    body: Type.Object({ data: Type.Unknown() }, open),
    reply: Type.Object({ valid: Type.Boolean(), errors: Type.Optional(Type.Array(Type.String())) }),
    errors: ['COLLECTION_NOT_FOUND'],
  },
  getCollectionStats: {
    method: 'GET',
    path: '/api/apps/:app/collections/:collection/stats',
    area: 'Collections',
    summary: 'Counts and sizes of a collection',
    access: 'Read',
    params: CollectionParams,
    reply: Type.Object({
      created_at: Time,
      updated_at: Time,
      document_count: Type.Integer(),
      storage_size: Type.Integer(),
      avg_document_size: Type.Number(),
    }),
    errors: ['COLLECTION_NOT_FOUND'],
  },
  previewCollection: {
    method: 'GET',
    path: '/api/apps/:app/collections/:collection/preview',
    area: 'Collections',
    summary: 'A free, fixed sample of a collection, its schema and its size in bands',
    access: 'by-policy',
    params: CollectionParams,
    reply: Type.Object({
      collection: Type.String(),
      schema: Type.Unknown(),
      row_count_band: Type.String(),
      updated_at: Time,
      sample: Type.Array(Type.Unknown()),
      price: Type.Optional(Type.Object({ per_access: Atomic, per_row: Atomic, per_kb: Atomic })),
    }),
    errors: ['COLLECTION_NOT_FOUND'],
  },
})
