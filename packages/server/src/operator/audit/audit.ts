import { realWorld } from '../../base/world.ts'
import type { BlobShelf } from '../../blobs/blob-shelf.ts'
import { auditChain } from '../../chain/audit-chain.ts'
import type { Config } from '../../config/config.ts'
import type { Database } from '../../database/database.ts'
import { makeShelf } from '../../services/blobs/open-shelf.ts'
import {
  type ChainPlace,
  type MaintenanceReport,
  type Progress,
  runWithStorage,
} from '../maintenance.ts'
import { auditAnchors } from './audit-anchors.ts'
import { auditBlobs } from './audit-blobs.ts'
import {
  findContradiction,
  type KeptCheckpoint,
  listCheckpoints,
  readKeptCheckpoint,
  refuseStrangers,
} from './audit-checkpoint.ts'
import { auditLedger, auditReach } from './audit-ledger.ts'
import { auditOperations } from './audit-operations.ts'
import { auditPayments } from './audit-payments.ts'
import { auditServer } from './audit-server.ts'
import { auditTables } from './audit-tables.ts'
import { auditViews } from './audit-views.ts'

type Difference = Readonly<Record<string, unknown>>

/**
 * Recomputes everything from the entries: hashes, links, signatures, trees; the structure of each schema and every
 * projected table, by replaying the entries into a scratch schema and comparing row by row; views, from their
 * source tables; balances and sales, by the ledger's own rules; the heads of all chains that the system chain
 * announced; operational state, by the log; and the files of blobs, by their hashes. Reports the first difference.
 * `checkpoints` are texts of files that were kept, `trusted` the names of foreign parts of PostgreSQL that are allowed.
 */
export async function audit(
  config: Config,
  progress: Progress,
  {
    checkpoints = [],
    trusted,
  }: { checkpoints?: readonly string[]; trusted?: readonly string[] } = {},
): Promise<MaintenanceReport> {
  // An unreadable checkpoint must not cost the time of an audit.
  const kept = checkpoints.map(readKeptCheckpoint)
  return runWithStorage(config, (database, places) =>
    auditStorage(database, places, {
      ...{ progress, checkpoints: kept, shelf: makeShelf(config, realWorld) },
      ...(trusted && { trusted }),
    }),
  )
}

export type AuditOptions = {
  readonly progress: Progress
  readonly checkpoints?: readonly KeptCheckpoint[]
  /** Has the files of blobs, where they are to be judged. */
  readonly shelf?: BlobShelf
  /** Names what is allowed to be foreign, changed or set in PostgreSQL, in the words of `auditServer`. */
  readonly trusted?: readonly string[]
}

/** Audits storage that is already open and that nobody else writes to. */
export async function auditStorage(
  database: Database,
  places: readonly ChainPlace[],
  { progress, checkpoints = [], shelf, trusted = [] }: AuditOptions,
): Promise<MaintenanceReport> {
  const chains: { chain: string; blocks: number; entries: number }[] = []
  const differs = (difference: Difference) => ({ equal: false, difference, chains })
  refuseStrangers(checkpoints, places)
  const schemas = places.map(({ schema }) => schema)
  const server = await auditServer(database, { schemas, trusted })
  if (server !== undefined) return differs(server)
  for (const place of places) {
    const roots = new Map<number, Uint8Array>()
    const expected = listCheckpoints(checkpoints, place)
    const log = await auditChain(database, place.schema, {
      origin: place.origin,
      vkey: place.vkey,
      listErasable: place.listErasable,
      onHead: ({ size, root }) => {
        if (expected.some((one) => one.size === size)) roots.set(size, root)
      },
      onProgress: ({ height, of }) =>
        progress(`${place.app}: block ${height} of ${of}`, height / of),
    })
    if (!log.ok) return differs({ chain: place.app, ...log.difference })
    const { blocks, entries } = log
    chains.push({ chain: place.app, blocks, entries })
    const difference =
      findContradiction(expected, { origin: place.origin, roots, entries }) ??
      (await auditTables(database, place, progress))
    if (difference !== undefined) return differs({ chain: place.app, ...difference })
  }
  const views = await auditViews(database, places)
  const difference =
    views.difference ??
    (await auditTogether(database, places)) ??
    (shelf === undefined ? undefined : await auditBlobs(database, { places, shelf }, progress))
  if (difference !== undefined) return differs(difference)
  const { unfinished } = views
  return { equal: unfinished.length === 0, ...(unfinished.length > 0 && { unfinished }), chains }
}

/** Audits the parts that are judged by several chains together. */
async function auditTogether(
  database: Database,
  places: readonly ChainPlace[],
): Promise<Difference | undefined> {
  const operations = await auditOperations(database, places)
  const [system] = places
  // Without a chain of the service nothing was ever sold, and there is nothing to judge by.
  if (operations !== undefined || system === undefined) return operations
  return (
    (await auditLedger(database)) ??
    (await auditAnchors(database, places)) ??
    (await auditReach(database, places)) ??
    (await auditPayments(database, system))
  )
}
