import { Type } from 'typebox'
import { limits } from './limits.ts'
import { permissionNames } from './permissions.ts'
import { defineContract } from './route.ts'
import {
  AppId,
  AppParams,
  Described,
  defineAmount,
  defineGivenUsd,
  extendAppParams,
  HexHash,
  Nullable,
  StringEnum,
  Time,
} from './schemas.ts'

const Permissions = Type.Array(StringEnum(permissionNames), {
  minItems: 1,
  maxItems: permissionNames.length,
  uniqueItems: true,
  description:
    'the rights of the key: Read, Write, Admin (both, and settings, keys and money), Pay (buys from the balance). A new key has `["Read"]` by default',
})

const PayLimits = Type.Object(
  {
    max_payment_per_tx: Type.Optional(Nullable(defineAmount('the most that one request may cost'))),
    spend_allowance: Type.Optional(
      Nullable(defineAmount('the most that the key and its successors may spend in all')),
    ),
    daily_allowance: Type.Optional(
      Nullable(defineAmount('the most that they may spend by the day in UTC')),
    ),
    expires_at: Type.Optional(Nullable(Described(Time, 'the time until which the key may pay'))),
    allowed_target_apps: Type.Optional(
      Nullable(
        Type.Array(AppId, {
          maxItems: limits.payTargetsMax,
          description: 'the applications that may be paid; all by default',
        }),
      ),
    ),
  },
  {
    additionalProperties: false,
    $id: 'PayLimits',
    description:
      'the amounts that a key with Pay may spend of the application’s balance; a limit that is null, or not given, is none',
  },
)

const NewKey = Type.Object(
  {
    name: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: limits.nameCharsMax,
        description:
          'a name for people; `unnamed` by default, and `default` for regenerateKey, which replaces the key of this name',
      }),
    ),
    permissions: Type.Optional(Permissions),
    expires_at: Type.Optional(
      Nullable(
        Described(Time, 'the time in the future from which the key is dead; null: it has no end'),
      ),
    ),
    pay_limits: Type.Optional(Nullable(PayLimits)),
  },
  {
    additionalProperties: false,
    examples: [{ name: 'reader', permissions: ['Read'], expires_at: '2027-01-01T00:00:00.000Z' }],
  },
)

const KeyText = Type.String({ description: 'the text of the key; shown this once' })
const KeyHash = Described(HexHash, 'the SHA-256 of the key, which names it')

const keyFields = {
  key_hash: KeyHash,
  prefix: Type.String({ description: 'the first 8 characters of the key' }),
  name: Type.String(),
  permissions: Type.Array(Type.String()),
  pay_limits: Nullable(PayLimits),
  usd: defineGivenUsd('max_payment_per_tx', 'spend_allowance', 'daily_allowance'),
  created_at: Time,
  expires_at: Nullable(Described(Time, 'null: it has no end')),
}

const CreatedKey = Type.Object({ key: KeyText, ...keyFields }, { $id: 'CreatedKey' })

const KeyParams = extendAppParams({ key_hash: KeyHash })

export const keys = defineContract({
  listKeys: {
    method: 'GET',
    path: '/api/apps/:app/keys',
    area: 'API Keys',
    summary: "List an application's keys, oldest first, without their text",
    description:
      'All that are active, and those that died last. Revoked and expired ones of long ago are in the log alone.',
    access: 'Admin',
    shows: 'accounts',
    evenArchived: true,
    params: AppParams,
    reply: Type.Object({
      keys: Type.Array(
        Type.Object({
          ...keyFields,
          status: Type.String({ description: '`active`, `expired` or `revoked`' }),
          revoked_at: Nullable(Time),
          last_used_at: Nullable(Described(Time, 'null where it was never used')),
        }),
      ),
    }),
    errors: ['APPLICATION_NOT_FOUND'],
  },
  createKey: {
    method: 'POST',
    path: '/api/apps/:app/keys',
    area: 'API Keys',
    summary: 'Create a key',
    access: 'Admin',
    shows: 'accounts',
    status: 201,
    params: AppParams,
    body: NewKey,
    bodyOptional: true,
    reply: CreatedKey,
    errors: ['APPLICATION_NOT_FOUND', 'CONFLICT'],
  },
  regenerateKey: {
    method: 'POST',
    path: '/api/apps/:app/regenerate-key',
    area: 'API Keys',
    summary:
      'Replace the key of a name (`default` when none is given); the old one is dead at once',
    description:
      'The new key has the permissions and the limits of the newest living one of this name, or of the newest dead one, where the body does not give others, and what that one spent counts on. Where there never was one, it may read, write and administrate; where older keys may have had the name, `permissions` are needed.',
    access: 'Admin',
    shows: 'accounts',
    status: 201,
    params: AppParams,
    body: NewKey,
    bodyOptional: true,
    reply: Type.Object({
      key: KeyText,
      ...keyFields,
      replaced_key_hash: Nullable(
        Described(HexHash, 'the key that is dead now; null where there was none'),
      ),
    }),
    errors: ['APPLICATION_NOT_FOUND', 'CONFLICT', 'LAST_ADMIN_KEY'],
  },
  rotateKey: {
    method: 'POST',
    path: '/api/apps/:app/keys/:key_hash/rotate',
    area: 'API Keys',
    summary: 'Make a successor of a key; the old one stays valid for the overlap',
    access: 'Admin',
    shows: 'accounts',
    params: KeyParams,
    body: Type.Object(
      {
        overlap_seconds: Type.Optional(
          Type.Integer({
            minimum: 0,
            maximum: limits.keyOverlapSecondsMax,
            description: 'seconds for which the old key goes on; 0 by default: it is dead at once',
          }),
        ),
      },
      { additionalProperties: false },
    ),
    bodyOptional: true,
    reply: Type.Object({
      key: KeyText,
      key_hash: KeyHash,
      old_key_hash: HexHash,
      old_valid_until: Described(Time, 'the time from which the old key is dead'),
    }),
    errors: ['APPLICATION_NOT_FOUND', 'KEY_NOT_FOUND', 'CONFLICT'],
  },
  revokeKey: {
    method: 'POST',
    path: '/api/apps/:app/keys/:key_hash/revoke',
    area: 'API Keys',
    summary: 'Revoke a key; repeated, the same answer again',
    access: 'Admin',
    shows: 'accounts',
    // A stolen key that archives its application must not be out of reach by that.
    evenArchived: true,
    params: KeyParams,
    body: Type.Unknown(),
    bodyOptional: true,
    reply: Type.Object({ success: Type.Boolean(), key_hash: HexHash, revoked_at: Time }),
    errors: ['APPLICATION_NOT_FOUND', 'KEY_NOT_FOUND', 'LAST_ADMIN_KEY'],
  },
})
