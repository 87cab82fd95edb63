import { Type } from 'typebox'
import { limits } from './limits.ts'
import { defineContract } from './route.ts'
import { AppParams, Name, Nullable, StringEnum, Time } from './schemas.ts'

const coverage = {
  private_app: Type.Boolean({ description: 'new collections are encrypted' }),
  encrypted_collections: Type.Array(Type.String(), { description: 'by name' }),
  queryable_collections: Type.Array(Type.String(), {
    description:
      'the encrypted collections that have a plaintext table beside the sealed one, for queries',
  }),
}

/** The data of an application that is encrypted. */
export const EncryptionCoverage = Type.Object(coverage, {
  description: 'the collections that are encrypted',
})

const settings = {
  ...coverage,
  unopened_versions: Type.Optional(
    Type.Integer({
      description: 'versions of records that do not open, so that the plaintext tables lack them',
    }),
  ),
  algorithm: Type.String(),
  key_epoch: Type.Integer({
    description: 'the newest data key of these collections, counted from 1; 0 where there is none',
  }),
  updated_at: Nullable(Time),
}

export const encryption = defineContract({
  getEncryption: {
    method: 'GET',
    path: '/api/apps/:app/encryption',
    area: 'Encryption',
    summary: 'Get the encryption settings',
    access: 'Read',
    shows: 'definitions',
    params: AppParams,
    reply: Type.Object(settings, { $id: 'EncryptionSettings' }),
    errors: ['APPLICATION_NOT_FOUND', 'UNAVAILABLE'],
  },
  updateEncryption: {
    method: 'POST',
    path: '/api/apps/:app/encryption',
    area: 'Encryption',
    summary: 'Encrypt an application or some of its collections, or end their encryption',
    description:
      "`action: add` encrypts the named collections, `remove` ends their encryption. The records and blobs that a collection has are sealed or opened while writes go on; if that takes longer, `tasks` names the tasks to follow at /task/{id}. Blobs get new ids, and requests for the old ids are redirected (307). `private_app: true` encrypts all collections, now and later; with `false`, later ones are not encrypted, and encrypted ones stay so until you remove them by name. Records of an encrypted collection are sealed (AES-256-GCM) before they get into the log. Only the application's own keys with Read can read them: by key, by /list, as history and changes. SQL, joins, aggregates, views, indexes and prices answer NOT_ON_PRIVATE. `queryable: true` with `action: add` keeps a plaintext table of these collections in the service's database, which answers lists, SQL, joins, aggregates and predefined queries. The log, blocks, backups and other chains keep ciphertext. `queryable: false` deletes that table. The operator sets a price for the change; without `X-PAYMENT` the answer is 402. An Admin key, the owner or the operator may do it.",
    access: 'by-policy',
    shows: 'outcome',
    paid: true,
    onlyByPayment: true,
    params: AppParams,
    body: Type.Object(
      {
        private_app: Type.Optional(
          Nullable(
            Type.Boolean({
              description:
                'true: encrypt all collections, now and later; false: later ones are not encrypted. Not given, it stays as it is',
            }),
          ),
        ),
        action: Type.Optional(
          Nullable(
            StringEnum(['add', 'remove'], {
              description: 'add: encrypt `collections`; remove: end their encryption',
            }),
          ),
        ),
        collections: Type.Optional(
          Nullable(
            Type.Array(Name, {
              maxItems: limits.collectionsPerApplicationMax,
              description: 'the names of the collections of `action`',
            }),
          ),
        ),
        queryable: Type.Optional(
          Nullable(
            Type.Boolean({
              description:
                'with `action: add`: true keeps a plaintext table of the named collections for queries, false deletes it; not given, it stays as it is',
            }),
          ),
        ),
      },
      { examples: [{ action: 'add', collections: ['patients'] }] },
    ),
    reply: Type.Object({
      success: Type.Boolean(),
      message: Type.String(),
      ...settings,
      tasks: Type.Optional(
        Type.Array(
          Type.Object({
            collection: Type.String(),
            action: StringEnum(['add', 'remove'], {
              description: 'add: its records are being sealed; remove: opened',
            }),
            task_id: Type.String({ description: 'for GET /task/{id}' }),
          }),
          { description: 'collections whose records are still being sealed or opened' },
        ),
      ),
    }),
    errors: [
      'APPLICATION_NOT_FOUND',
      'CONFLICT',
      'NOT_ON_PRIVATE',
      'PAYMENT_ALREADY_USED',
      'PAYMENT_HELD',
      'PAYMENT_MALFORMED',
      'PAYMENT_NETWORK_UNREACHABLE',
      'PAYMENT_PENDING',
      'PAYMENT_REQUIRED',
      'UNAVAILABLE',
    ],
  },
})
