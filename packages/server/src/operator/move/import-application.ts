import { join } from 'node:path'
import type { SignedCheckpoint } from '@tollbase/verify/checkpoint'
import type { Entry } from '@tollbase/verify/entry'
import pino from 'pino'
import { makeHolderName } from '../../base/lease-holder.ts'
import { SetupError } from '../../base/setup-error.ts'
import { realWorld } from '../../base/world.ts'
import type { BlobShelf } from '../../blobs/blob-shelf.ts'
import { adoptBlocks } from '../../chain/adopt-blocks.ts'
import { BlockStore } from '../../chain/block-store.ts'
import { loadSigner } from '../../chain/signing.ts'
import type { Config } from '../../config/config.ts'
import type { Database } from '../../database/database.ts'
import { dropSchema } from '../../database/drop-schema.ts'
import { runMigrations } from '../../database/run-migrations.ts'
import { sql } from '../../database/sql.ts'
import type { ApplicationRecord } from '../../model/application.ts'
import { isCommandKeyId } from '../../sealing/key-command.ts'
import { hasSchema } from '../../services/applications/create-schema.ts'
import { getChainOrigin } from '../../services/applications/open-own-chain.ts'
import {
  getSchemaName,
  openTenants,
  type SystemChain,
} from '../../services/applications/tenants.ts'
import { makeShelf } from '../../services/blobs/open-shelf.ts'
import { insertDataKey } from '../../services/encryption/data-key-store.ts'
import { DataKeys } from '../../services/encryption/data-keys.ts'
import { ensureSecret, serviceSecrets } from '../../services/identity/secrets.ts'
import { ensureSigningKey } from '../../services/identity/signing-key.ts'
import { markErased } from '../../services/retention/erasure-store.ts'
import { keyFiles } from '../backup/manifest.ts'
import { describeLost, type LostBlobs } from '../backup/restore-blobs.ts'
import { refuseUnfinishedRestore } from '../backup/restore-marks.ts'
import { type MaintenanceReport, type Progress, useDatabase } from '../maintenance.ts'
import { migrations } from '../migrations.ts'
import {
  copyBlobs,
  type Difference,
  type ExportedLog,
  loadExportedLog,
  staging,
} from './load-exported-log.ts'
import { type MoveManifest, readMoveManifest } from './move-manifest.ts'

export type ImportOptions = {
  /** The folder of an exported application. */
  readonly from: string
  /** The verifier key of its chain at the service that it comes from, learned there and not from the export. */
  readonly key: string
  /** Goes on without the blobs whose files are not whole. */
  readonly acceptLost?: boolean | undefined
}

export type ImportReport = MaintenanceReport & {
  readonly app: string
  /** The blobs of which there are rows and no files. */
  readonly lost?: LostBlobs
  /** Its keys, which open it here as they did there. */
  readonly keys: number
}

type Export = { readonly manifest: MoveManifest; readonly head: SignedCheckpoint }

const log = pino({ level: 'error' }, pino.destination(2))

/**
 * Takes in an application that another service exported: checks every block, signs it as a block of this service, makes
 * all tables from the log, and copies the files of blobs, each checked by its hash. Entries and their order stay, so
 * every leaf and every root of the log is what it was. The service must be stopped. Interrupted, it is run again.
 */
export async function importApplication(
  config: Config,
  { from, key, acceptLost = false }: ImportOptions,
  progress: Progress,
): Promise<ImportReport> {
  const { dataDir } = config
  refuseUnfinishedRestore(dataDir)
  const exported = readMoveManifest(from, key)
  refuseNewer(exported.manifest, from)
  return useDatabase(config, async (database, connection) => {
    await runMigrations(database, migrations, { now: realWorld.now() })
    const service = await openService(config, database)
    const { system } = service
    try {
      const number = await takeNumber(service, exported.manifest)
      await refuseKnownKeys(database, exported.manifest)
      let lost: LostBlobs | undefined
      if (!(await hasSchema(database, getSchemaName(number)))) {
        const staged = await stage(service, {
          ...{ ...exported, connection, dataDir, from, number, progress, acceptLost },
          shelf: makeShelf(config, realWorld),
        })
        if (staged.difference !== undefined) return describe(exported.manifest, staged)
        lost = staged.lost
        await publish(service, { ...exported, number })
      }
      await noteApplication(system, { ...exported, number })
      return describe(exported.manifest, { lost })
    } finally {
      await service.close()
    }
  })
}

type Staged = { readonly difference?: Difference; readonly lost?: LostBlobs | undefined }

function describe(
  { application, keys, height, entries }: MoveManifest,
  { difference, lost }: Staged,
): ImportReport {
  const { app_id: app } = application
  const losses = lost !== undefined && lost.count > 0 ? { lost } : {}
  if (difference !== undefined)
    return {
      ...{ equal: false, difference: { chain: app, ...difference }, chains: [], app, keys: 0 },
      ...losses,
    }
  const chains = [{ chain: app, blocks: height, entries }]
  return { equal: true, chains, app, keys: keys.length, ...losses }
}

function refuseNewer({ migration }: MoveManifest, from: string): void {
  if (migration > (migrations.at(-1)?.id ?? 0))
    throw new SetupError(
      `--from ${from}: a newer program exported this; import it with a program at least as new`,
    )
}

type OpenService = {
  readonly database: Database
  readonly system: SystemChain
  readonly dataKeys: DataKeys
  /** Signs the blocks of an application's chain, and names the chain. */
  readonly findIdentity: (app: string) => Promise<Parameters<typeof adoptBlocks>[2]>
  readonly close: () => Promise<void>
}

/** Opens the service's own chain, which must be there. */
async function openService(config: Config, database: Database): Promise<OpenService> {
  if (!(await hasSchema(database, 'system')))
    throw new SetupError('there is no service here yet: start it once, stop it, and import then')
  const keyFile = join(config.dataDir, keyFiles.signing)
  await ensureSigningKey(database, keyFile)
  const secret = await ensureSecret(database, realWorld, serviceSecrets.serviceName)
  const serviceName = config.serviceName ?? `tollbase-${secret.toString('hex')}`
  const dataKeys = new DataKeys({
    database,
    world: realWorld,
    keyFile: join(config.dataDir, keyFiles.master),
    masterKeys: config.masterKeys,
    keyCommand: config.keyCommand,
  })
  const tenants = await openTenants({
    database,
    world: realWorld,
    log,
    dataKeys,
    loadSigner: (origin) => loadSigner(keyFile, origin),
    serviceName,
    holder: makeHolderName(realWorld),
  })
  return {
    database,
    system: tenants.system,
    dataKeys,
    findIdentity: async (app) => {
      const origin = getChainOrigin(serviceName, app)
      return { origin, signer: await loadSigner(keyFile, origin) }
    },
    close: () => tenants.close(),
  }
}

/**
 * Gives the application's number here: a new one, or that of an import that was interrupted at its end. One that has noted
 * no more than the application may be followed by a newer export; one whose log is here goes on by the same export.
 */
async function takeNumber(
  { database, system: { applications, keys } }: OpenService,
  manifest: MoveManifest,
): Promise<number> {
  const { app_id: app } = manifest.application
  if (app === 'system')
    throw new SetupError('the id system is taken by the service itself, whose chain has its name')
  const found = applications.get(app)
  if (found === undefined) return applications.getNextNumber()
  const { number, status, moved_from: from } = found
  // Keys come with the last step: once they are there, nothing is left to be done, and some may have been revoked since.
  const hasKeys = keys.listByApp(app).length > 0 || keys.hasForgotten(app)
  const isBegun = status === 'archived' && from !== undefined && !hasKeys
  if (isBegun && from.checkpoint === manifest.checkpoint) return number
  if (isBegun && !(await hasSchema(database, getSchemaName(number)))) return number
  throw new SetupError(
    `there is an application ${app} here already; an application keeps its id when it moves`,
  )
}

/**
 * Refuses keys that are known here, and keys that go on with the spending of such: either would be somebody else's.
 * Asked at each run, as an import that is begun again may come with another list.
 */
async function refuseKnownKeys(
  database: Database,
  { keys, application }: MoveManifest,
): Promise<void> {
  const hashes = keys.map(({ key_hash: hash }) => hash)
  const budgets = keys.flatMap(({ budget }) => budget ?? [])
  const all = [...hashes, ...budgets.map((one) => one.slice('key:'.length))]
  const [taken] = await database.query<{ owner: string }>(sql`
    SELECT app_id AS owner FROM system.api_key WHERE key_hash = ANY(${all}::text[])
    UNION ALL SELECT body::jsonb ->> 'app_id' FROM system.authorization WHERE key_hash = ANY(${all}::text[])
    UNION ALL SELECT 'a key that spends' FROM system.spending
      WHERE budget = ANY(${[...budgets, ...hashes.map((hash) => `key:${hash}`)]}::text[]) LIMIT 1`)
  if (taken !== undefined)
    throw new SetupError(`a key of ${application.app_id} is a key of ${taken.owner} here already`)
}

/** Refuses encrypted records that nobody here could open. */
function refuseUnusable(
  known: readonly string[],
  { data_keys: wrapped, application }: MoveManifest,
): void {
  const missing = wrapped.find(({ masterKey }) => !known.includes(masterKey))
  if (missing === undefined) return
  const { masterKey } = missing
  throw isCommandKeyId(masterKey)
    ? new SetupError(
        `${application.app_id} has encrypted records under ${masterKey} of the other service: set the same encryption_key_command here, with this id, and import again`,
      )
    : new SetupError(
        `${application.app_id} has encrypted records under the master key ${masterKey} of the other service: add that line of its file ${keyFiles.master} at the end of the file here, and import again`,
      )
}

/** Checks log and files beside all that is here already; of what is not taken nothing stays. */
async function stage(
  { database, dataKeys }: OpenService,
  move: Omit<ExportedLog, 'database'> & {
    readonly dataDir: string
    readonly shelf: BlobShelf
    readonly number: number
    readonly acceptLost: boolean
  },
): Promise<Staged> {
  const { dataDir, shelf, number, acceptLost } = move
  refuseUnusable(await dataKeys.listMasterKeys(), move.manifest)
  let isTaken = false
  try {
    const difference = await loadExportedLog({ database, ...move })
    if (difference !== undefined) return { difference }
    const lost = await copyBlobs({ database, ...move }, { shelf, dataDir, number })
    isTaken = lost.count === 0 || acceptLost
    return isTaken ? { lost } : { lost, difference: describeLost(lost) }
  } finally {
    if (!isTaken) {
      await dropSchema(database, staging)
      for await (const file of shelf.list(number)) await shelf.remove(file)
    }
  }
}

/** Makes the staged log the application's. Until the application is noted as active, nobody gets at it. */
async function publish(
  { database, system, findIdentity }: OpenService,
  move: Export & { readonly number: number },
): Promise<void> {
  const { manifest, number } = move
  const { app_id: app } = manifest.application
  const schema = getSchemaName(number)
  const identity = await findIdentity(app)
  if (system.applications.get(app) === undefined) {
    const record = makeRecord(move, 'archived')
    await append(system, [{ header: { type: 'application', app }, body: JSON.stringify(record) }])
  }
  const work = async (tx: Parameters<typeof adoptBlocks>[0]) => {
    const epoch = await adoptBlocks(tx, staging, identity)
    await tx.execute(sql`ALTER SCHEMA ${sql.id(staging)} RENAME TO ${sql.id(schema)}`)
    const bytes = await new BlockStore(tx, schema).bodyBytes(0, manifest.height)
    await tx.execute(sql`
      INSERT INTO operations.chain_lease (chain, holder, epoch, expires_at_ms, height, body_bytes)
      VALUES (${schema}, '', ${epoch}, 0, ${manifest.height}, ${bytes})`)
    if (manifest.erased >= 0) await markErased(tx, schema, manifest.erased)
    for (const { wrapped, ...row } of manifest.data_keys)
      await insertDataKey(tx, { ...row, app, wrapped: Buffer.from(wrapped, 'base64') })
  }
  await database.transaction(work, { statementTimeoutMs: 0 })
}

/** Writes the application and its keys into the service's own chain; from then on it is there. */
async function noteApplication(
  system: SystemChain,
  move: Export & { readonly number: number },
): Promise<void> {
  const { app_id: app } = move.manifest.application
  const record = makeRecord(move, 'active')
  const keys = move.manifest.keys.map(
    (key): Entry => ({ header: { type: 'key', app }, body: JSON.stringify(key) }),
  )
  await append(system, [
    { header: { type: 'application', app }, body: JSON.stringify(record) },
    ...keys,
  ])
}

/**
 * The quota is left out: this service's operator sets it. So is what it publishes, which its keys choose anew: other
 * chains take nothing back.
 */
function makeRecord(
  { manifest, number }: Export & { readonly number: number },
  status: ApplicationRecord['status'],
): ApplicationRecord {
  const { quota: _, publish: __, ...record } = manifest.application
  const { checkpoint, key } = manifest
  return { ...record, number, status, moved_from: { checkpoint, key } }
}

async function append({ chain }: SystemChain, entries: readonly Entry[]): Promise<void> {
  const { height } = await chain.append(entries)
  await chain.whenApplied(height)
}
