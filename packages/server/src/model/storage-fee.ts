import { limits } from '@tollbase/contract/limits'

/** The storage of an application on one day in UTC: what it keeps beyond what is free, and the price. */
export type StoredDay = {
  /** Such as 2026-11-25. */
  readonly day: string
  /** Bytes beyond the free ones. */
  readonly bytes: bigint
  /** Atomic units for 2^30 bytes and 30 days. */
  readonly price: bigint
}

/** The end of one fee, from which the next one goes on. */
export type StorageDebt = {
  /** Atomic units that the balance did not cover so far. */
  readonly owed: bigint
  /** The part of an atomic unit that is not charged yet, in parts of `unitParts`. */
  readonly carried: bigint
}

export const noDebt: StorageDebt = { owed: 0n, carried: 0n }

/** A byte for a day at a price of 1 costs one of so many parts of an atomic unit. */
export const unitParts = 2n ** 30n * BigInt(limits.storageFeeMonthDays)

/**
 * Computes the fee for a day in whole atomic units. The rest of the division is carried to the next day, so the fees of
 * any number of days are together what all of these days cost, rounded down once. `due` is the fee with what is owed.
 */
export function computeStorageFee(
  { bytes, price }: Omit<StoredDay, 'day'>,
  { owed, carried }: StorageDebt,
): { readonly amount: bigint; readonly due: bigint; readonly carried: bigint } {
  const parts = carried + bytes * price
  const amount = parts / unitParts
  return { amount, due: owed + amount, carried: parts % unitParts }
}
