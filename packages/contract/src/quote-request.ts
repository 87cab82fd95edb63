import { Type } from 'typebox'
import { limits } from './limits.ts'
import { AnyQuery } from './listing.ts'
import { MaxKb, Name, open, StringEnum } from './schemas.ts'

/** A request whose price is asked for: by its size, by its query, or by the name of a predefined query. */
export const QuoteRequest = Type.Object(
  {
    app_id: Type.Optional(Type.String({ description: 'the application; needed' })),
    app: Type.Optional(Type.String({ description: 'another name of `app_id`' })),
    operation_type: Type.Optional(
      StringEnum(['read', 'write'], {
        description: 'reading or writing; needed but for a predefined query',
      }),
    ),
    size_kb: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: 1_000_000,
        description:
          'KB (1,024 bytes) of the answer, or of the records; needed but for a predefined query, and without effect beside a `query`',
      }),
    ),
    collection: Type.Optional(
      Type.String({
        description: 'the name of the collection, or view; needed but for a predefined query',
      }),
    ),
    monthly_volume_kb: Type.Optional(
      Type.Number({ minimum: 0, description: 'comes back in the answer; it changes no price' }),
    ),
    rows: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: limits.rowsMax,
        description: 'rows of the answer, or records; by default those of `data`, or 1',
      }),
    ),
    data: Type.Optional(
      Type.Unknown({
        description:
          'a record, or a list of them, to be written; needed where a record costs the value of a field',
      }),
    ),
    query: Type.Optional(
      Type.Union([Name, AnyQuery], {
        description:
          'the name of a predefined query; or the request to read: `{"find": {"country": "AT"}, "limit": 10}` or `{"sql": …}`',
      }),
    ),
    parameters: Type.Optional(
      Type.Object(
        {},
        { ...open, description: 'the values of a predefined query, by name: `{"country": "AT"}`' },
      ),
    ),
    version: Type.Optional(
      Type.Integer({
        minimum: 1,
        description: 'the version of a predefined query; the newest by default',
      }),
    ),
    max_kb: MaxKb,
  },
  {
    examples: [
      { app_id: 'weather', operation_type: 'read', collection: 'stations', rows: 10, size_kb: 2 },
    ],
  },
)
