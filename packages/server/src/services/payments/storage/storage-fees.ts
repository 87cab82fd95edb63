import type { Logger } from 'pino'
import { assert } from '../../../base/assert.ts'
import { limitAmount } from '../../../base/bigint.ts'
import { dayMs } from '../../../base/durations.ts'
import type { BlobStore } from '../../../blobs/blob-store.ts'
import { sql } from '../../../database/sql.ts'
import type { ApplicationRecord } from '../../../model/application.ts'
import { computeStorageFee, type StoredDay } from '../../../model/storage-fee.ts'
import {
  type LedgerBody,
  listPostings,
  platformAccount,
  toApplicationAccount,
} from '../../../projections/ledger-entry.ts'
import {
  hasStorageFee,
  listStorageDebtors,
  readStorageDebt,
} from '../../../projections/storage-fees.ts'
import type { Uses } from '../../call.ts'
import { noteTaking, readUntaken, takeFromAccount } from '../accounts/account-lock.ts'
import { deleteHold, findHold, holds, insertHold } from '../accounts/holds.ts'
import { readStoredBytes } from './read-stored-bytes.ts'

/** The operator's price for storage. */
export type StorageFeeSettings = {
  /** Atomic units for 2^30 bytes and 30 days. */
  readonly price: bigint
  /** Bytes of each application that cost nothing. */
  readonly freeBytes: bigint
}

/** The settings of an operator who charges nothing: what was charged before is still owed. */
export const noFees: StorageFeeSettings = { price: 0n, freeBytes: 0n }

export type StorageFeeParts = Uses<'database' | 'tenants' | 'world'> & {
  readonly settings: StorageFeeSettings
  /** The folder of an application's files has its number. */
  readonly files: Pick<BlobStore, 'list'>
}

/**
 * Books, for each application, the fee for the day before today, once: it is measured when that day is over. A day after
 * which the service did not run is not charged, nor is a day for which the clock only jumps back. `onFailure` is told of
 * each application whose fee could not be booked; the next sweep tries again. `free` remembers those that had nothing
 * to pay for a day. At a price of 0 nothing new is charged, and what is owed for earlier days is still asked for.
 */
export async function postStorageFees(
  parts: StorageFeeParts,
  onFailure: (app: string, error: unknown) => void,
  free: Map<string, string> = new Map(),
): Promise<void> {
  const { database, tenants, world } = parts
  const { chain, schema } = tenants.system
  // The fee of a later day goes on from that of an earlier one.
  const unfinished = await endHeldFees(parts, onFailure)
  await chain.whenApplied(chain.head().height)
  const day = new Date(world.now() - dayMs).toISOString().slice(0, 10)
  for (const record of await listPaying(parts)) {
    const { app_id: app } = record
    if (unfinished.has(app) || free.get(app) === day) continue
    try {
      if (await hasStorageFee(database, schema, { app, day })) continue
      if (!(await bookFee(parts, record, day))) free.set(app, day)
    } catch (error) {
      onFailure(app, error)
    }
  }
}

/** Lists who pays for a day: everybody, or without a price those who owe for earlier days. */
async function listPaying({
  database,
  tenants: { system },
  settings,
}: StorageFeeParts): Promise<readonly ApplicationRecord[]> {
  const all = system.applications.list()
  if (settings.price > 0n) return all
  const debtors = await listStorageDebtors(database, system.schema)
  return all.filter(({ app_id: app }) => debtors.has(app))
}

/** Returns false where there is nothing to pay. */
async function bookFee(
  parts: StorageFeeParts,
  record: ApplicationRecord,
  day: string,
): Promise<boolean> {
  const { database, tenants, world, settings } = parts
  const { app_id: app } = record
  const { schema } = tenants.system
  const kept = settings.price === 0n ? 0n : await readStoredBytes(parts, record, world.now())
  const bytes = kept > settings.freeBytes ? kept - settings.freeBytes : 0n
  const stored = { day, bytes, price: settings.price }
  const id = formatFeeId(app, stored)
  const account = toApplicationAccount(app)
  const isDue = await takeFromAccount(database, account, async (tx) => {
    const { due } = computeStorageFee(stored, await readStorageDebt(tx, schema, app))
    // A balance is never below zero: the rest is owed.
    const amount = limitAmount(await readUntaken(tx, account), due)
    if (bytes * settings.price === 0n && amount === 0n) return false
    await insertHold(tx, { id, account, amount })
    return true
  })
  if (isDue) await bookHeldFee(parts, id)
  return isDue
}

/** Writes the entry of a fee whose amount is held; the ledger counts it once, so it may be written again. */
async function bookHeldFee({ database, tenants }: StorageFeeParts, id: string): Promise<void> {
  const { app, ...stored } = parseFeeId(id)
  const { chain, schema } = tenants.system
  await chain.whenApplied(chain.head().height)
  const paid = await findHold(database, id)
  if (paid === undefined) return
  if (!(await hasStorageFee(database, schema, { app, day: stored.day }))) {
    const fee = computeStorageFee(stored, await readStorageDebt(database, schema, app))
    assert(paid <= fee.due, 'no more is held than the fees come to')
    await chain.append([makeStorageFeeEntry({ id, app, ...stored, ...fee, paid })], {
      isOwed: true,
    })
    await chain.whenApplied(chain.head().height)
  }
  // It counts twice for a moment, and never not at all. Nobody may take what is owed by now.
  await deleteHold(database, id)
  await noteTaking(database, toApplicationAccount(app))
}

/** Makes the entry that takes a fee for storage from the balance of its application, as far as that has it. */
function makeStorageFeeEntry(fee: {
  id: string
  app: string
  day: string
  bytes: bigint
  price: bigint
  amount: bigint
  due: bigint
  paid: bigint
  carried: bigint
}) {
  const { id, app, day, bytes, price, amount, due, paid, carried } = fee
  const body: LedgerBody = {
    kind: 'storage_fee',
    payment_id: id,
    identity: id,
    ...{ app, day, bytes: String(bytes), price: String(price) },
    ...{ amount: String(amount), paid: String(paid) },
    ...{ owed: String(due - paid), carried: String(carried) },
    postings: listPostings([
      [toApplicationAccount(app), -paid],
      [platformAccount, paid],
    ]),
  }
  return { header: { type: 'ledger' }, body: JSON.stringify(body) }
}

/** Brings fees to their end that were cut off; returns the applications whose fee could not be. */
async function endHeldFees(
  parts: StorageFeeParts,
  onFailure: (app: string, error: unknown) => void,
): Promise<ReadonlySet<string>> {
  const rows = await parts.database.query<{ id: string }>(
    sql`SELECT id FROM ${holds} WHERE id LIKE 'storage\\_%' ORDER BY id`,
  )
  const unfinished = new Set<string>()
  for (const { id } of rows) {
    try {
      await bookHeldFee(parts, id)
    } catch (error) {
      const { app } = parseFeeId(id)
      unfinished.add(app)
      onFailure(app, error)
    }
  }
  return unfinished
}

const intervalMs = 10 * 60_000

/** Books fees now and at intervals; the returned function ends it. */
export function startStorageFees(
  parts: StorageFeeParts,
  log: Pick<Logger, 'warn'>,
): () => Promise<void> {
  let round: Promise<void> | undefined
  const free = new Map<string, string>()
  const warn = (app: string | undefined, error: unknown) =>
    log.warn({ app, error: String(error) }, 'a storage fee is not booked yet; trying again')
  const run = () => {
    round ??= postStorageFees(parts, warn, free)
      .catch((error: unknown) => warn(undefined, error))
      .finally(() => {
        round = undefined
      })
  }
  const stop = parts.world.every(intervalMs, run)
  run()
  return async () => {
    stop()
    await round
  }
}

/** Formats the id of a fee, which has all that it is computed from but the fee before it: a crash may come in between. */
function formatFeeId(app: string, { day, bytes, price }: StoredDay): string {
  return `storage_${day}_${price}_${bytes}_${app}`
}

function parseFeeId(id: string): StoredDay & { readonly app: string } {
  const [, day = '', price = '0', bytes = '0', app = ''] =
    /^storage_(\d{4}-\d{2}-\d{2})_(\d+)_(\d+)_(.+)$/.exec(id) ?? []
  return { app, day, price: BigInt(price), bytes: BigInt(bytes) }
}
