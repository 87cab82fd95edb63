import { toApplicationAccount } from '../../projections/ledger-entry.ts'
import { listKeys, type SalesSums, sumSales } from '../../projections/read-sales.ts'
import { parseItemKey } from '../../projections/sales.ts'
import { readStorageDebt, sumStorageFees } from '../../projections/storage-fees.ts'
import { currency, toUsd } from '../../services/payments/currency.ts'
import { openPeriod, parseMonth } from '../../services/sales/period.ts'
import type { Operation } from '../operation.ts'
import { formatMoney, formatSums } from './sums.ts'

const itemsMax = 100

export const getBilling: Operation<'getBilling', 'database' | 'tenants' | 'world'> = async (
  { service },
  { params, query },
) => {
  const { database, tenants } = service
  const period = await openPeriod(service, params.app, parseMonth(query, service.world.now()))
  const page = { by: 'item', after: undefined, limit: itemsMax } as const
  const [sums, items, { balance, earned }, fees, { owed }] = await Promise.all([
    sumSales(database, period),
    listKeys(database, period, page),
    tenants.system.ledger.readBalance(database, period.schema, toApplicationAccount(params.app)),
    sumStorageFees(database, period),
    readStorageDebt(database, period.schema, params.app),
  ])
  const { gross, fee, net } = formatMoney(sums)
  const storage = { storage: fees.amount, storage_paid: fees.paid, storage_owed: String(owed) }
  const totals = { balance: String(balance), lifetime_earned: String(earned) }
  return {
    app_id: params.app,
    from: new Date(period.fromMs).toISOString(),
    to: new Date(period.toMs).toISOString(),
    ...currency,
    ...formatSums(sums),
    read_sales: formatReads(sums),
    write_sales: {
      sales: Number(sums.writes),
      quantity: Number(sums.written),
      ...formatMoney({ gross: sums.written_gross, fee: sums.written_fee }),
    },
    items: items.map((row) => ({ item: parseItemKey(row.key), ...formatSums(row) })),
    fees: storage,
    ...totals,
    usd: toUsd({ gross, fee, net, ...storage, ...totals }),
  }
}

/** The sales that were no writes. */
function formatReads(sums: SalesSums) {
  return {
    sales: Number(sums.sales) - Number(sums.writes),
    quantity: Number(sums.quantity) - Number(sums.written),
    ...formatMoney({
      gross: String(BigInt(sums.gross) - BigInt(sums.written_gross)),
      fee: String(BigInt(sums.fee) - BigInt(sums.written_fee)),
    }),
  }
}
