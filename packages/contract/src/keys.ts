import { Type } from 'typebox'
import { limits } from './limits.ts'
import { permissionNames } from './permissions.ts'
import { defineContract } from './route.ts'
import {
  AppId,
  AppParams,
  AtomicInput,
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
})

const PayLimits = Type.Object(
  {
    max_payment_per_tx: Type.Optional(Nullable(AtomicInput)),
    spend_allowance: Type.Optional(Nullable(AtomicInput)),
    daily_allowance: Type.Optional(Nullable(AtomicInput)),
    expires_at: Type.Optional(Nullable(Time)),
    allowed_target_apps: Type.Optional(Nullable(Type.Array(AppId, { maxItems: 1000 }))),
  },
  { additionalProperties: false, $id: 'PayLimits' },
)

const NewKey = Type.Object(
  {
    name: Type.Optional(Type.String({ minLength: 1, maxLength: limits.nameCharsMax })),
    permissions: Type.Optional(Permissions),
    expires_at: Type.Optional(Nullable(Time)),
    pay_limits: Type.Optional(Nullable(PayLimits)),
  },
  { additionalProperties: false },
)

const keyFields = {
  key_hash: HexHash,
  prefix: Type.String({ description: 'the first 8 characters of the key' }),
  name: Type.String(),
  permissions: Type.Array(Type.String()),
  pay_limits: Nullable(PayLimits),
  usd: defineGivenUsd('max_payment_per_tx', 'spend_allowance', 'daily_allowance'),
  created_at: Time,
  expires_at: Nullable(Time),
}

const CreatedKey = Type.Object(
  { key: Type.String({ description: 'shown this once' }), ...keyFields },
  { $id: 'CreatedKey' },
)

const KeyParams = extendAppParams({ key_hash: HexHash })

export const keys = defineContract({
  listKeys: {
    method: 'GET',
    path: '/api/apps/:app/keys',
    area: 'API Keys',
    summary: "List an application's keys, without their text",
    access: 'Admin',
    shows: 'accounts',
    params: AppParams,
    reply: Type.Object({
      keys: Type.Array(
        Type.Object({
          ...keyFields,
          status: Type.String(),
          revoked_at: Nullable(Time),
          last_used_at: Nullable(Time),
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
      'The new key has the permissions and the limits of the newest living one of this name, or of the newest dead one, where the body does not give others, and what that one spent counts on. Where there never was one, it may read, write and administrate.',
    access: 'Admin',
    shows: 'accounts',
    status: 201,
    params: AppParams,
    body: NewKey,
    bodyOptional: true,
    reply: Type.Object({ key: Type.String(), ...keyFields, replaced_key_hash: Nullable(HexHash) }),
    errors: ['APPLICATION_NOT_FOUND'],
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
          Type.Integer({ minimum: 0, maximum: limits.keyOverlapSecondsMax }),
        ),
      },
      { additionalProperties: false },
    ),
    bodyOptional: true,
    reply: Type.Object({
      key: Type.String(),
      key_hash: HexHash,
      old_key_hash: HexHash,
      old_valid_until: Time,
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
    params: KeyParams,
    body: Type.Unknown(),
    bodyOptional: true,
    reply: Type.Object({ success: Type.Boolean(), key_hash: HexHash, revoked_at: Time }),
    errors: ['APPLICATION_NOT_FOUND', 'KEY_NOT_FOUND', 'LAST_ADMIN_KEY'],
  },
})
