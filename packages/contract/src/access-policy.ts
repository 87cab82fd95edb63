import { Type } from 'typebox'
import { limits } from './limits.ts'
import { defineAmount, Nullable, QuoteKind, StringEnum } from './schemas.ts'

/** The price of reading, in the parts that a policy, a view or a query may set. */
export const Price = Type.Object(
  {
    per_access: Type.Optional(Nullable(defineAmount('the price of each request'))),
    per_row: Type.Optional(Nullable(defineAmount('the price of each row of the answer'))),
    per_kb: Type.Optional(Nullable(defineAmount('the price of each 1,024 bytes of the answer'))),
  },
  {
    $id: 'Price',
    additionalProperties: false,
    description:
      'the price of reading for others: the sum of what each access, row and KB costs; 0 where a part is not given',
  },
)

const defineFieldList = (description: string) =>
  Type.Array(Type.String({ minLength: 1, maxLength: limits.fieldPathCharsMax }), {
    maxItems: 500,
    description,
  })

/** The form of a policy that the service enforces. */
export const AccessPolicy = Type.Object(
  {
    read: Type.Optional(
      Type.Unsafe<'public' | 'key' | 'private'>({
        ...StringEnum(['public', 'key', 'private']),
        description:
          'public: anyone, for the price where there is one; key: the keys of the application; private: these, and others do not learn that it is there. Not given: the keys of the application, and buyers as soon as reading has a price',
      }),
    ),
    price: Type.Optional(Nullable(Price)),
    preview: Type.Optional(
      Nullable(
        Type.Object(
          {
            rows: Type.Integer({
              minimum: 0,
              maximum: limits.previewRowsMax,
              description:
                'the number of records, the first ones; without a preview it is 3 of what is free and 0 of what is sold',
            }),
            fields: Type.Optional(
              defineFieldList('the fields that it shows; by default those of `offered.select`'),
            ),
          },
          {
            additionalProperties: false,
            description: 'the part of the records that GET .../preview shows to anybody',
          },
        ),
      ),
    ),
    derive: Type.Optional(
      Type.Union(
        [
          Type.Literal('deny'),
          Type.Object(
            { per_access: defineAmount('the price of each request') },
            { additionalProperties: false },
          ),
        ],
        {
          description:
            'the price for others of joining, aggregating or combining its records, or deny; by default it is free where reading is free, and denied where reading has a price',
        },
      ),
    ),
    offered: Type.Optional(
      Nullable(
        Type.Object(
          {
            select: Type.Optional(defineFieldList('the fields that answers may have')),
            filter: Type.Optional(
              defineFieldList('the fields that conditions and groups may name'),
            ),
            sort: Type.Optional(defineFieldList('the fields to sort by')),
          },
          {
            additionalProperties: false,
            description: 'the fields that others may use for each; all where nothing is said',
          },
        ),
      ),
    ),
    empty_answer: Type.Optional(
      Type.Unsafe<'per_access' | 'free'>({
        ...StringEnum(['per_access', 'free']),
        description:
          'the price of an answer without records: that of an access (the default), or nothing',
      }),
    ),
    quote: Type.Optional(QuoteKind),
  },
  {
    $id: 'AccessPolicy',
    additionalProperties: false,
    description: 'the rights and the price of reading',
  },
)

/** A policy as callers send it: a word, the form above, or an object of a foreign form. */
export const AnyPolicy = Type.Unsafe<unknown>(
  Type.Union(
    [
      Type.Literal('public'),
      Type.Literal('key'),
      Type.Literal('private'),
      AccessPolicy,
      Type.Object(
        {},
        {
          additionalProperties: true,
          description:
            'with no member of AccessPolicy, nor one a letter or two from it: kept as sent, enforced as private, answered with `_warning`',
        },
      ),
    ],
    {
      description:
        'the readers, and the price of reading: `public`, `key` (the keys of the application), `private`, or `{"read": "public", "price": {"per_row": "1000"}}`. By default the keys alone, and buyers as soon as reading has a price',
    },
  ),
)
