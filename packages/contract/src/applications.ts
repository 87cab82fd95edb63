import { Type } from 'typebox'
import { EncryptionCoverage } from './encryption.ts'
import { limits } from './limits.ts'
import { defineContract } from './route.ts'
import {
  Address,
  AppId,
  AppParams,
  Description,
  HexHash,
  Nullable,
  StringEnum,
  Time,
} from './schemas.ts'

/** The choices of what gets to other chains, from the least to the most. */
export const publishChoices = ['nothing', 'roots', 'ciphertext', 'plaintext'] as const
export type PublishChoice = (typeof publishChoices)[number]

const Publication = Type.Object(
  {
    choice: StringEnum(publishChoices),
    chains: Type.Array(
      Type.Object({
        network: Type.String({ description: 'CAIP-2' }),
        height: Type.Integer({
          description: 'the block of the application up to which its blocks are on that chain',
        }),
        of: Type.Integer({ description: 'the newest block of the application' }),
      }),
    ),
  },
  { description: 'What of its log gets to other chains, and how far it is there.' },
)

const PublicApplication = {
  app_id: AppId,
  name: Type.String(),
  description: Nullable(Type.String()),
  created_at: Time,
  status: Type.Union([Type.Literal('active'), Type.Literal('archived')]),
}

const Bound = (what: string) =>
  Nullable(Type.Integer({ minimum: 0, description: `${what}; null: as many as there is room for` }))

const Quota = Type.Object(
  {
    bytes: Bound('bytes of its log'),
    records: Bound('entries of its log'),
    used: Type.Object({ bytes: Type.Integer(), records: Type.Integer() }),
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
  { additionalProperties: false },
)

export const Application = Type.Object(
  {
    ...PublicApplication,
    owner_address: Type.Optional(Nullable(Type.String())),
    collections: Type.Optional(Type.Integer()),
    views: Type.Optional(Type.Integer()),
    queries: Type.Optional(Type.Integer()),
    encryption: Type.Optional(EncryptionCoverage),
    payout: Type.Optional(Type.Object({ auto_payout_enabled: Type.Boolean() })),
    quota: Type.Optional(Quota),
    publish: Type.Optional(Publication),
  },
  { $id: 'Application' },
)

const DisplayName = Type.String({ minLength: 1, maxLength: limits.nameCharsMax })

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
        app_id: Type.Optional(AppId),
        owner_address: Type.Optional(Address),
        description: Type.Optional(Description),
      },
      { additionalProperties: false },
    ),
    reply: Type.Object({
      app_id: AppId,
      name: Type.String(),
      owner_address: Nullable(Type.String()),
      created_at: Time,
      app_key: Type.String(),
      key_hash: HexHash,
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
      'A new owner agrees by signing the request (X-Wallet-Address, X-Timestamp, X-Signature), which is made with a key; the operator needs no signature. For a day after that, the former owner takes the application back by a request that it signs with its own address, and that names nothing else where the application is archived. Only the operator may send `quota` and `status`. `quota` replaces the quota of the configuration for this application, and null returns to that. `status: "active"` brings an archived application back as it was. `publish` says how much of its log goes to other chains (docs/publishing.md); the operator can only reduce it. What is published cannot be taken back.',
    access: 'Admin',
    shows: 'definitions',
    params: AppParams,
    body: Type.Object(
      {
        name: Type.Optional(DisplayName),
        description: Type.Optional(Nullable(Description)),
        owner_address: Type.Optional(Address),
        quota: Type.Optional(Nullable(OwnQuota)),
        status: Type.Optional(Type.Literal('active')),
        publish: Type.Optional(StringEnum(publishChoices)),
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
      'Its owner, its Admin keys and the operator can still read its wallet and payouts. 409 while payments to it are under way; `details.open.payments` names them. Payments older than an hour do not count.',
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
      total_documents: Type.Integer(),
      storage_size: Type.Integer({ description: 'bytes' }),
      index_size: Type.Integer({ description: 'bytes' }),
      active_connections: Type.Integer(),
    }),
    errors: ['APPLICATION_NOT_FOUND'],
  },
})
