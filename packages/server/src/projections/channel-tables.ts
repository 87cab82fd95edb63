import { type SqlStatement, sql } from '../database/sql.ts'

/** A channel with its last voucher. */
export type ChannelRow = {
  readonly id: string
  readonly network: string
  /** JSON. */
  readonly config: string
  /** The chain's, when they were last read: deposits without what went back, the total that was claimed. */
  readonly balance: bigint
  readonly claimed: bigint
  /** The part that the payer is taking back by itself. */
  readonly withdrawing: bigint
  /** The total of all charges. */
  readonly charged: bigint
  /** The number of sales. */
  readonly uses: number
  /** The last voucher; null before the first. */
  readonly max_claimable: bigint | null
  readonly signature: string | null
  /** The last sale: the total before it, and its charge. */
  readonly last_base: bigint | null
  readonly last_charge: bigint | null
  /** The time of the first charge that is not claimed. */
  readonly unclaimed_since_ms: bigint | null
  /** The time of the last refund that had not earned its gas, and the total of all charges at the last one of all. */
  readonly refunded_at_ms: bigint | null
  readonly refund_charged: bigint | null
}

/** In the order of the writes. */
export const channelColumnNames = [
  ...['id', 'network', 'config', 'balance', 'claimed', 'withdrawing', 'charged', 'uses'],
  ...['max_claimable', 'signature', 'last_base', 'last_charge', 'unclaimed_since_ms'],
  ...['refunded_at_ms', 'refund_charged'],
] as const
export const channelColumns = sql.join(channelColumnNames.map((name) => sql.id(name)))

export const channelTableNames = ['channel', 'channel_receiver', 'channel_voucher']

export function buildChannelTables(schema: string): SqlStatement[] {
  return [
    sql`CREATE TABLE ${sql.id(schema, 'channel')} (
      id text NOT NULL, network text NOT NULL, config text NOT NULL, balance numeric NOT NULL, claimed numeric NOT NULL,
      withdrawing numeric NOT NULL, charged numeric NOT NULL, uses int4 NOT NULL, max_claimable numeric, signature text,
      last_base numeric, last_charge numeric, unclaimed_since_ms int8, refunded_at_ms int8,
      refund_charged numeric, CONSTRAINT channel_pkey PRIMARY KEY (id))`,
    sql`CREATE INDEX channel_unclaimed ON ${sql.id(schema, 'channel')} (unclaimed_since_ms) WHERE unclaimed_since_ms IS NOT NULL`,
    ...buildChannelIndexes(schema),
    sql`CREATE TABLE ${sql.id(schema, 'channel_voucher')} (
      id text NOT NULL, max_claimable numeric NOT NULL, payment_id text NOT NULL,
      CONSTRAINT channel_voucher_pkey PRIMARY KEY (id, max_claimable))`,
    sql`CREATE TABLE ${sql.id(schema, 'channel_receiver')} (
      network text NOT NULL, settled numeric NOT NULL, CONSTRAINT channel_receiver_pkey PRIMARY KEY (network))`,
  ]
}

function buildChannelIndexes(schema: string): SqlStatement[] {
  const channels = sql.id(schema, 'channel')
  return [
    sql`CREATE INDEX channel_payer ON ${channels} ((config::json ->> 'payer'), id)`,
    sql`CREATE INDEX channel_refunded ON ${channels} (refunded_at_ms) WHERE refunded_at_ms IS NOT NULL`,
  ]
}

/** The tables of channels for a service's chain from before there were any. */
export function buildMissingChannelTables(): SqlStatement[] {
  return [
    printOnce(
      sql`to_regclass('system.watermark') IS NOT NULL AND to_regclass('system.channel') IS NULL`,
      buildChannelTables('system'),
    ),
  ]
}

/** The same for tables from before refunds were counted; a rebuild fills in what was charged before the last one. */
export function buildMissingRefundColumn(): SqlStatement[] {
  const added = sql`ALTER TABLE system.channel ADD COLUMN refund_charged numeric`
  return [
    printOnce(
      sql`to_regclass('system.channel') IS NOT NULL AND to_regclass('system.channel_payer') IS NULL`,
      [added, ...buildChannelIndexes('system')],
    ),
  ]
}

/** Prints what runs these statements where a condition holds. */
export function printOnce(
  condition: SqlStatement,
  statements: readonly SqlStatement[],
): SqlStatement {
  const texts = statements.map(({ text }) => sql`EXECUTE ${sql.literal(text)};`)
  return sql`DO $$ BEGIN IF ${condition} THEN ${sql.join(texts, ' ')} END IF; END $$`
}

/** The same as the database gives it. */
export type ChannelDbRow = {
  readonly [K in keyof ChannelRow]: K extends 'unclaimed_since_ms' | 'refunded_at_ms'
    ? ChannelRow[K]
    : bigint extends ChannelRow[K]
      ? string | Extract<ChannelRow[K], null>
      : ChannelRow[K]
}

export function toChannel(row: ChannelDbRow): ChannelRow {
  return {
    ...row,
    balance: BigInt(row.balance),
    claimed: BigInt(row.claimed),
    withdrawing: BigInt(row.withdrawing),
    charged: BigInt(row.charged),
    max_claimable: row.max_claimable === null ? null : BigInt(row.max_claimable),
    last_base: row.last_base === null ? null : BigInt(row.last_base),
    last_charge: row.last_charge === null ? null : BigInt(row.last_charge),
    refund_charged: row.refund_charged === null ? null : BigInt(row.refund_charged),
  }
}
