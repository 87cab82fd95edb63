import type { DatabaseConnection } from '../database/connection.ts'
import { type CopySession, runCopySession, TableChangedError } from '../database/copy-session.ts'
import type { Queryable } from '../database/database.ts'
import { isDropConflict } from '../database/errors.ts'
import { loadCatalog } from '../projections/definitions/apply-definition.ts'
import {
  addNamedBlob,
  listBlobTables,
  listNamedBlobs,
  type NamedBlob,
  type NamedPlace,
} from './named-blobs.ts'

type NamedBlobs = Map<string, NamedBlob>

/** `named` are the files that the rows of the places name, by their paths. */
type Copied<T> = { readonly copied: T; readonly named: NamedBlobs }

type Work<T> = {
  readonly listPlaces: (session: Queryable) => Promise<readonly NamedPlace[]>
  /** Copies all else, and may name more files. */
  readonly copy: (session: CopySession, named: NamedBlobs) => Promise<T>
}

/** A copy begins anew so often where the service drops a table, or writes it anew, just when it is to be locked. */
const triesMax = 10

/**
 * Copies in one transaction, and reads first what files its snapshot names. The service may drop a table of such names at
 * any time, as where it changes the encryption of a collection, and must not wait until all is copied.
 */
export async function copyWithBlobs<T>(
  connection: DatabaseConnection,
  work: Work<T>,
  tries = triesMax,
): Promise<Copied<T>> {
  try {
    return await runCopySession(connection, async (session) => {
      const places = await work.listPlaces(session)
      const tables = await listTables(session, places)
      const named = await session.readLocked(tables, () => readNamed(session, places))
      return { copied: await work.copy(session, named), named }
    })
  } catch (error) {
    const isChange = error instanceof TableChangedError || isDropConflict(error)
    if (!isChange || tries === 1) throw error
    return copyWithBlobs(connection, work, tries - 1)
  }
}

async function listTables(session: Queryable, places: readonly NamedPlace[]) {
  const tables: { readonly schema: string; readonly name: string }[] = []
  for (const { schema } of places)
    for (const { table } of listBlobTables(await loadCatalog(session, schema)))
      tables.push({ schema, name: table })
  return tables
}

async function readNamed(session: Queryable, places: readonly NamedPlace[]): Promise<NamedBlobs> {
  const named: NamedBlobs = new Map()
  for (const place of places)
    for await (const blob of listNamedBlobs(session, place)) addNamedBlob(named, blob)
  return named
}
