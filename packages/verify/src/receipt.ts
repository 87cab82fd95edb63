import { sha256 } from '@noble/hashes/sha2.js'
import {
  type AnchorOptions,
  type AnchorProof,
  checkAnchor,
  checkHeaderHash,
  findAnchorProof,
  listUncheckedAnchor,
} from './anchor-proof.ts'
import { decodeBase64, encodeHex, encodeUtf8, FormatError } from './bytes.ts'
import { canonicalizeJson } from './canonical.ts'
import {
  applyKeyTrust,
  attempt,
  type Check,
  checkKey,
  type Findings,
  makeCheck,
  type Unchecked,
} from './check.ts'
import { type SignedCheckpoint, verifyCheckpoint, verifySignature } from './checkpoint.ts'
import { decodeShownEntry } from './entry.ts'
import {
  type Fields,
  findField,
  isFields,
  parseJson,
  requireCount,
  requireObject,
  requireText,
  requireTextOrNull,
} from './fields.ts'
import { checkCheckpoint, checkInclusion, type Inclusion, parseInclusion } from './inclusion.ts'
import { type SaleDetails, saleDetailNames } from './sale-details.ts'
import { hashLeaf } from './tree.ts'

export const receiptType = 'tollbase/receipt@v1'

/** The payment and the delivery, without the details of the sale; amounts are decimal strings of atomic units. */
export type ReceiptFacts = {
  readonly payment_id: string
  /** Hash of the request, see `hashRequest`. */
  readonly request_hash: string
  /** SHA-256 (hex) of the quote's id, which itself would fetch the answer again; null where there was no quote. */
  readonly quote_hash: string | null
  readonly payer: string
  readonly payee: string
  /** The charge. */
  readonly amount: string
  /** The amount that the payment moved: the cap of the quote, or the network's smallest payment if that is more. */
  readonly deposited: string
  /** The amount that stayed on the payer's balance: deposited less amount. */
  readonly change: string
  readonly asset: string
  /** CAIP-2. */
  readonly network: string
  /** Hash of the settling transaction; null where the payment came from a balance. */
  readonly transaction: string | null
  /** There where the payer's balance or payment channel was charged, and nothing was settled. */
  readonly paid_from?: 'balance' | 'channel'
  /** There where the payment moved the money directly to the seller's own wallet: its address. */
  readonly paid_to?: string
  readonly app: string
  readonly operation: string
  /** The state that the answer was read at; null where nothing was read. */
  readonly as_of: { readonly block_height: number; readonly sequence: number } | null
  readonly row_count: number
  /** SHA-256 (hex) of the reply's body. */
  readonly result_hash: string
  readonly delivered_at: string
}

/** The delivery's entry in the log of the service itself. */
export type ReceiptLedger = {
  readonly height: number
  readonly sequence: number
  readonly leaf_index: number
  /** The leaf's bytes (see entry.ts) in base64; the body is a JSON object with every fact and detail of the receipt. */
  readonly entry: string
  readonly inclusion: Inclusion
  readonly checkpoint: string
}

export type UnsignedReceipt = ReceiptFacts &
  SaleDetails & {
    readonly type: typeof receiptType
    readonly receipt_id: string
    readonly ledger: ReceiptLedger
    /** Verifier key of signature and checkpoint. */
    readonly key: string
    /** Where another chain already has a root that covers the ledger's entry. */
    readonly anchor?: AnchorProof
  }

/** `signature` is base64, Ed25519 over `encodeReceiptMessage` of all other members. */
export type Receipt = UnsignedReceipt & { readonly signature: string }

export type RequestParts = {
  /** Upper case. */
  readonly method: string
  readonly path: string
  /** As sent, without the question mark. */
  readonly query?: string | undefined
  readonly body: Uint8Array
}

export type ReceiptOptions = AnchorOptions & {
  /** The service's verifier key from a place that the caller trusts. */
  readonly trustedKey?: string | undefined
  /** The request as it was sent, to check that the receipt is for it. */
  readonly request?: RequestParts | undefined
  /** The reply's body as it was received, to check that the receipt is for it. */
  readonly reply?: Uint8Array | undefined
}

const factNames = Object.keys({
  payment_id: true,
  request_hash: true,
  quote_hash: true,
  payer: true,
  payee: true,
  amount: true,
  deposited: true,
  change: true,
  asset: true,
  network: true,
  transaction: true,
  paid_from: true,
  paid_to: true,
  app: true,
  operation: true,
  as_of: true,
  row_count: true,
  result_hash: true,
  delivered_at: true,
} satisfies Record<keyof ReceiptFacts, true>)

/** Suffix of the origin of the service's own log. */
const systemOrigin = '/system'

/**
 * Computes SHA-256 (hex) of `tollbase-request-v1\n<METHOD>\n<path>\n<query>\n<SHA-256 of the body in hex>`, by a faster
 * SHA-256 where the caller has one.
 */
export function hashRequest(
  { method, path, query, body }: RequestParts,
  hash: (content: Uint8Array) => string = sha256Hex,
): string {
  return hash(encodeUtf8(`tollbase-request-v1\n${method}\n${path}\n${query ?? ''}\n${hash(body)}`))
}

/** The bytes that a receipt's signature covers: the canonical JSON of every member but `signature`. */
export function encodeReceiptMessage(receipt: UnsignedReceipt | Fields): Uint8Array {
  const { signature: _, ...signed }: Fields = receipt
  return encodeUtf8(canonicalizeJson(signed))
}

/** Parses a receipt without its details, which are compared as they are; throws a FormatError that names the member. */
export function parseReceipt(fields: Fields): Omit<Receipt, keyof SaleDetails> {
  const asOf = findField(fields, 'as_of') === null ? null : requireObject(fields, 'as_of')
  const anchor = findAnchorProof(fields)
  return {
    type: receiptType,
    receipt_id: requireText(fields, 'receipt_id'),
    payment_id: requireText(fields, 'payment_id'),
    request_hash: requireText(fields, 'request_hash'),
    quote_hash: requireTextOrNull(fields, 'quote_hash'),
    payer: requireText(fields, 'payer'),
    payee: requireText(fields, 'payee'),
    amount: requireAmount(fields, 'amount'),
    deposited: requireAmount(fields, 'deposited'),
    change: requireAmount(fields, 'change'),
    asset: requireText(fields, 'asset'),
    network: requireText(fields, 'network'),
    transaction: requireTextOrNull(fields, 'transaction'),
    ...parsePaidFrom(fields),
    ...parsePaidTo(fields),
    app: requireText(fields, 'app'),
    operation: requireText(fields, 'operation'),
    as_of:
      asOf === null
        ? null
        : {
            block_height: requireCount(asOf, 'block_height'),
            sequence: requireCount(asOf, 'sequence'),
          },
    row_count: requireCount(fields, 'row_count'),
    result_hash: requireText(fields, 'result_hash'),
    delivered_at: requireText(fields, 'delivered_at'),
    ledger: parseLedger(requireObject(fields, 'ledger')),
    key: requireText(fields, 'key'),
    ...(anchor && { anchor }),
    signature: requireText(fields, 'signature'),
  }
}

/**
 * Verifies a receipt, which holds where every check is ok. Takes the parsed JSON, since the signature covers every
 * member, known here or not. Throws a FormatError where the form is wrong or a key cannot be read.
 */
export function verifyReceipt(document: unknown, options: ReceiptOptions = {}): Findings {
  if (!isFields(document)) throw new FormatError('a receipt is a JSON object')
  const receipt = parseReceipt(document)
  const checked = checkKey(receipt.key, options.trustedKey)
  const { vkey, key } = checked
  const verdict = verifyCheckpoint(receipt.ledger.checkpoint, vkey)
  const checkpoint = verdict.ok ? verdict.checkpoint : undefined
  const { leaf_index: leafIndex, entry, inclusion } = receipt.ledger
  const { anchor } = receipt
  const leaf = () => hashLeaf(decodeBase64(entry))
  const checks = [
    attempt('signature', () =>
      makeCheck(
        'signature',
        verifySignature(
          decodeBase64(receipt.signature),
          encodeReceiptMessage(document),
          key.publicKey,
        ),
        {
          good: 'the receipt is signed as it is',
          bad: 'the signature is not over this receipt',
        },
      ),
    ),
    checkCheckpoint(verdict),
    checkOrigin(checkpoint),
    checkInclusion({ leafIndex, leaf, inclusion }, checkpoint),
    attempt('ledger', () => checkLedgerEntry(document, receipt)),
    checkAmounts(receipt),
    ...checkDelivery(receipt, options),
    ...(anchor ? checkAnchor(anchor, { app: 'system', leafIndex, leaf, key }, options) : []),
    ...checkHeaderHash(anchor, options),
  ]
  const unchecked = [...listUnchecked(options), ...listUncheckedAnchor(anchor, options)]
  return { checks: applyKeyTrust(checked, checks), unchecked }
}

function checkOrigin(checkpoint: SignedCheckpoint | undefined): Check {
  return makeCheck('origin', checkpoint?.origin.endsWith(systemOrigin) === true, {
    good: "the checkpoint is that of the service's own log",
    bad: "the checkpoint is not that of the service's own log",
  })
}

/** Checks that the entry is a sale and that every fact and detail is the same there. */
function checkLedgerEntry(document: Fields, receipt: Pick<Receipt, 'ledger'>): Check {
  const { header, body } = decodeShownEntry(decodeBase64(receipt.ledger.entry))
  const booked = parseJson(body, "the ledger entry's body")
  if (!isFields(booked)) throw new FormatError("the ledger entry's body is not an object")
  if (header.type !== 'ledger' || findField(booked, 'kind') !== 'sale')
    throw new FormatError('the entry is not that of a sale')
  const differing = [...factNames, ...saleDetailNames].filter((name) => {
    const [shown, told] = [findField(document, name), findField(booked, name)]
    return shown === undefined || told === undefined
      ? shown !== told
      : canonicalizeJson(shown) !== canonicalizeJson(told)
  })
  return makeCheck('ledger', differing.length === 0, {
    good: 'the ledger entry says the same',
    bad: `the ledger entry differs in ${differing.join(', ')}`,
  })
}

/** Checks the sums; a payment from a balance has no transaction, and deposits nothing. */
function checkAmounts({ amount, deposited, change, transaction, paid_from }: Receipt): Check {
  if (transaction === null || paid_from !== undefined) {
    const isEmpty = deposited === '0' && change === '0'
    return makeCheck('amounts', transaction === null && isEmpty, {
      good: `paid from a ${paid_from ?? 'balance'}`,
      bad: `a payment from a ${paid_from ?? 'balance'} names a transaction, or deposits ${deposited}`,
    })
  }
  return makeCheck('amounts', BigInt(amount) + BigInt(change) === BigInt(deposited), {
    good: 'charge and change make up the deposit',
    bad: `charge ${amount} and change ${change} do not make up the deposit ${deposited}`,
  })
}

function checkDelivery(receipt: Receipt, { request, reply }: ReceiptOptions): Check[] {
  const checks: Check[] = []
  if (request !== undefined) {
    const texts = {
      good: 'the receipt is for this request',
      bad: 'the receipt is for another request',
    }
    checks.push(makeCheck('request', hashRequest(request) === receipt.request_hash, texts))
  }
  if (reply !== undefined) {
    const texts = { good: 'the receipt is for this reply', bad: 'the receipt is for another reply' }
    checks.push(makeCheck('reply', sha256Hex(reply) === receipt.result_hash, texts))
  }
  return checks
}

function listUnchecked({ request, reply }: ReceiptOptions): readonly Unchecked[] {
  return [
    ...(request === undefined
      ? [{ name: 'request', detail: 'no request was given to compare with the receipt' }]
      : []),
    ...(reply === undefined
      ? [{ name: 'reply', detail: 'no reply was given to compare with the receipt' }]
      : []),
  ]
}

function parsePaidFrom(fields: Fields): Pick<ReceiptFacts, 'paid_from'> {
  const value = findField(fields, 'paid_from')
  if (value === undefined) return {}
  if (value !== 'balance' && value !== 'channel')
    throw new FormatError('"paid_from" must be "balance" or "channel"')
  return { paid_from: value }
}

function parsePaidTo(fields: Fields): Pick<ReceiptFacts, 'paid_to'> {
  return findField(fields, 'paid_to') === undefined
    ? {}
    : { paid_to: requireText(fields, 'paid_to') }
}

function parseLedger(fields: Fields): ReceiptLedger {
  return {
    height: requireCount(fields, 'height'),
    sequence: requireCount(fields, 'sequence'),
    leaf_index: requireCount(fields, 'leaf_index'),
    entry: requireText(fields, 'entry'),
    inclusion: parseInclusion(requireObject(fields, 'inclusion')),
    checkpoint: requireText(fields, 'checkpoint'),
  }
}

function requireAmount(fields: Fields, name: string): string {
  const value = requireText(fields, name)
  if (!/^(0|[1-9][0-9]{0,77})$/.test(value))
    throw new FormatError(`"${name}" must be a whole number as a string`)
  return value
}

function sha256Hex(bytes: Uint8Array): string {
  return encodeHex(sha256(bytes))
}
