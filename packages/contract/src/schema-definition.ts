import { Type } from 'typebox'
import { MapOf, Nullable, StringEnum } from './schemas.ts'

export const fieldTypes = [
  'string',
  'number',
  'integer',
  'boolean',
  'date',
  'object',
  'array',
  'any',
] as const

const closed = { additionalProperties: false } as const

const Flag = (description: string) => Type.Optional(Nullable(Type.Boolean({ description })))

export const SchemaField = Type.Object(
  {
    type: Type.Optional(
      Type.Unsafe<(typeof fieldTypes)[number]>({
        ...StringEnum(fieldTypes),
        description: 'the type of its values; any by default',
      }),
    ),
    required: Flag('a record without it, or with null in it, is refused'),
    unique: Flag(
      'records are versioned by it: of several with one value the newest counts; it gets an index',
    ),
    index: Flag('it gets an index; in an encrypted collection, tokens by which equality finds it'),
    default: Type.Optional(Type.Unknown({ description: 'given to records without the field' })),
    validation: Type.Optional(
      Nullable(
        Type.Object(
          {
            min: Type.Optional(
              Nullable(
                Type.Number({
                  description: 'the least of a number, or of the length of a string or a list',
                }),
              ),
            ),
            max: Type.Optional(Nullable(Type.Number({ description: 'the most of the same' }))),
            pattern: Type.Optional(
              Nullable(Type.String({ description: 'a regular expression that strings match' })),
            ),
            enum: Type.Optional(
              Nullable(Type.Array(Type.Unknown(), { description: 'the values that there are' })),
            ),
          },
          { ...closed, description: 'bounds that values must keep' },
        ),
      ),
    ),
    description: Type.Optional(Nullable(Type.String({ description: 'a text for people' }))),
    format: Type.Optional(
      Type.String({ description: 'date or date-time: how SQL takes the strings' }),
    ),
    properties: Type.Optional(
      Type.Unknown({
        description: 'the fields inside, declared as these are; SQL knows their types',
      }),
    ),
  },
  { $id: 'SchemaField', ...closed },
)

export const SchemaDefinition = Type.Object(
  {
    fields: MapOf(SchemaField, { description: 'the declared fields by name; others are possible' }),
    required: Type.Optional(
      Nullable(Type.Array(Type.String(), { description: 'fields that records must have' })),
    ),
  },
  { $id: 'SchemaDefinition', ...closed },
)

/** A schema as callers send it. */
export const AnySchema = Type.Unsafe<unknown>(
  Type.Union(
    [
      SchemaDefinition,
      Type.Object(
        {},
        {
          additionalProperties: true,
          description:
            'a JSON Schema (2020-12); a keyword that is none is refused, its own begin with x-',
        },
      ),
    ],
    {
      description:
        'the fields that records may or must have: `{"fields": {"name": {"type": "string", "required": true}}}`, or a JSON Schema (2020-12). By default records may be anything',
    },
  ),
)
