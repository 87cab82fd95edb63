import { Fault } from '../../base/fault.ts'
import type { Database } from '../../database/database.ts'
import type { Collection } from '../../model/readable.ts'
import { listSameValueKeys } from '../../projections/project-records.ts'
import { listExistingKeys } from '../../projections/read-records.ts'
import type { Tenant } from '../../services/applications/tenants.ts'
import type { Reservation } from '../../services/locks/key-reservations.ts'

/**
 * Refuses records whose key, or value of a unique field, exists (409). Both are held as names before the table is
 * read, and the table is read when it shows every write that came before; so of two writers of one new key only one
 * passes, and none follows a record that was acknowledged. The keys are to be released once their block is
 * projected.
 */
export async function reserveNewKeys(
  database: Database,
  tenant: Tenant,
  write: {
    collection: Collection
    names: readonly string[]
    /** The records' keys by their names in the table. */
    keys: ReadonlyMap<string, string>
    bodies: readonly string[]
    /** The caller may know the keys of other records than its own. */
    mayRead: boolean
  },
): Promise<{ release: () => void; check: () => void }> {
  const { collection, keys, bodies } = write
  const held = tenant.keyReservations.reserve(collection.id, write.names)
  if (typeof held === 'string') throw makeExistsFault(held)
  try {
    await tenant.chain.whenApplied(await tenant.keyReservations.resolveHeight(collection.id))
    const [found] = await listExistingKeys(database, {
      schema: tenant.schema,
      table: collection.table,
      keys: [...keys.keys()],
    })
    if (found !== undefined) throw makeExistsFault(keys.get(found) ?? found)
    for (const { fields } of collection.indexes.filter(({ unique }) => unique)) {
      const place = { schema: tenant.schema, table: collection.table }
      const [same] = await listSameValueKeys(database, { ...place, fields, bodies })
      if (same !== undefined) throw makeSameFieldFault(fields, write.mayRead ? same : undefined)
    }
    return { release: held.release, check: () => refuseOvertaken(held) }
  } catch (error) {
    held.release()
    throw error
  }
}

/** Called when the records get their place in the log. */
function refuseOvertaken(held: Reservation): void {
  const key = held.findOvertaken()
  if (key !== undefined) throw makeExistsFault(key)
}

function makeSameFieldFault(fields: readonly string[], key: string | undefined): Fault {
  const record = key === undefined ? 'A record' : `The record ${key}`
  return new Fault('RECORD_EXISTS', {
    message: `${record} has the same ${fields.join(', ')} already`,
    details: { ...(key !== undefined && { key }), fields },
  })
}

function makeExistsFault(key: string): Fault {
  return new Fault('RECORD_EXISTS', {
    message: `There is a record ${key} already`,
    details: { key },
  })
}
