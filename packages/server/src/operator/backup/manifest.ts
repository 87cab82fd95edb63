import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Static, Type } from 'typebox'
import { Check } from 'typebox/value'
import { explainReadError } from '../../base/files.ts'
import { SetupError } from '../../base/setup-error.ts'

/** The files and folders of a backup. */
export const backupNames = {
  manifest: 'manifest.json',
  blobs: 'blobs',
  devnet: 'devnet',
} as const

/** The files of keys in a data folder. Whoever has them can sign as the service and open what is encrypted. */
export const keyFiles = { signing: 'signing-key.pem', master: 'master-keys' } as const

const Hash = Type.String({ pattern: '^[0-9a-f]{64}$' })
const Count = Type.Integer({ minimum: 0 })
const Name = Type.String({ pattern: '^[a-z][a-z0-9_]{0,62}$' })

const TableFile = Type.Object({
  schema: Name,
  name: Name,
  columns: Type.Array(Name, { minItems: 1 }),
  /** Relative to the backup's folder; PostgreSQL's binary COPY form. */
  file: Type.String({ pattern: '^tables-[0-9a-f]{16}/[a-z0-9_.]+$' }),
  bytes: Count,
  sha256: Hash,
})

const Manifest = Type.Object({
  format: Type.Literal(1),
  /** Time of the snapshot, RFC 3339. */
  made_at: Type.String(),
  /** The newest migration of the operational state. */
  migration: Type.Integer({ minimum: 1 }),
  chains: Type.Array(Type.Object({ schema: Name, height: Count, entries: Count })),
  tables: Type.Array(TableFile),
  blobs: Type.Object({
    files: Count,
    bytes: Count,
    /** The blobs that rows name and whose files the service had not. */
    lost: Type.Optional(Count),
    /** The number of this backup in its folder: a part of the copies is read again with each. */
    turn: Type.Optional(Count),
  }),
})

/** The content of a backup. It is written last, so a folder without it is no backup. */
export type Manifest = Static<typeof Manifest>
export type TableFile = Static<typeof TableFile>

/** Reads the manifest of a backup; a SetupError says why a folder is none. */
export function readManifest(folder: string): Manifest {
  const path = join(folder, backupNames.manifest)
  let value: unknown
  try {
    value = JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    throw new SetupError(
      `${folder} is not a backup: ${path} cannot be read (${explainReadError(error)})`,
    )
  }
  if (!Check(Manifest, value))
    throw new SetupError(
      `${path} is not the manifest of a backup that this program knows; use the program that made it, or a newer one`,
    )
  return value
}
