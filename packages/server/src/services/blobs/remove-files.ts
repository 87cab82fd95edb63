import type { Database } from '../../database/database.ts'
import { reserveFileRemoval } from '../../database/file-hold.ts'
import type { Tenant } from '../applications/tenants.ts'
import type { Blobs } from './blobs.ts'
import { listNamedFiles } from './named-files.ts'

/**
 * Removes those of an application's files at once that nobody names, and returns their bytes. A backup, or a move, reads
 * files after its rows: while one is under way, this removes nothing and returns undefined.
 */
export function removeUnnamedFiles(
  { database, blobs }: { readonly database: Database; readonly blobs: Blobs },
  tenant: Tenant,
  {
    hashes,
    refuseNeeded,
  }: {
    readonly hashes: readonly string[]
    /** Throws where files may be needed that no row names yet; asked while no file can be published. */
    readonly refuseNeeded: () => void
  },
): Promise<number | undefined> {
  return reserveFileRemoval(database, () =>
    blobs.store.removeUnnamed(tenant.application.number, hashes, async (free) => {
      // A row that was acknowledged names its file.
      await tenant.chain.whenApplied(tenant.chain.head().height)
      refuseNeeded()
      return listNamedFiles(database, tenant, free)
    }),
  )
}
