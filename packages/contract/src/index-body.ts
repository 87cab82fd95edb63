import { Type } from 'typebox'
import { Nullable } from './schemas.ts'

/** The body of an index's creation. */

const FieldName = Type.String({
  description: 'the field, or a dotted path, such as `address.city`',
})

const SameField = Type.String({ description: 'another name of `field`' })

const indexTypes =
  'btree (the default), hash, fulltext, trigram, vector, unique, price, sparse, partial, composite, or the type of the field; in any case of letters'

const Where = Type.Unknown({
  description:
    'the records of a partial index, as `find` of POST /list: `{"price": {"gt": 2}}`; all records by default',
})

const defineFlag = (description: string) => Type.Optional(Nullable(Type.Boolean({ description })))

const isUnique =
  'true: of all records with one value in the field, only the newest counts; false by default'
const isSparse = 'true: only records that have a value in the first field; false by default'

const defineOther = (name: string) => `another name of \`${name}\``

const Options = Type.Object(
  {
    unique: defineFlag(defineOther('unique')),
    sparse: defineFlag(defineOther('sparse')),
    partialFilter: Type.Optional(Type.Unknown({ description: defineOther('where') })),
    defaultLanguage: Type.Optional(
      Type.Unknown({
        description:
          'has no effect: words are compared as they are written; the answer warns of it',
      }),
    ),
  },
  { description: 'settings of the index, as some clients send them' },
)

const PriceConfig = Type.Object(
  {
    app_owner_percentage: Type.Optional(
      Type.Unknown({
        description:
          'for a price index: the share of the application, as a fraction (0.8) or in percent (80); the rest by default',
      }),
    ),
    platform_percentage: Type.Optional(
      Type.Unknown({
        description:
          'for a price index: the share of the platform, in the same form, which gets its own share at least; both make up 1, or 100',
      }),
    ),
    app_owner_address: Type.Optional(
      Type.Unknown({
        description:
          'for a price index: the wallet whose balance gets the share of the application; empty, as by default: the balance of the application',
      }),
    ),
    pricing_model: Type.Optional(
      Type.Unknown({
        description: '`per_record`: each record written costs `price_per_record`, on any index',
      }),
    ),
    price_per_record: Type.Optional(
      Type.Unknown({ description: 'atomic units, such as `"100"`; needed for `per_record`' }),
    ),
  },
  {
    description:
      'a price of writing: the shares of a price index, whose field holds the price in dollars, or a price for each record',
  },
)

const ReadPriceConfig = Type.Object(
  {
    pricing_model: Type.Optional(
      Type.Unknown({ description: 'has no effect: the prices that are given count' }),
    ),
    price_per_access: Type.Optional(
      Type.Unknown({ description: 'atomic units for each request; `"10000"` is one cent' }),
    ),
    price_per_access_tia: Type.Optional(
      Type.Unknown({
        description: '`price_per_access` in dollars, such as 0.001; counts before it',
      }),
    ),
    price_per_kb: Type.Optional(
      Type.Unknown({ description: 'atomic units for each 1,024 bytes of an answer' }),
    ),
    price_per_kb_tia: Type.Optional(
      Type.Unknown({ description: '`price_per_kb` in dollars; counts before it' }),
    ),
  },
  {
    description:
      'the price of reading the collection, as public clients set it; PATCH .../pricing does it by itself',
  },
)

/** The public clients speak several dialects, so most members have several names. */
export const AnyIndexBody = Type.Object(
  {
    name: Type.Optional(
      Type.Unknown({ description: 'text; made of the collection and its fields where not given' }),
    ),
    collection: Type.Optional(
      Type.Unknown({ description: 'the name of the collection, or view, where the path has none' }),
    ),
    collection_name: Type.Optional(Type.Unknown({ description: defineOther('collection') })),
    field_name: Type.Optional(Nullable(SameField)),
    field: Type.Optional(Nullable(FieldName)),
    fields: Type.Optional(
      Type.Unknown({
        description: 'instead of one: a list of up to 4 fields in their order, `["city", "age"]`',
      }),
    ),
    index_type: Type.Optional(Nullable(Type.String({ description: indexTypes }))),
    type: Type.Optional(Nullable(Type.String({ description: defineOther('index_type') }))),
    unique: defineFlag(isUnique),
    unique_constraint: defineFlag(defineOther('unique')),
    sparse: defineFlag(isSparse),
    where: Type.Optional(Where),
    dimensions: Type.Optional(
      Type.Unknown({ description: 'for a vector index: the numbers of each list, 1 to 2,000' }),
    ),
    measure: Type.Optional(
      Type.Unknown({
        description: 'for a vector index: cosine (the default), l2 or inner_product',
      }),
    ),
    partial: Type.Optional(
      Nullable(
        Type.Object(
          { where: Type.Optional(Type.Unknown({ description: defineOther('where') })) },
          { description: 'the conditions of a partial index, as some clients send them' },
        ),
      ),
    ),
    options: Type.Optional(Nullable(Options)),
    index_config: Type.Optional(
      Nullable(
        Type.Object(
          {
            index_type: Type.Optional(
              Nullable(Type.String({ description: defineOther('index_type') })),
            ),
          },
          { description: 'the type of the index, as some clients send it' },
        ),
      ),
    ),
    price_config: Type.Optional(Nullable(PriceConfig)),
    read_price_config: Type.Optional(Nullable(ReadPriceConfig)),
  },
  { examples: [{ collection: 'stations', field: 'country', index_type: 'btree' }] },
)
