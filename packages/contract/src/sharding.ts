import { Type } from 'typebox'
import { limits } from './limits.ts'
import { Nullable, StringEnum } from './schemas.ts'

const shardTypes = ['discrete', 'time_range', 'hash_distributed'] as const
const granularities = ['minute', 'hour', 'day', 'week', 'month'] as const

const ShardKey = Type.Object({
  field: Type.String({
    minLength: 1,
    maxLength: limits.fieldPathCharsMax,
    description: 'the field; it gets an index where none begins with it',
  }),
  type: StringEnum([...shardTypes, 'hashed', 'time_series'], {
    description:
      'discrete: single values; time_range (or time_series): also ranges; hash_distributed (or hashed): only equality states it',
  }),
  granularity: Type.Optional(
    Nullable(
      StringEnum(granularities, {
        description: 'for a time_range; kept and shown, without effect',
      }),
    ),
  ),
  num_buckets: Type.Optional(
    Nullable(
      Type.Integer({
        minimum: 1,
        maximum: limits.shardBucketsMax,
        description: 'for a hash_distributed key; kept and shown, without effect',
      }),
    ),
  ),
})

export const Sharding = Type.Object(
  {
    keys: Type.Array(
      Type.Object({
        field: Type.String(),
        type: StringEnum(shardTypes),
        granularity: Type.Optional(StringEnum(granularities)),
        num_buckets: Type.Optional(Type.Integer()),
      }),
    ),
    enforce_in_queries: Type.Boolean({ description: 'true: each query must state a key' }),
    max_shard_size: Nullable(Type.Integer({ description: 'bytes; kept as sent' })),
  },
  { $id: 'Sharding', description: 'the fields by which it is divided; null where there are none' },
)

/** The fields by which a collection is divided, as they are sent. */
export const ShardingRequest = Type.Object(
  {
    keys: Type.Array(ShardKey, {
      maxItems: limits.shardKeysMax,
      description: 'the fields by which queries select; an empty list ends sharding',
    }),
    enforce_in_queries: Type.Optional(
      Nullable(
        Type.Boolean({
          description: 'true: a query that states no key is refused (400); false by default',
        }),
      ),
    ),
    max_shard_size: Type.Optional(
      Nullable(
        Type.Integer({
          minimum: 1,
          maximum: Number.MAX_SAFE_INTEGER,
          description: 'bytes; kept and shown, without effect',
        }),
      ),
    ),
  },
  { examples: [{ keys: [{ field: 'country', type: 'discrete' }], enforce_in_queries: true }] },
)
