import { Type } from 'typebox'
import { EncryptionCoverage } from './encryption.ts'
import { limits } from './limits.ts'
import { defineContract } from './route.ts'
import {
  Address,
  AppId,
  AppParams,
  Described,
  Description,
  HexHash,
  Nullable,
  StringEnum,
  Time,
} from './schemas.ts'

/** The choices of what gets to other chains, from the least to the most. */
export const publishChoices = ['nothing', 'roots', 'ciphertext', 'plaintext'] as const
export type PublishChoice = (typeof publishChoices)[number]

const PublishTo = StringEnum(publishChoices, {
  description:
    'the part of its log that other chains get: nothing; roots (the default): hashes alone; ciphertext: blocks, with the records of encrypted collections; plaintext: also those of collections that everybody may read whole for nothing',
})

const Publication = Type.Object(
  {
    choice: PublishTo,
    chains: Type.Array(
      Type.Object({
        network: Type.String({ description: 'CAIP-2' }),
        height: Type.Integer({
          description: 'the block of the application up to which its blocks are on that chain',
        }),
        of: Type.Integer({ description: 'the newest block of the application' }),
      }),
      { description: 'the chains that blocks of it are put on; none where none are' },
    ),
  },
  { description: 'the part of its log that gets to other chains, and how far it is there' },
)

const PublicApplication = {
  app_id: AppId,
  name: Type.String(),
  description: Nullable(Type.String()),
  created_at: Time,
  status: Type.Union([Type.Literal('active'), Type.Literal('archived')], {
    description: 'archived: it answers 404 to all but its owner, its Admin keys and the operator',
  }),
}

const Bound = (what: string) =>
  Nullable(Type.Integer({ minimum: 0, description: `${what}; null: as many as there is room for` }))

const Quota = Type.Object(
  {
    bytes: Bound('bytes of its log'),
    records: Bound('entries of its log'),
    used: Type.Object(
      { bytes: Type.Integer(), records: Type.Integer() },
      { description: 'the size of its log now' },
    ),
  },
  {
    description:
      'The quota of the application, and how much of it is used. Its log counts: every version of every record, deletions, definitions. Only what expires by a retention leaves it.',
  },
)

const OwnQuota = Type.Object(
  {
    bytes: Type.Optional(Bound('bytes of its log')),
    records: Type.Optional(Bound('entries of its log')),
  },
  {
    additionalProperties: false,
    description:
      'the size that its log may have, in place of the quota of the configuration; null: back to that. For the operator',
  },
)

export const Application = Type.Object(
  {
    ...PublicApplication,
    owner_address: Type.Optional(
      Nullable(Type.String({ description: 'the wallet that owns it; null where none does' })),
    ),
    collections: Type.Optional(Type.Integer({ description: 'the number of its collections' })),
    views: Type.Optional(Type.Integer({ description: 'the number of its views' })),
    queries: Type.Optional(Type.Integer({ description: 'the number of its predefined queries' })),
    encryption: Type.Optional(EncryptionCoverage),
    payout: Type.Optional(
      Type.Object({
        auto_payout_enabled: Type.Boolean({
          description: 'true: its earnings are paid out by themselves',
        }),
      }),
    ),
    quota: Type.Optional(Quota),
    publish: Type.Optional(Publication),
  },
  { $id: 'Application' },
)

const DisplayName = Type.String({
  minLength: 1,
  maxLength: limits.nameCharsMax,
  description: 'the name that people read, such as `Weather`; programs use `app_id`',
})

export const applications = defineContract({
  createApplication: {
    method: 'POST',
    path: '/api/apps',
    area: 'Applications',
    summary: 'Create an application and its first key',
    description:
      'Asked by the operator, or, where the service lets wallets register (`registration: "open"`), signed by a wallet, which becomes the owner. The key is shown this once.',
    access: 'registrar',
    shows: 'outcome',
    status: 201,
    body: Type.Object(
      {
        name: DisplayName,
        app_id: Type.Optional(
          Described(
            AppId,
            'the id that stands in paths and roots: 3-63 of a-z 0-9 _ -, starting with a letter; made where it is not given. It never changes',
          ),
        ),
        owner_address: Type.Optional(
          Described(
            Address,
            'the wallet that owns it and gets its payouts; the one that signed the request, or none, where it is not given',
          ),
        ),
        description: Type.Optional(Description),
      },
      {
        additionalProperties: false,
        examples: [{ app_id: 'weather', name: 'Weather', description: 'Weather stations' }],
      },
    ),
    reply: Type.Object({
      app_id: AppId,
      name: Type.String(),
      owner_address: Nullable(Type.String({ description: 'null where no wallet owns it' })),
      created_at: Time,
      app_key: Type.String({
        description: 'its first key, with Read, Write and Admin; shown this once',
      }),
      key_hash: Described(HexHash, 'names the key in calls about keys; its SHA-256'),
    }),
    errors: ['APPLICATION_EXISTS'],
  },
  listApplications: {
    method: 'GET',
    path: '/api/apps',
    area: 'Applications',
    summary: 'List applications: all for the operator, their own for an owner',
    access: 'owner',
    shows: 'definitions',
    reply: Type.Object({ applications: Type.Array(Application) }),
  },
  getApplication: {
    method: 'GET',
    path: '/api/apps/:app',
    aliases: ['/api/applications/:app'],
    area: 'Applications',
    summary: 'Get application details; with a key of the application also its owner and counts',
    access: 'public',
    shows: 'definitions',
    params: AppParams,
    reply: Application,
    errors: ['APPLICATION_NOT_FOUND'],
  },
  updateApplication: {
    method: 'PATCH',
    path: '/api/apps/:app',
    area: 'Applications',
    summary:
      'Change name, description, owner or what is published; for the operator also its quota, and out of the archive',
    evenArchived: true,
    description:
      'A new owner agrees by signing the request (X-Wallet-Address, X-Timestamp, X-Signature), which is made with a key; the operator needs no signature. For a day after that, the former owner takes the application back by a request that it signs with its own address, and that names nothing else where the application is archived. Only the operator may send `quota` and `status`. `quota` replaces the quota of the configuration for this application, and null returns to that. `status: "active"` brings an archived application back as it was. `publish` says how much of its log goes to other chains (docs/publishing.md); the operator can only reduce it. Nothing that is published can be taken back.',
    access: 'Admin',
    shows: 'definitions',
    params: AppParams,
    body: Type.Object(
      {
        name: Type.Optional(DisplayName),
        description: Type.Optional(Nullable(Description)),
        owner_address: Type.Optional(
          Described(Address, 'the wallet that owns it from now on; it signs this request'),
        ),
        quota: Type.Optional(Nullable(OwnQuota)),
        status: Type.Optional(
          Type.Literal('active', {
            description: 'active: brings an archived application back; for the operator',
          }),
        ),
        publish: Type.Optional(PublishTo),
      },
      { additionalProperties: false },
    ),
    reply: Application,
    errors: ['APPLICATION_NOT_FOUND', 'CONFLICT'],
  },
  archiveApplication: {
    method: 'DELETE',
    path: '/api/apps/:app',
    area: 'Applications',
    summary: 'Archive an application: it answers 404 from then on, its chain stays',
    description:
      'Its owner, its Admin keys and the operator can still read its wallet and payouts, and list and revoke its keys. 409 while payments to it are under way; `details.open.payments` names them. Payments older than an hour do not count.',
    access: 'Admin',
    shows: 'outcome',
    // The caller who archived it may repeat the request, if the answer was lost.
    evenArchived: true,
    params: AppParams,
    reply: Type.Object({ success: Type.Boolean(), message: Type.String() }),
    errors: ['APPLICATION_NOT_FOUND', 'CONFLICT'],
  },
  getApplicationStats: {
    method: 'GET',
    path: '/api/apps/:app/stats',
    area: 'Applications',
    summary: 'Totals of an application',
    access: 'Read',
    shows: 'definitions',
    params: AppParams,
    reply: Type.Object({
      total_collections: Type.Integer(),
      total_indexes: Type.Integer(),
      total_documents: Type.Integer({ description: 'records, each in its newest version' }),
      storage_size: Type.Integer({ description: 'bytes of the records' }),
      index_size: Type.Integer({ description: 'bytes of the indexes' }),
      active_connections: Type.Integer({
        description: 'connections of the service to its database that are in use',
      }),
    }),
    errors: ['APPLICATION_NOT_FOUND'],
  },
})
