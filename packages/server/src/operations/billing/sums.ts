import type { SalesSums } from '../../projections/read-sales.ts'

export function formatSums({ sales, writes, quantity, gross, fee }: SalesSums) {
  return {
    sales: Number(sales),
    writes: Number(writes),
    quantity: Number(quantity),
    ...formatMoney({ gross, fee }),
  }
}

/** The application has what the platform does not keep. */
export function formatMoney({ gross, fee }: { readonly gross: string; readonly fee: string }) {
  return { gross, fee, net: String(BigInt(gross) - BigInt(fee)) }
}
