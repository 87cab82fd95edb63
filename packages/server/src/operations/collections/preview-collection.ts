import { HttpReply } from '../../http/reply.ts'
import { noStats } from '../../model/collection-stats.ts'
import { refuseOnPrivate } from '../../model/encrypted-collections.ts'
import { getReadPrice, isFree } from '../../model/find-price.ts'
import { isOpen } from '../../model/read-level.ts'
import { readSample } from '../../projections/collection-store.ts'
import { canRead } from '../../services/access/access.ts'
import { requireDescribableCollection } from '../../services/access/find-sources.ts'
import { readCurrentStats } from '../../services/collections/current-stats.ts'
import { makeFreeTurn } from '../../services/reading/query-turn.ts'
import { makeReader } from '../../services/reading/run-query.ts'
import type { Operation } from '../operation.ts'

const rowsDefault = 3

export const previewCollection: Operation<
  'previewCollection',
  'database' | 'tenants' | 'world' | 'queryRunner'
> = async (call, { params }) => {
  const { service } = call
  const tenant = await service.tenants.load(params.app)
  const collection = requireDescribableCollection(call.caller, tenant, params.collection)
  refuseOnPrivate(collection, 'a preview')
  const price = getReadPrice(tenant.data.catalog, collection)
  // The counts wait for what was just written, and so the sample has it, too.
  const stats = (await readCurrentStats(service, tenant)).get(collection.id) ?? noStats
  // A priced collection is sampled only as far as its owner says.
  const { rows, fields } = collection.policy.preview ?? {
    rows: isFree(price) ? rowsDefault : 0,
    fields: undefined,
  }
  const mayShow =
    isOpen(tenant.data.catalog, collection) || canRead(call.caller, tenant.application)
  const { table, policy } = collection
  const sample =
    rows === 0 || !mayShow
      ? ''
      : await readSample(
          makeReader(service.queryRunner, makeFreeTurn(call, params.app)),
          tenant.schema,
          { table, rows, fields: fields ?? policy.offered.select },
        )
  const head = JSON.stringify({
    collection: collection.name,
    schema: collection.schema_definition,
    row_count_band: formatBand(stats.documents),
    updated_at: collection.updated_at,
    price: {
      per_access: String(price.perAccess),
      per_row: String(price.perRow),
      per_kb: String(price.perKb),
    },
  })
  return new HttpReply(`${head.slice(0, -1)},"sample":[${sample}]}`)
}

/** Formats an order of magnitude: enough to decide on a purchase, too coarse to watch single inserts. */
function formatBand(count: number): string {
  if (count === 0) return '0'
  const low = 10 ** Math.floor(Math.log10(count))
  return `${low}-${low * 10 - 1}`
}
