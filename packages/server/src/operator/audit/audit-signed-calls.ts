import type { Queryable } from '../../database/database.ts'
import { sql } from '../../database/sql.ts'
import { decodeStoredPayment } from '../../services/payments/claims/stored-payment.ts'
import { deriveSettlementId } from '../../services/payments/facilitating/two-uses.ts'
import { deriveSweepName } from '../../x402/deposit-address.ts'
import { encodeHex } from '../../x402/hex.ts'
import type { Call } from '../../x402/joint.ts'
import { isNative } from '../../x402/protocol.ts'
import { encodeTransferCall, parseTransferCall } from '../../x402/token.ts'
import { deriveTransferNonce } from '../../x402/treasury.ts'
import { encodeUptoCall, isUpto } from '../../x402/upto/upto.ts'
import { uptoProxyAddress } from '../../x402/upto/upto-terms.ts'

type Difference = Readonly<Record<string, unknown>>

type AskedClaim = {
  readonly id: string
  readonly identity: string
  readonly payment: string
  readonly amount: string
  readonly quote_id: string
}

type AskedTransfer = {
  readonly id: string
  readonly recipient: string
  readonly amount: string
  readonly valid_before: bigint
}

/** The payments and transfers that some signed transactions were asked for by, by id. */
export type AskedFor = {
  readonly claims: ReadonlyMap<string, AskedClaim>
  readonly transfers: ReadonlyMap<string, AskedTransfer>
}

/** A name in the journal: what was done, for which payment or transfer. */
function parseName(name: string): { readonly kind: string; readonly id: string } {
  const [, kind = 'pay', id = name] =
    /^(again|sweep|transfer):([^:]+)(?::[0-9]+)?$/.exec(name) ?? []
  return { kind, id }
}

/** Reads what the journal's names stand for; a payment for another server has no row. */
export async function readAskedFor(
  database: Queryable,
  names: readonly string[],
): Promise<AskedFor> {
  const ids = names.map((name) => parseName(name).id)
  const claims = await database.query<AskedClaim>(sql`
    SELECT id, identity, payment, amount::text AS amount, quote_id FROM operations.claim WHERE id = ANY(${ids}::text[])`)
  const transfers = await database.query<AskedTransfer>(sql`
    SELECT id, recipient, amount::text AS amount, valid_before FROM operations.outgoing_transfer WHERE id = ANY(${ids}::text[])`)
  return {
    claims: new Map(claims.map((one) => [one.id, one])),
    transfers: new Map(transfers.map((one) => [one.id, one])),
  }
}

/** Finds what a signed call does other than its payment, sweep or transfer asks for; undefined of all other calls. */
export function findProblemOfCall(
  { claims, transfers }: AskedFor,
  { name, network, call }: { readonly name: string; readonly network: string; readonly call: Call },
): Difference | undefined {
  const { kind, id } = parseName(name)
  const claim = claims.get(id)
  const transfer = transfers.get(id)
  const [expected, found] =
    kind === 'transfer' && transfer !== undefined
      ? compareTransfer(transfer, call)
      : kind === 'sweep' && claim !== undefined
        ? compareSweep(claim, call)
        : name.startsWith('facilitated_')
          ? compareSettlement(name, network, call)
          : claim === undefined
            ? []
            : comparePayment(claim, network, call)
  return expected === found ? undefined : { field: 'raw', part: name, expected, found }
}

type Compared = readonly [expected: string, found: string]

/** A payment is moved by exactly the call that its payer signed. */
function comparePayment(claim: AskedClaim, network: string, { to, data }: Call): Compared {
  const payment = decodeStoredPayment(claim.payment)
  const [named = '', address = ''] = claim.identity.split('/')
  const found = `${network} ${to} ${data}`
  if (isNative(payment)) return ['nothing to be signed for a transfer of the payer', found]
  const expected = isUpto(payment)
    ? `${uptoProxyAddress} ${encodeUptoCall({ asset: { address } }, payment)}`
    : `${address} ${encodeTransferCall(payment.payload)}`
  return [`${named} ${expected}`, found]
}

function compareTransfer(one: AskedTransfer, { data }: Call): Compared {
  const expected = {
    ...{ to: one.recipient, value: BigInt(one.amount), validBefore: one.valid_before },
    nonce: deriveTransferNonce(one.id),
  }
  return [describe(expected), describe(parseTransferCall(data))]
}

/** The other half of the nonce is known to the service alone. */
function compareSweep({ id, payment, quote_id, amount }: AskedClaim, { data }: Call): Compared {
  const { quoteId = quote_id } = decodeStoredPayment(payment)
  const name = encodeHex(deriveSweepName(quoteId, id))
  const found = parseTransferCall(data)
  return [
    `${amount} as ${name}`,
    found === undefined ? 'no transfer' : `${found.value} as ${found.nonce.slice(0, name.length)}`,
  ]
}

/** The id of a payment for another server is made of its authorization. */
function compareSettlement(name: string, network: string, { to, data }: Call): Compared {
  const found = parseTransferCall(data)
  if (found === undefined) return [name, 'no transfer']
  return [name, deriveSettlementId([network, to, found.from, found.nonce].join('/'))]
}

type Transfer = {
  readonly to: string
  readonly value: bigint
  readonly validBefore: bigint
  readonly nonce: string
}

function describe(one: Transfer | undefined): string {
  if (one === undefined) return 'no transfer'
  return `${one.value} to ${one.to} until ${one.validBefore} as ${one.nonce}`
}
