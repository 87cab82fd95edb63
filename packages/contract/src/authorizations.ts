import { Type } from 'typebox'
import { limits } from './limits.ts'
import { defineContract } from './route.ts'
import {
  AppId,
  AppParams,
  Atomic,
  BlockHeight,
  Described,
  defineGivenUsd,
  extendAppParams,
  joinTexts,
  NextCursor,
  Nullable,
  PageQuery,
  Sequence,
  StringEnum,
  Time,
} from './schemas.ts'

/** A limit of zero would allow nothing. */
const Limit = Type.Union(
  [
    Type.String({
      problem: 'must be whole atomic units, at least 1; 1 cent = 10000',
      pattern: '^[1-9][0-9]{0,15}$',
    }),
    Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
  ],
  { problem: 'must be whole atomic units, at least 1; 1 cent = 10000' },
)

const defineLimit = (what: string, more?: string) =>
  Described(
    Limit,
    joinTexts(`${what}, in atomic units, at least 1 (\`"1000000"\` is one dollar)`, more),
  )

const Targets = Type.Array(AppId, {
  minItems: 1,
  maxItems: limits.payTargetsMax,
  uniqueItems: true,
  description: 'the applications that may be paid: `["maps"]`; all by default',
})

const fields = {
  id: Type.String({ description: 'names it in POST .../revoke' }),
  app_id: Type.String({ description: 'the application through which it was granted' }),
  granter: Type.String({ description: 'the wallet, or the application, whose balance pays' }),
  grantee: Type.String({ description: 'the one who spends, as the granter wrote it' }),
  spend_limit: Described(Atomic, 'the most that it spends in all'),
  max_per_tx: Nullable(Described(Atomic, 'the most that one request may cost; null: no limit')),
  daily_limit: Nullable(Described(Atomic, 'the most by the day in UTC; null: no limit')),
  allowed_targets: Nullable(
    Type.Array(Type.String(), { description: 'the applications that may be paid; null: all' }),
  ),
  expires_at: Described(Time, 'the time from which its key is dead'),
  created_at: Time,
  revoked_at: Nullable(Time),
  status: StringEnum(['active', 'expired', 'revoked'], {
    description: 'only with an active one its key spends',
  }),
  spent: Type.String({ description: 'the charges under it so far' }),
  usd: defineGivenUsd('spend_limit', 'max_per_tx', 'daily_limit', 'spent'),
  last_used_at: Nullable(Described(Time, 'null where it was never used')),
  key_prefix: Type.String({ description: 'the first 8 characters of its key' }),
}

const Authorization = Type.Object(fields, {
  $id: 'Authorization',
  description: 'A permission to spend from a balance, within limits. Amounts in atomic units',
})

const Entry = Type.Object(
  { height: BlockHeight, sequence: Sequence },
  { description: "its place in the chain of the application 'system'" },
)

export const authorizations = defineContract({
  listAuthorizations: {
    method: 'GET',
    path: '/api/apps/:app/authorizations',
    area: 'Authorization',
    summary:
      'List authorizations to spend, newest first: a wallet its own, Admin all of the application',
    description:
      'All that are active, and those that ended last. Revoked and expired ones of long ago are in the log alone.',
    access: 'by-policy',
    shows: 'accounts',
    params: AppParams,
    query: PageQuery,
    reply: Type.Object({
      authorizations: Type.Array(Authorization),
      next_cursor: NextCursor,
    }),
    errors: ['APPLICATION_NOT_FOUND'],
  },
  createAuthorization: {
    method: 'POST',
    path: '/api/apps/:app/authorizations',
    area: 'Authorization',
    summary: 'Let an application or agent spend from a balance, within limits',
    description:
      "A wallet that signs the request grants spending from its own balance; a key with Admin from the application's. `user_key`, shown this once, is what spends: in `X-User-Key`, alone or beside a key of an application. `allowed_targets` are the applications that may be paid, all where it is not given; `daily_limit` is by the day in UTC; it ends at `expires_at`, after a year where that is not given. The grant is an entry of the service's chain.",
    access: 'by-policy',
    shows: 'accounts',
    status: 201,
    params: AppParams,
    body: Type.Object(
      {
        grantee: Type.String({
          problem: 'must be 1-200 characters: an application, an address, or the name of an agent',
          pattern: '^[^\\u0000-\\u001f\\u007f]{1,200}$',
          description: 'the one who may spend: an application, an address, or the name of an agent',
        }),
        spend_limit: defineLimit('the most that it may spend in all'),
        max_per_tx: Type.Optional(
          Nullable(defineLimit('the most that one request may cost', 'no limit by default')),
        ),
        daily_limit: Type.Optional(
          Nullable(defineLimit('the most by the day in UTC', 'no limit by default')),
        ),
        allowed_targets: Type.Optional(Nullable(Targets)),
        expires_at: Type.Optional(
          Nullable(Described(Time, 'the time at which it ends; after a year by default')),
        ),
      },
      {
        additionalProperties: false,
        examples: [
          {
            grantee: 'my agent',
            spend_limit: '1000000',
            max_per_tx: '20000',
            daily_limit: '100000',
            allowed_targets: ['weather'],
          },
        ],
      },
    ),
    reply: Type.Object({
      ...fields,
      user_key: Type.String({ description: 'shown this once' }),
      entry: Entry,
    }),
    errors: ['APPLICATION_NOT_FOUND', 'CONFLICT'],
  },
  revokeAuthorization: {
    method: 'POST',
    path: '/api/apps/:app/authorizations/:id/revoke',
    area: 'Authorization',
    summary: 'Revoke an authorization at once; repeated, the same answer again',
    description: 'The wallet that granted it may, and Admin of the application.',
    access: 'by-policy',
    shows: 'accounts',
    params: extendAppParams({
      id: Type.String({ maxLength: 200, description: 'the `id` of the authorization' }),
    }),
    body: Type.Unknown(),
    bodyOptional: true,
    reply: Type.Object({ success: Type.Boolean(), id: Type.String(), revoked_at: Time }),
    errors: ['APPLICATION_NOT_FOUND', 'AUTHORIZATION_NOT_FOUND'],
  },
})
