import { Type } from 'typebox'
import { limits } from './limits.ts'
import { defineContract } from './route.ts'
import {
  Atomic,
  BlockHeight,
  CollectionParams,
  Described,
  Nullable,
  Sequence,
  StringEnum,
  Time,
  tokenMembers,
} from './schemas.ts'

const Days = Type.Integer({
  minimum: 0,
  maximum: limits.retentionDaysMax,
  description:
    'days for which each version of a record is kept; null: for ever, as by default. 0 deletes all that is older than a day',
})

const settings = {
  collection: Type.String(),
  retention_days: Nullable(Type.Integer({ description: 'null: for ever' })),
  effective_at: Nullable(
    Described(Time, 'when the setting takes effect, or took; null where none was made'),
  ),
  expires_before: Nullable(
    Type.Unsafe<string>({
      ...Time,
      description: 'versions that were stored before this time are past their retention',
    }),
  ),
  free_days: Type.Integer({ description: 'days for which keeping costs nothing' }),
  tier: Type.Unsafe<'free' | 'extended' | 'permanent'>({
    ...StringEnum(['free', 'extended', 'permanent']),
    description: 'free: no longer than the free days; extended: longer; permanent: for ever',
  }),
}

export const retention = defineContract({
  getRetention: {
    method: 'GET',
    path: '/api/apps/:app/collections/:collection/retention',
    area: 'Retention',
    summary: 'Get the retention of a collection: how long its records are kept',
    access: 'Read',
    shows: 'definitions',
    params: CollectionParams,
    reply: Type.Object(settings, { $id: 'Retention' }),
    errors: ['APPLICATION_NOT_FOUND', 'COLLECTION_NOT_FOUND'],
  },
  setRetention: {
    method: 'POST',
    path: '/api/apps/:app/collections/:collection/retention',
    area: 'Retention',
    summary: 'Keep the records of a collection for so many days, or for ever',
    description:
      'Every version of a record that was stored longer ago expires: its content is deleted from tables, views and the log, and cannot be had again. Its hash stays, and with it every proof, checkpoint and receipt. The setting takes effect an hour after it was made shorter (`effective_at`), so a mistake can be taken back. Nothing expires within a day. null keeps records for ever.',
    access: 'Admin',
    shows: 'outcome',
    params: CollectionParams,
    body: Type.Object({ retention_days: Nullable(Days) }, { examples: [{ retention_days: 90 }] }),
    reply: Type.Object({ success: Type.Boolean(), message: Type.String(), ...settings }),
    errors: ['APPLICATION_NOT_FOUND', 'COLLECTION_NOT_FOUND', 'CONFLICT', 'UNAVAILABLE'],
  },
  eraseSubject: {
    method: 'POST',
    path: '/api/apps/:app/collections/:collection/erase',
    area: 'Retention',
    summary: 'Erase the records of one person, or of another subject',
    description:
      'Use it when a person has the right to be forgotten. It erases every version whose `field` has this `value` (a text, or a number with the same text) from tables, views and the log. It also erases the versions that this one replaced and the deletion of its record. Encrypted collections are searched too. Hashes stay, so every proof and receipt stays valid; `entries` names the entries of the chain that record the erasure. If you repeat it, it erases what came since.',
    access: 'Admin',
    shows: 'outcome',
    params: CollectionParams,
    body: Type.Object(
      {
        field: Type.String({
          minLength: 1,
          maxLength: limits.subjectCharsMax,
          description: 'a top-level member of the records, in which they name the subject',
        }),
        value: Type.Union(
          [
            Type.String({ maxLength: limits.subjectCharsMax }),
            Type.Integer({
              minimum: Number.MIN_SAFE_INTEGER,
              maximum: Number.MAX_SAFE_INTEGER,
            }),
          ],
          {
            description: 'the value by which the records name the subject, such as a customer’s id',
          },
        ),
      },
      { examples: [{ field: 'person', value: 'p-17' }] },
    ),
    reply: Type.Object({
      success: Type.Boolean(),
      message: Type.String(),
      collection: Type.String(),
      versions: Type.Integer({ description: 'versions of records that were erased by this call' }),
      unopened_versions: Type.Optional(
        Type.Integer({
          description:
            'versions of an encrypted collection that do not open, as they were damaged, and were not searched',
        }),
      ),
      entries: Type.Array(Type.Object({ block_height: BlockHeight, sequence: Sequence }), {
        description:
          'entries of the chain that record the erasure; GET .../chain/proof proves each',
      }),
    }),
    errors: ['APPLICATION_NOT_FOUND', 'COLLECTION_NOT_FOUND', 'FORBIDDEN', 'UNAVAILABLE'],
  },
  getRetentionCost: {
    method: 'GET',
    path: '/api/apps/:app/collections/:collection/retention/cost',
    area: 'Retention',
    summary: 'Get the cost of keeping the records of a collection for a month',
    description:
      'For what is stored now, under the present retention or, with `retention_days`, under another (`forever` for none). A statement of price: nothing is charged by it.',
    access: 'Read',
    shows: 'definitions',
    params: CollectionParams,
    query: Type.Object({
      retention_days: Type.Optional(
        Type.String({
          pattern: '^([0-9]{1,5}|forever)$',
          problem: 'must be days, or forever',
          description: 'another retention in days, or `forever`; the present one by default',
        }),
      ),
    }),
    reply: Type.Object({
      collection: Type.String(),
      retention_days: settings.retention_days,
      free_days: settings.free_days,
      tier: settings.tier,
      stored_bytes: Type.Integer({ description: 'bytes of all versions' }),
      billable_bytes: Type.Integer({
        description: 'bytes of versions older than the free days and within the retention',
      }),
      price_per_gb_month: Described(Atomic, 'atomic units for 2^30 bytes and 30 days'),
      monthly_cost: Described(Atomic, 'atomic units for `billable_bytes` and 30 days, rounded up'),
      monthly_cost_usd: Type.Number({ description: '`monthly_cost` in dollars' }),
      ...tokenMembers,
    }),
    errors: [
      'APPLICATION_NOT_FOUND',
      'COLLECTION_NOT_FOUND',
      'QUERY_TOO_EXPENSIVE',
      'QUERY_TIMEOUT',
      'UNAVAILABLE',
    ],
  },
})
