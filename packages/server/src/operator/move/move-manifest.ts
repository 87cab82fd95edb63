import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { limits } from '@tollbase/contract/limits'
import { permissionNames } from '@tollbase/contract/permissions'
import {
  AppId,
  Description,
  HexHash,
  MapOf,
  Nullable,
  StringEnum,
} from '@tollbase/contract/schemas'
import { FormatError } from '@tollbase/verify/bytes'
import {
  parseVerifierKey,
  type SignedCheckpoint,
  verifyCheckpoint,
  verifySignature,
} from '@tollbase/verify/checkpoint'
import { type Static, type TSchema, Type } from 'typebox'
import { Check } from 'typebox/value'
import { explainReadError } from '../../base/files.ts'
import { SetupError } from '../../base/setup-error.ts'
import type { ApplicationRecord } from '../../model/application.ts'
import type { KeyRecord } from '../../projections/keys.ts'

/** The files and folders of an exported application. */
export const exportNames = {
  manifest: 'application.json',
  /** The service's signature over the manifest, base64. */
  signature: 'application.json.sig',
  blobs: 'blobs',
} as const

const Count = Type.Integer({ minimum: 0 })
const Column = Type.String({ pattern: '^[a-z][a-z0-9_]{0,62}$' })

/** A table of the log. Everything else follows from these. */
const MovedTable = Type.Object({
  name: Type.Union([Type.Literal('block'), Type.Literal('tile')]),
  columns: Type.Array(Column, { minItems: 1 }),
  bytes: Count,
  sha256: Type.String({ pattern: '^[0-9a-f]{64}$' }),
})

/** A wrapped data key, see `services/encryption/data-key-store.ts`. */
const MovedDataKey = Type.Object({
  collection: Type.String(),
  epoch: Count,
  masterKey: Type.String(),
  /** Base64. */
  wrapped: Type.String(),
  reserved: Count,
  createdAtMs: Count,
})

const closed = { additionalProperties: false } as const

/** An application's record. It becomes an entry of the service's own chain, so nothing else may be in it. */
const MovedApplication = Type.Unsafe<ApplicationRecord>(
  Type.Object(
    {
      app_id: AppId,
      number: Count,
      name: Type.String({ maxLength: limits.nameCharsMax }),
      description: Nullable(Description),
      owner_address: Nullable(Type.String({ pattern: '^0x[0-9a-f]{40}$' })),
      owner_trusted_from_ms: Type.Optional(Count),
      owner_before: Type.Optional(Nullable(Type.String({ pattern: '^0x[0-9a-f]{40}$' }))),
      created_at: Type.String({ maxLength: 40 }),
      /** Where it goes it is active. */
      status: Type.Union([Type.Literal('active'), Type.Literal('archived')]),
      moved_from: Type.Optional(Type.Unknown()),
      quota: Type.Optional(Type.Unknown()),
      publish: Type.Optional(Type.Unknown()),
    },
    closed,
  ),
)

/** A key's record. One that spends from the balance of somebody else, by an authorization, is none of these. */
const MovedKey = Type.Unsafe<KeyRecord>(
  Type.Object(
    {
      key_hash: HexHash,
      app_id: AppId,
      prefix: Type.String({ maxLength: 8 }),
      name: Type.String({ maxLength: limits.nameCharsMax }),
      permissions: Type.Array(StringEnum(permissionNames)),
      pay_limits: Nullable(MapOf(Type.Unknown())),
      created_at: Type.String({ maxLength: 40 }),
      expires_at: Nullable(Type.String({ maxLength: 40 })),
      revoked_at: Type.Null(),
      budget: Type.Optional(Type.String({ pattern: '^key:[0-9a-f]{64}$' })),
    },
    closed,
  ),
)

const MoveManifest = Type.Object({
  format: Type.Literal(1),
  /** Time of the snapshot, RFC 3339. */
  made_at: Type.String(),
  /** The newest migration of the program that made it. */
  migration: Type.Integer({ minimum: 1 }),
  application: MovedApplication,
  /** Its keys that are not revoked, as hashes. */
  keys: Type.Array(MovedKey),
  data_keys: Type.Array(MovedDataKey),
  /** The leaf up to which expired versions are erased from the log; -1 before the first. */
  erased: Type.Integer({ minimum: -1 }),
  /** The signed checkpoint of the whole log. */
  checkpoint: Type.String(),
  /** The verifier key of the checkpoint and of every block (C2SP). */
  key: Type.String(),
  height: Type.Integer({ minimum: 1 }),
  entries: Type.Integer({ minimum: 1 }),
  tables: Type.Array(MovedTable, { minItems: 2, maxItems: 2 }),
  blobs: Type.Object({
    files: Count,
    bytes: Count,
    /** The blobs that rows name and whose files the service had not. */
    lost: Type.Optional(Count),
  }),
} satisfies Readonly<Record<string, TSchema>>)

/** The content of an exported application. It is written last, so a folder without it is no export. */
export type MoveManifest = Static<typeof MoveManifest>

/** The bytes that the service signs: its other signatures, over block headers and notes, begin otherwise. */
export function formatSigned(manifest: Buffer): Buffer {
  return Buffer.concat([Buffer.from('tollbase-export-v1\n'), manifest])
}

/**
 * Reads the manifest of an exported application, which must be signed by this key, and its checkpoint; a SetupError says
 * why a folder is none.
 */
export function readMoveManifest(
  folder: string,
  key: string,
): { readonly manifest: MoveManifest; readonly head: SignedCheckpoint } {
  const path = join(folder, exportNames.manifest)
  const bytes = readFile(folder, exportNames.manifest)
  const signature = Buffer.from(readFile(folder, exportNames.signature).toString(), 'base64')
  if (!verifySignature(signature, formatSigned(bytes), parseKey(key)))
    throw new SetupError(
      `${path} was changed, or not signed by the key of --key, which is "key" of GET /api/apps/{app}/chain/checkpoint at the service that it comes from`,
    )
  const manifest: unknown = parseText(bytes.toString())
  if (!Check(MoveManifest, manifest))
    throw new SetupError(
      `${path} does not describe an application in a form that this program knows; use the program that exported it, or a newer one`,
    )
  const { application, keys, checkpoint } = manifest
  const verdict = verifyCheckpoint(checkpoint, key)
  // All chains of a service have one key, each under a name of its own.
  if (!verdict.ok) throw new SetupError(`--key: ${verdict.problem}`)
  if (keys.some((one) => one.app_id !== application.app_id) || manifest.key !== key)
    throw new SetupError(`${path} holds the key of another application`)
  return { manifest, head: verdict.checkpoint }
}

function readFile(folder: string, name: string): Buffer {
  try {
    return readFileSync(join(folder, name))
  } catch (error) {
    throw new SetupError(
      `${folder} is not an exported application: ${name} cannot be read (${explainReadError(error)})`,
    )
  }
}

function parseKey(key: string): Uint8Array {
  try {
    return parseVerifierKey(key).publicKey
  } catch (error) {
    if (error instanceof FormatError) throw new SetupError(`--key: ${error.message}`)
    throw error
  }
}

function parseText(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
