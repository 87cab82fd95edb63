import { isRecord } from '../../base/is-record.ts'
import type { Database } from '../../database/database.ts'
import { isEncrypted } from '../../model/encrypted-collections.ts'
import type { Collection } from '../../model/readable.ts'
import {
  listVersionsOf,
  readVersionPage,
  type StoredPage,
} from '../../projections/subject-versions.ts'
import type { Tenant } from '../applications/tenants.ts'
import { resealedBytesMax, resealedVersionsMax } from '../encryption/reseal-versions.ts'

/** The records of a subject: those whose field has this value. */
export type Subject = { readonly field: string; readonly value: string }

type Search = {
  readonly collection: Collection
  readonly subject: Subject
  /** Versions up to this leaf are passed over. */
  readonly after: number
}

/** Finds the leaves of versions that name a subject; those of an encrypted collection are opened. */
export async function findSubjectLeaves(
  database: Database,
  tenant: Tenant,
  search: Search,
): Promise<number[]> {
  const { collection, subject, after } = search
  if (isEncrypted(collection)) return findSealed(database, tenant, search)
  const place = { schema: tenant.schema, table: collection.table }
  return listVersionsOf(database, place, {
    field: subject.field,
    after,
    values: listValues(subject.value).map((one) => JSON.stringify(one)),
  })
}

async function findSealed(
  database: Database,
  tenant: Tenant,
  { collection, subject, after: from }: Search,
): Promise<number[]> {
  const place = { schema: tenant.schema, table: collection.table }
  const found: number[] = []
  for (let after = from; ; ) {
    const page: StoredPage = await readVersionPage(database, place, {
      after,
      rows: resealedVersionsMax,
      bytes: resealedBytesMax,
    })
    const last = page.at(-1)
    if (last === undefined) return found
    after = last.leaf
    for (const { leaf, body } of await tenant.sealer.open(collection, page))
      if (hasValue(body, subject)) found.push(leaf)
  }
}

function hasValue(body: string, { field, value }: Subject): boolean {
  const record: unknown = JSON.parse(body)
  if (!isRecord(record) || !Object.hasOwn(record, field)) return false
  return listValues(value).some((one) => one === record[field])
}

const wholeNumber = /^(0|-?[1-9][0-9]{0,14})$/

/** The text, and the number where it is a whole one: clients write ids as both. */
function listValues(value: string): (string | number)[] {
  return wholeNumber.test(value) ? [value, Number(value)] : [value]
}
