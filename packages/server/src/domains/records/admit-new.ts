import { Fault } from '../../base/fault.ts'
import type { Service } from '../call.ts'
import type { CollectionState } from '../tenancy/definitions.ts'
import type { Tenant } from '../tenancy/tenancy.ts'
import { existingKeys } from './record-store.ts'

/**
 * Refuses records whose key exists (409). The keys are reserved before the table is asked and stay so until
 * their block is projected, so two writers of one new key cannot both pass. Returns what gives them up.
 */
export async function admitNew(
  service: Service,
  tenant: Tenant,
  write: { collection: CollectionState; keys: readonly string[] },
): Promise<() => void> {
  const { collection, keys } = write
  const taken: string[] = []
  const release = () => {
    for (const name of taken) tenant.arriving.delete(name)
  }
  try {
    for (const key of keys) {
      const name = `${collection.id}\u0000${key}`
      if (tenant.arriving.has(name)) throw exists(key)
      tenant.arriving.set(name, 1)
      taken.push(name)
    }
    const [found] = await existingKeys(service.database, {
      schema: tenant.schema,
      table: collection.table,
      keys,
    })
    if (found !== undefined) throw exists(found)
    return release
  } catch (error) {
    release()
    throw error
  }
}

function exists(key: string): Fault {
  return new Fault('RECORD_EXISTS', {
    message: `There is a record ${key} already`,
    details: { key },
  })
}
