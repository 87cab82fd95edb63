import type { Queryable } from '../database/database.ts'
import { sql } from '../database/sql.ts'
import { type ChannelDbRow, type ChannelRow, channelColumns, toChannel } from './channel-tables.ts'

export async function findChannel(
  database: Queryable,
  schema: string,
  id: string,
): Promise<ChannelRow | undefined> {
  const [row] = await database.query<ChannelDbRow>(
    sql`SELECT ${channelColumns} FROM ${sql.id(schema, 'channel')} WHERE id = ${id}`,
  )
  return row && toChannel(row)
}

/** Lists the channels of a payer after this id, by id. */
export async function listPayerChannels(
  database: Queryable,
  schema: string,
  page: { readonly payer: string; readonly after: string; readonly limit: number },
): Promise<ChannelRow[]> {
  const rows = await database.query<ChannelDbRow>(sql`
    SELECT ${channelColumns} FROM ${sql.id(schema, 'channel')}
    WHERE config::json ->> 'payer' = ${page.payer} AND id > ${page.after} ORDER BY id LIMIT ${page.limit}`)
  return rows.map(toChannel)
}

/** Lists the channels of a network in which there ever was money that is not back with its payer, after this id, by id. */
export async function listFundedChannels(
  database: Queryable,
  schema: string,
  page: { readonly network: string; readonly after: string; readonly limit: number },
): Promise<ChannelRow[]> {
  const rows = await database.query<ChannelDbRow>(sql`
    SELECT ${channelColumns} FROM ${sql.id(schema, 'channel')}
    WHERE network = ${page.network} AND (balance > 0 OR charged > 0) AND id > ${page.after} ORDER BY id LIMIT ${page.limit}`)
  return rows.map(toChannel)
}

/** The amount that can be claimed from a channel: its charges, as far as its payer has left so much in it. */
const claimable = sql`least(charged, balance) - claimed`

/** A place in the list of channels that have charges to claim. */
export type ChannelCursor = { readonly sinceMs: bigint; readonly id: string }

/** Lists the channels of a network from which so much at least can be claimed, the longest waiting first. */
export async function listClaimableChannels(
  database: Queryable,
  schema: string,
  page: {
    readonly network: string
    readonly least: bigint
    readonly after: ChannelCursor
    readonly limit: number
  },
): Promise<ChannelRow[]> {
  const { sinceMs, id } = page.after
  const rows = await database.query<ChannelDbRow>(sql`
    SELECT ${channelColumns} FROM ${sql.id(schema, 'channel')}
    WHERE network = ${page.network} AND unclaimed_since_ms IS NOT NULL AND ${claimable} >= ${String(page.least)}::numeric
      AND (unclaimed_since_ms, id) > (${sinceMs}::int8, ${id}::text)
    ORDER BY unclaimed_since_ms, id LIMIT ${page.limit}`)
  return rows.map(toChannel)
}

/** Sums what can be claimed on a network from channels that have so much each. */
export async function sumClaimable(
  database: Queryable,
  schema: string,
  { network, least }: { readonly network: string; readonly least: bigint },
): Promise<bigint> {
  const [row] = await database.query<{ sum: string }>(sql`
    SELECT coalesce(sum(${claimable}), 0)::text AS sum FROM ${sql.id(schema, 'channel')}
    WHERE network = ${network} AND unclaimed_since_ms IS NOT NULL AND ${claimable} >= ${String(least)}::numeric`)
  return BigInt(row?.sum ?? 0)
}

/** Counts, by network, the channels with money that vouchers may use, and sums what is not claimed yet. */
export async function countChannels(
  database: Queryable,
  schema: string,
): Promise<
  {
    readonly network: string
    readonly open: number
    readonly unclaimed: bigint
    /** When the oldest charge that is not claimed was made; undefined where there is none. */
    readonly sinceMs: number | undefined
  }[]
> {
  const rows = await database.query<{
    network: string
    open: number
    unclaimed: string
    since: bigint | null
  }>(sql`
    SELECT network, (count(*) FILTER (WHERE balance - withdrawing > charged))::int4 AS open,
      sum(charged - claimed)::text AS unclaimed, min(unclaimed_since_ms) AS since
    FROM ${sql.id(schema, 'channel')} GROUP BY network ORDER BY network`)
  return rows.map(({ network, open, unclaimed, since }) => {
    const sinceMs = since === null ? undefined : Number(since)
    return { network, open, unclaimed: BigInt(unclaimed), sinceMs }
  })
}

/** Reads what the log says was sent to us on a network. */
export async function readSettled(
  database: Queryable,
  schema: string,
  network: string,
): Promise<bigint> {
  const [row] = await database.query<{ settled: string }>(
    sql`SELECT settled FROM ${sql.id(schema, 'channel_receiver')} WHERE network = ${network}`,
  )
  return BigInt(row?.settled ?? 0)
}
