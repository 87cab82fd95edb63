import {
  isEncrypted,
  isQueryable,
  makeNotOnPrivateFault,
} from '../../model/encrypted-collections.ts'
import type { Readable } from '../../model/readable.ts'
import type { UsedFields } from '../../query/join.ts'
import type { Tenant } from '../applications/tenants.ts'

/**
 * Makes sure that a source can be queried, if it is encrypted: by its plaintext table, where it is queryable, or as a
 * list of records that the service opens. 409 where neither is so; 503 where the plaintext cannot be read now.
 */
export async function preparePlaintext(
  tenant: Tenant,
  readable: Readable,
  use: {
    readonly used: UsedFields
    readonly opens: boolean
    /** The application whose position the answer states: that of its first source. */
    readonly home: Tenant
  },
): Promise<void> {
  if (readable.kind !== 'collection' || !isEncrypted(readable)) return
  if (!isQueryable(readable)) {
    if (use.opens) return
    throw makeNotOnPrivateFault(readable.name, 'a query in SQL, a join or an aggregate', {
      fields: listTested(use.used),
      remedy: 'it is where its owner turns `queryable` on in the encryption settings',
    })
  }
  if (tenant !== use.home)
    throw makeNotOnPrivateFault(
      readable.name,
      'a query that begins with a source of another application',
      {
        remedy: 'name a source of its own application first, whose position the answer states',
      },
    )
  await tenant.plaintext.requireReadable(readable)
}

/** The fields that conditions and orders look at. */
function listTested({ filter, sort }: UsedFields): readonly string[] {
  return [...new Set([...filter, ...sort])]
}
