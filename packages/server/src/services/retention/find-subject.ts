import { isRecord } from '../../base/is-record.ts'
import { findMemberText } from '../../base/json-text.ts'
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
  /** Told of each version of an encrypted collection that is damaged, so that nobody can say whose it is. */
  readonly tellDamaged: (leaf: number) => void
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
    values: listValueTexts(subject.value),
  })
}

async function findSealed(
  database: Database,
  tenant: Tenant,
  { collection, subject, after: from, tellDamaged }: Search,
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
    const tell = ({ leaf }: { readonly leaf: number }) => tellDamaged(leaf)
    for (const { leaf, body } of await tenant.sealer.openIntact(collection, page, tell))
      if (hasValue(body, subject)) found.push(leaf)
  }
}

function hasValue(body: string, { field, value }: Subject): boolean {
  const record: unknown = JSON.parse(body)
  if (!isRecord(record) || !Object.hasOwn(record, field)) return false
  const found = record[field]
  if (typeof found !== 'number') return found === value
  if (!wholeNumber.test(value)) return false
  // Many long numbers are one double: their texts tell them apart.
  return Number.isSafeInteger(found)
    ? found === Number(value)
    : findMemberText(body, field)?.trim() === value
}

const wholeNumber = /^(0|-?[1-9][0-9]*)$/

/** The text, and the number where it is a whole one: clients write ids as both. */
function listValueTexts(value: string): string[] {
  return wholeNumber.test(value) ? [JSON.stringify(value), value] : [JSON.stringify(value)]
}
