import { Type } from 'typebox'
import { defineContract } from './route.ts'
import {
  AppParams,
  CollectionParam,
  defineAmount,
  extendAppParams,
  Nullable,
  Success,
  Time,
} from './schemas.ts'

export const Grant = Type.Object(
  {
    id: Type.String({ description: 'names the grant in POST .../revoke' }),
    grantee: Type.String({ description: 'the application that may build views on the source' }),
    collection: Type.Optional(Type.String({ description: 'the source, where it is a collection' })),
    view: Type.Optional(Type.String({ description: 'the source, where it is a view' })),
    per_access: Nullable(
      Type.String({ description: "atomic units; null: the source's own derive price" }),
    ),
    created_at: Time,
  },
  { $id: 'Grant' },
)

const GrantParams = extendAppParams({
  id: Type.String({ minLength: 1, maxLength: 64, description: 'the `id` of the grant' }),
})

export const grants = defineContract({
  createGrant: {
    method: 'POST',
    path: '/api/apps/:app/grants',
    area: 'Materialized Views',
    summary: 'Let another application build views on a collection or a view',
    description:
      'Each read of such a view costs its reader `per_access`, or else the derive price of the source, and that is this application’s. The same again changes the price.',
    access: 'Admin',
    shows: 'definitions',
    status: 201,
    params: AppParams,
    body: Type.Object(
      {
        grantee: Type.String({
          minLength: 1,
          maxLength: 64,
          description: 'the id of the application that may build views on it',
        }),
        collection: Type.Optional(Nullable(CollectionParam)),
        view: Type.Optional(
          Nullable(
            Type.String({
              minLength: 1,
              maxLength: 128,
              description: 'instead of a collection: the name of a view',
            }),
          ),
        ),
        per_access: Type.Optional(
          Nullable(
            defineAmount(
              'the price of each read of such a view',
              'by default the derive price of the source, without which it is needed',
            ),
          ),
        ),
      },
      { examples: [{ grantee: 'maps', collection: 'stations', per_access: '100' }] },
    ),
    reply: Grant,
    errors: ['APPLICATION_NOT_FOUND', 'COLLECTION_NOT_FOUND', 'VIEW_NOT_FOUND', 'CONFLICT'],
  },
  listGrants: {
    method: 'GET',
    path: '/api/apps/:app/grants',
    area: 'Materialized Views',
    summary: 'List the grants of an application',
    access: 'Read',
    shows: 'definitions',
    params: AppParams,
    reply: Type.Object({ grants: Type.Array(Grant) }),
    errors: ['APPLICATION_NOT_FOUND'],
  },
  revokeGrant: {
    method: 'POST',
    path: '/api/apps/:app/grants/:id/revoke',
    area: 'Materialized Views',
    summary: 'Take a grant back: views that need it cannot be read or refreshed any more',
    access: 'Admin',
    shows: 'outcome',
    params: GrantParams,
    body: Type.Object({}),
    bodyOptional: true,
    reply: Success,
    errors: ['APPLICATION_NOT_FOUND', 'GRANT_NOT_FOUND'],
  },
  deleteGrant: {
    method: 'DELETE',
    path: '/api/apps/:app/grants/:id',
    area: 'Materialized Views',
    summary: 'Take a grant back',
    access: 'Admin',
    shows: 'outcome',
    params: GrantParams,
    reply: Success,
    errors: ['APPLICATION_NOT_FOUND', 'GRANT_NOT_FOUND'],
  },
})
