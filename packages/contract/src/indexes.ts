import { Type } from 'typebox'
import { contract } from './route.ts'
import { AppParams, appParamsWith, CollectionParams, open, Success, Time } from './schemas.ts'

export const Index = Type.Object(
  {
    id: Type.String(),
    name: Type.String(),
    collection: Type.String(),
    field_name: Type.String(),
    field: Type.String(),
    fields: Type.Array(Type.String()),
    index_type: Type.String(),
    type: Type.String(),
    unique_constraint: Type.Boolean(),
    status: Type.String(),
    created_at: Time,
    updated: Type.Optional(Type.Boolean()),
    _warning: Type.Optional(Type.String()),
  },
  { $id: 'Index' },
)

const IndexParams = appParamsWith({
  collection: Type.String({ minLength: 1, maxLength: 128 }),
  name: Type.String({ minLength: 1, maxLength: 400 }),
})

/** The public clients speak several dialects; which keys count is decided in the operation. */
const AnyIndexBody = Type.Object({}, open)
const errors = ['APPLICATION_NOT_FOUND', 'COLLECTION_NOT_FOUND', 'CONFLICT'] as const

export const indexes = contract({
  createIndex: {
    method: 'POST',
    path: '/api/apps/:app/indexes',
    area: 'Indexes',
    summary: 'Create an index, or change the one on the same field; a missing collection is made',
    access: 'Write',
    params: AppParams,
    body: AnyIndexBody,
    reply: Index,
    errors,
  },
  createCollectionIndex: {
    method: 'POST',
    path: '/api/apps/:app/collections/:collection/indexes',
    area: 'Indexes',
    summary: 'Create an index on a collection',
    access: 'Write',
    params: CollectionParams,
    body: AnyIndexBody,
    reply: Index,
    errors,
  },
  listIndexes: {
    method: 'GET',
    path: '/api/apps/:app/indexes',
    area: 'Indexes',
    summary: 'List all indexes of an application',
    access: 'Read',
    params: AppParams,
    query: Type.Object({ include_stats: Type.Optional(Type.Boolean()) }),
    reply: Type.Array(Index),
    errors: ['APPLICATION_NOT_FOUND'],
  },
  listCollectionIndexes: {
    method: 'GET',
    path: '/api/apps/:app/collections/:collection/indexes',
    area: 'Indexes',
    summary: 'List the indexes of a collection',
    access: 'Read',
    params: CollectionParams,
    query: Type.Object({ include_stats: Type.Optional(Type.Boolean()) }),
    reply: Type.Object({ indexes: Type.Array(Index) }),
    errors: ['COLLECTION_NOT_FOUND'],
  },
  getIndex: {
    method: 'GET',
    path: '/api/apps/:app/collections/:collection/indexes/:name',
    area: 'Indexes',
    summary: 'Get an index by name',
    access: 'Read',
    params: IndexParams,
    reply: Index,
    errors: ['COLLECTION_NOT_FOUND', 'INDEX_NOT_FOUND'],
  },
  deleteCollectionIndex: {
    method: 'DELETE',
    path: '/api/apps/:app/collections/:collection/indexes/:name',
    area: 'Indexes',
    summary: 'Delete an index by name',
    access: 'Admin',
    params: IndexParams,
    reply: Success,
    errors: ['COLLECTION_NOT_FOUND', 'INDEX_NOT_FOUND'],
  },
  deleteIndex: {
    method: 'DELETE',
    path: '/api/apps/:app/indexes/:id',
    area: 'Indexes',
    summary: 'Delete an index by its id, its name, or `{collection}_{field}_index`',
    access: 'Admin',
    params: appParamsWith({ id: Type.String({ minLength: 1, maxLength: 400 }) }),
    reply: Success,
    errors: ['APPLICATION_NOT_FOUND', 'INDEX_NOT_FOUND'],
  },
})
