import { Fault } from '../../base/fault.ts'
import { HttpReply } from '../../http/reply.ts'
import type { Call, Service } from '../call.ts'
import {
  collectionOf,
  type Readable,
  readableCollection,
  refuseUnoffered,
} from '../collections/visibility.ts'
import type { Operation } from '../operation.ts'
import { applicationAccount } from '../payments/entries.ts'
import { asOfReply } from '../tenancy/as-of.ts'
import { versionOf } from '../tenancy/definition-version.ts'
import { costOf, isFree, readPriceOf } from '../tenancy/price.ts'
import type { Tenant } from '../tenancy/tenancy.ts'
import { readRecord } from './record-store.ts'

/** A priced record by the KB is quoted, and delivered, up to this size. */
const pricedBytesMax = 64 * 1024

export const getRecord: Operation<'getRecord'> = async (call, { params }) => {
  const { service } = call
  const tenant = await service.tenancy.tenant(params.app)
  const { collection, free } = gettable(call, tenant, params.collection)
  const place = { collection: collection.id, key: params.key }
  if (free || isFree(readPriceOf(tenant.data.catalog, collection))) {
    const found = await read(service, tenant, place)
    if (!found.exists)
      throw new Fault('RECORD_NOT_FOUND', {
        message: `There is no record ${params.key} in ${collection.name}`,
      })
    return new HttpReply(found.text)
  }
  const { emptyAnswerFree: emptyFree } = collection.policy
  const price = { ...readPriceOf(tenant.data.catalog, collection), emptyFree }
  return service.payments.sell(call, {
    tenant,
    operation: 'getRecord',
    description: `One record of ${params.app}::${collection.name}`,
    meaning: versionOf(tenant, collection),
    payees: [{ account: applicationAccount(params.app), platformBasisPoints: 0 }],
    pricedBy: [tenant],
    pricesNow: () => [price],
    capUnder: ([one = price]) => costOf(one, { rows: 1, bytes: pricedBytesMax }),
    sellerUnder: () => params.app,
    breakdownUnder: () => ({}),
    deliver: async ([one = price]) => {
      const found = await read(service, tenant, place)
      // That there is no such record is an answer too, and costs what an empty answer costs: existence is not free.
      const size = {
        rows: found.exists ? 1 : 0,
        bytes: found.exists ? Buffer.byteLength(found.text) : 0,
      }
      if (size.bytes > pricedBytesMax)
        throw new Fault('RESULT_TOO_LARGE', {
          message: 'The record is too large to be sold singly; use /list with max_kb',
        })
      const isFreeOfCharge = !found.exists && one.emptyFree
      return {
        status: 200,
        body: Buffer.from(found.text),
        due: [isFreeOfCharge ? 0n : costOf(one, size)],
        rows: size.rows,
        asOf: found.asOf,
      }
    },
  })
}

/** The collection if the caller may get records of it by their keys, free or by paying. */
export function gettable(call: Call, tenant: Tenant, nameOrId: string): Readable {
  const readable = readableCollection(call, tenant, nameOrId)
  const { collection, free } = readable
  const used = { filter: [collection.primary_column], sort: [], select: 'all' } as const
  if (!free) refuseUnoffered(collection, used, false)
  return readable
}

async function read(service: Service, tenant: Tenant, place: { collection: string; key: string }) {
  const collection = collectionOf(tenant, place.collection)
  const { asOf: row, version } = await readRecord(service.database, {
    schema: tenant.schema,
    table: collection.table,
    key: place.key,
  })
  const asOf = asOfReply(row.as_of_height, row.as_of_sequence)
  const exists = version !== undefined && !version.deleted
  const where = exists
    ? `"block_height":${version.height},"sequence":${version.sequence}`
    : `"block_height":0,"sequence":0`
  const text = `{"record":${exists ? version.body : 'null'},${where},"as_of":${JSON.stringify(asOf)}}`
  return { exists, text, asOf }
}
