import type { Queryable } from '../../database/database.ts'
import { sql } from '../../database/sql.ts'
import { type JournalPlace, listJournal } from '../../x402/list-journal.ts'

export type SignedKind =
  | 'payment'
  | 'sweep'
  | 'withdrawal'
  | 'payout'
  | 'facilitated_payment'
  | 'channel_deposit'
  | 'channel_claim'
  | 'channel_settlement'
  | 'channel_refund'
  | 'anchor'
  | 'publication'

/** The thing that a transaction, or a part of one, is for; `id` where a list of ours has it. */
export type SignedWork = {
  readonly kind: SignedKind
  readonly id: string | null
  /** Atomic units, where the books know them. */
  readonly amount: string | null
}

export type SignedTransaction = Awaited<ReturnType<typeof listJournal>>[number] & {
  readonly makes: readonly SignedWork[]
}

/** Lists what our own keys have signed, newest first, before the cursor, with what each transaction is for. */
export async function listSignedTransactions(
  database: Queryable,
  page: { readonly before: JournalPlace | undefined; readonly limit: number },
): Promise<SignedTransaction[]> {
  const rows = await listJournal(database, page)
  const ids = rows.flatMap(({ names }) => names.map((name) => parseName(name).id))
  const known = await database.query<{ id: string; kind: string; amount: string }>(sql`
    SELECT id, 'payment' AS kind, amount::text AS amount FROM operations.claim WHERE id = ANY(${ids}::text[])
    UNION ALL SELECT id, kind, amount::text FROM operations.outgoing_transfer WHERE id = ANY(${ids}::text[])`)
  const byId = new Map(known.map((one) => [one.id, one]))
  const describe = (name: string): SignedWork => {
    const { kind, id, sum } = parseName(name)
    const found = byId.get(id)
    const isPayout = kind === 'withdrawal' && (found?.kind ?? id).startsWith('payout')
    return {
      kind: isPayout ? 'payout' : kind,
      id: found === undefined ? null : id,
      amount: found?.amount ?? sum,
    }
  }
  return rows.map((row) => ({ ...row, makes: row.names.map(describe) }))
}

/** The kinds by what stands before the first colon of a name. */
const kinds: Readonly<Record<string, SignedKind>> = {
  again: 'payment',
  sweep: 'sweep',
  transfer: 'withdrawal',
  'channel-deposit': 'channel_deposit',
  'channel-claim': 'channel_claim',
  'channel-settle': 'channel_settlement',
  'channel-refund': 'channel_refund',
  anchor: 'anchor',
  anchors: 'anchor',
  publish: 'publication',
}

/** Says whether a transaction moves money of payments, by its name in the journal; others have keys of their own. */
export function isOfPayments(name: string): boolean {
  const { kind } = parseName(name)
  return kind !== 'anchor' && kind !== 'publication'
}

/** Claims and settlements of channels, of which nothing else has the sum, have it in their names. */
function parseName(name: string): {
  readonly kind: SignedKind
  readonly id: string
  readonly sum: string | null
} {
  const [first = '', id = name] = name.split(':')
  const [, sum = null] = /^channel-(?:claim|settle):\w+:(\d+)$/.exec(name) ?? []
  const isFacilitated = name.startsWith('facilitated_')
  return { kind: kinds[first] ?? (isFacilitated ? 'facilitated_payment' : 'payment'), id, sum }
}
