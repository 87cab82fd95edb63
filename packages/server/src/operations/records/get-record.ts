import { Fault } from '../../base/fault.ts'
import type { Database } from '../../database/database.ts'
import { HttpReply } from '../../http/reply.ts'
import { toAsOf } from '../../model/as-of.ts'
import { getDefinitionVersion } from '../../model/definition-version.ts'
import { getReadPrice, isFree } from '../../model/find-price.ts'
import { makeMeasuredRead } from '../../model/measured-use.ts'
import { makeSourceName } from '../../model/source-names.ts'
import { toApplicationAccount } from '../../projections/ledger-entry.ts'
import type { Caller } from '../../services/access/access.ts'
import {
  type ReadableSource,
  refuseUnoffered,
  requireCollection,
  requireReadableCollection,
} from '../../services/access/find-sources.ts'
import type { Tenant } from '../../services/applications/tenants.ts'
import { readOpened } from '../../services/encryption/read-opened.ts'
import { findExpired } from '../../services/retention/expired-records.ts'
import type { Operation } from '../operation.ts'

/** The size up to which a record with a price by the KB is quoted and delivered. */
const pricedBytesMax = 64 * 1024

export const getRecord: Operation<
  'getRecord',
  'database' | 'tenants' | 'payments' | 'recordNameKey'
> = async (call, { params }) => {
  const { service } = call
  const tenant = await service.tenants.load(params.app)
  const { collection, free } = requireGettable(call.caller, tenant, params.collection)
  const place = { collection: collection.id, key: params.key }
  if (free || isFree(getReadPrice(tenant.data.catalog, collection))) {
    const found = await readReply(service.database, tenant, place)
    if (!found.exists) {
      const expired = await findExpired(service, tenant, {
        collection: requireCollection(tenant, collection.id),
        key: params.key,
      })
      throw makeAbsentFault(expired.length > 0, `${params.key} in ${collection.name}`)
    }
    return new HttpReply(found.text)
  }
  const { emptyAnswerFree: emptyFree } = collection.policy
  const price = { ...getReadPrice(tenant.data.catalog, collection), emptyFree }
  return service.payments.sell(call, {
    tenant,
    operation: 'getRecord',
    description: `One record of ${params.app}::${collection.name}`,
    meaning: getDefinitionVersion(tenant, collection),
    payees: [
      {
        account: toApplicationAccount(params.app),
        platformBasisPoints: 0,
        item: { kind: 'collection', name: collection.name },
      },
    ],
    pricedBy: [tenant],
    pricesNow: () => [price],
    mostUnder: () => [{ rows: 1, bytes: pricedBytesMax }],
    sellerUnder: () => params.app,
    breakdownUnder: () => ({}),
    deliver: async ([one = price]) => {
      const found = await readReply(service.database, tenant, place)
      // The absence of a record is an answer too, and costs as much as an empty answer: existence is not free.
      const size = {
        sources: [makeSourceName(params.app, collection.id)],
        rows: found.exists ? 1 : 0,
        bytes: found.exists ? Buffer.byteLength(found.text) : 0,
      }
      if (size.bytes > pricedBytesMax)
        throw new Fault('RESULT_TOO_LARGE', {
          message: 'The record is too large to be sold singly; use /list with max_kb',
        })
      const charged = !found.exists && one.emptyFree ? null : size
      return {
        status: 200,
        body: Buffer.from(found.text),
        sizes: [charged],
        measured: [makeMeasuredRead(one, charged)],
        sources: [makeSourceName(params.app, collection.id)],
        rows: size.rows,
        asOf: found.asOf,
      }
    },
  })
}

function makeAbsentFault(isExpired: boolean, named: string): Fault {
  return isExpired
    ? new Fault('RECORD_EXPIRED', {
        message: `The record ${named} has expired: its content is deleted, and its history tells the hashes`,
      })
    : new Fault('RECORD_NOT_FOUND', { message: `There is no record ${named}` })
}

/** The collection if the caller may get records of it by their keys, free or by paying. */
export function requireGettable(caller: Caller, tenant: Tenant, nameOrId: string): ReadableSource {
  const readable = requireReadableCollection(caller, tenant, nameOrId)
  const { collection, free } = readable
  const used = { filter: [collection.primary_column], sort: [], select: 'all' } as const
  if (!free) refuseUnoffered(collection, used, false)
  return readable
}

async function readReply(
  database: Database,
  tenant: Tenant,
  place: { collection: string; key: string },
) {
  const collection = requireCollection(tenant, place.collection)
  const { asOf: row, version } = await readOpened(database, tenant, { collection, key: place.key })
  const asOf = toAsOf(row.as_of_height, row.as_of_sequence)
  const exists = version !== undefined && !version.deleted
  const where = exists
    ? `"block_height":${version.height},"sequence":${version.sequence}`
    : `"block_height":0,"sequence":0`
  const text = `{"record":${exists ? version.body : 'null'},${where},"as_of":${JSON.stringify(asOf)}}`
  return { exists, text, asOf }
}
