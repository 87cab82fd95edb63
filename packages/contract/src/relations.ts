import { Type } from 'typebox'
import { limits } from './limits.ts'
import { defineContract } from './route.ts'
import { AppParams, Described, extendAppParams, Name, Success, Time } from './schemas.ts'

const defineField = (description: string) =>
  Type.String({ minLength: 1, maxLength: limits.fieldPathCharsMax, description })

const relation = {
  parent_collection: Type.String({ description: 'the collection that is referred to' }),
  parent_field: Type.String({ description: 'the field that a reference names' }),
  child_collection: Type.String({ description: 'the collection whose records refer to it' }),
  child_field: Type.String({ description: 'the field that has the reference' }),
}

export const Relation = Type.Object(
  { id: Type.String(), ...relation, created_at: Time },
  {
    $id: 'Relation',
    description: 'Records of the child refer by a field to those of the parent',
  },
)

export const relations = defineContract({
  createRelation: {
    method: 'POST',
    path: '/api/apps/:app/relations',
    area: 'Relations',
    summary: 'Say that records of one collection refer to those of another',
    description:
      'Both fields get an index where none leads with them; a missing collection is made. The relation itself forbids nothing. If you send it again, the answer is the existing relation.',
    access: 'Write',
    shows: 'outcome',
    status: 201,
    params: AppParams,
    body: Type.Object(
      {
        parent_collection: Described(
          Name,
          'the collection that is referred to, such as `countries`',
        ),
        parent_field: defineField('the field of its records that a reference names, such as `id`'),
        child_collection: Described(Name, 'the collection whose records refer to it'),
        child_field: defineField('the field of these that has the reference, such as `country`'),
      },
      {
        examples: [
          {
            parent_collection: 'countries',
            parent_field: 'id',
            child_collection: 'stations',
            child_field: 'country',
          },
        ],
      },
    ),
    reply: Type.Object({
      id: Type.String(),
      ...relation,
      created_at: Time,
      indexes_created: Type.Object(
        { parent_index: Type.Boolean(), child_index: Type.Boolean() },
        { description: 'false where an index that begins with the field was there' },
      ),
    }),
    errors: ['APPLICATION_NOT_FOUND', 'VIEW_EXISTS', 'CONFLICT', 'NOT_ON_PRIVATE'],
  },
  listRelations: {
    method: 'GET',
    path: '/api/apps/:app/relations',
    area: 'Relations',
    summary: "List an application's relations",
    access: 'Read',
    shows: 'definitions',
    params: AppParams,
    reply: Type.Array(Relation),
    errors: ['APPLICATION_NOT_FOUND'],
  },
  deleteRelation: {
    method: 'DELETE',
    path: '/api/apps/:app/relations/:id',
    area: 'Relations',
    summary: 'Delete a relation; its indexes stay',
    access: 'Admin',
    shows: 'outcome',
    params: extendAppParams({
      id: Type.String({ minLength: 1, maxLength: 64, description: 'the `id` of the relation' }),
    }),
    reply: Success,
    errors: ['APPLICATION_NOT_FOUND', 'RELATION_NOT_FOUND'],
  },
})
