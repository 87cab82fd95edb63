import { sha256 } from '@noble/hashes/sha2.js'
import { FormatError, fromBase64, hex, utf8 } from './bytes.ts'
import { canonicalJson } from './canonical.ts'
import {
  attempt,
  type Check,
  check,
  checkKey,
  type Findings,
  judgedBy,
  type Unchecked,
} from './check.ts'
import { type SignedCheckpoint, verifyCheckpoint, verifySignature } from './checkpoint.ts'
import { decodeShownEntry } from './entry.ts'
import {
  countField,
  type Fields,
  fieldOf,
  isFields,
  objectField,
  parseJson,
  textField,
  textOrNullField,
} from './fields.ts'
import { checkCheckpoint, checkInclusion, type Inclusion, readInclusion } from './inclusion.ts'
import { leafHash } from './tree.ts'

export const receiptType = 'tollbase/receipt@v1'

/** What was paid and what was delivered; amounts are decimal strings of atomic units. */
export type ReceiptFacts = {
  readonly payment_id: string
  /** See `requestHash`. */
  readonly request_hash: string
  /** SHA-256 (hex) of the quote's id, which itself would fetch the answer again; null where there was no quote. */
  readonly quote_hash: string | null
  readonly payer: string
  readonly payee: string
  /** The charge. */
  readonly amount: string
  /** What the payment moved: the cap of the quote. */
  readonly deposited: string
  /** What stayed on the payer's balance: deposited less amount. */
  readonly change: string
  readonly asset: string
  /** CAIP-2. */
  readonly network: string
  /** Hash of the settling transaction; null where the payment came from a balance. */
  readonly transaction: string | null
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
  /** The leaf's bytes (see entry.ts) in base64; the body is a JSON object with every member of ReceiptFacts. */
  readonly entry: string
  readonly inclusion: Inclusion
  readonly checkpoint: string
}

export type UnsignedReceipt = ReceiptFacts & {
  readonly type: typeof receiptType
  readonly receipt_id: string
  readonly ledger: ReceiptLedger
  /** Verifier key of signature and checkpoint. */
  readonly key: string
}

/** `signature` is base64, Ed25519 over `receiptMessage` of all other members. */
export type Receipt = UnsignedReceipt & { readonly signature: string }

export type RequestParts = {
  /** Upper case. */
  readonly method: string
  readonly path: string
  /** As sent, without the question mark. */
  readonly query?: string | undefined
  readonly body: Uint8Array
}

export type ReceiptOptions = {
  /** The service's verifier key from a place that the caller trusts. */
  readonly trustedKey?: string | undefined
  /** The request as it was sent, to check that the receipt is for it. */
  readonly request?: RequestParts | undefined
  /** The reply's body as it was received, to check that the receipt is for it. */
  readonly reply?: Uint8Array | undefined
}

const factNames = [
  'payment_id',
  'request_hash',
  'quote_hash',
  'payer',
  'payee',
  'amount',
  'deposited',
  'change',
  'asset',
  'network',
  'transaction',
  'app',
  'operation',
  'as_of',
  'row_count',
  'result_hash',
  'delivered_at',
] as const satisfies readonly (keyof ReceiptFacts)[]

/** Origins of the service's own log end so. */
const systemOrigin = '/system'

/** SHA-256 (hex) of `tollbase-request-v1\n<METHOD>\n<path>\n<query>\n<SHA-256 of the body in hex>`. */
export function requestHash({ method, path, query, body }: RequestParts): string {
  return sha256Hex(
    utf8(`tollbase-request-v1\n${method}\n${path}\n${query ?? ''}\n${sha256Hex(body)}`),
  )
}

/** What a receipt's signature is over: the canonical JSON of every member but `signature`. */
export function receiptMessage(receipt: UnsignedReceipt | Fields): Uint8Array {
  const { signature: _, ...signed }: Fields = receipt
  return utf8(canonicalJson(signed))
}

/** Throws a FormatError that names the member. */
export function readReceipt(fields: Fields): Receipt {
  const asOf = fieldOf(fields, 'as_of') === null ? null : objectField(fields, 'as_of')
  return {
    type: receiptType,
    receipt_id: textField(fields, 'receipt_id'),
    payment_id: textField(fields, 'payment_id'),
    request_hash: textField(fields, 'request_hash'),
    quote_hash: textOrNullField(fields, 'quote_hash'),
    payer: textField(fields, 'payer'),
    payee: textField(fields, 'payee'),
    amount: amountField(fields, 'amount'),
    deposited: amountField(fields, 'deposited'),
    change: amountField(fields, 'change'),
    asset: textField(fields, 'asset'),
    network: textField(fields, 'network'),
    transaction: textOrNullField(fields, 'transaction'),
    app: textField(fields, 'app'),
    operation: textField(fields, 'operation'),
    as_of:
      asOf === null
        ? null
        : {
            block_height: countField(asOf, 'block_height'),
            sequence: countField(asOf, 'sequence'),
          },
    row_count: countField(fields, 'row_count'),
    result_hash: textField(fields, 'result_hash'),
    delivered_at: textField(fields, 'delivered_at'),
    ledger: readLedger(objectField(fields, 'ledger')),
    key: textField(fields, 'key'),
    signature: textField(fields, 'signature'),
  }
}

/**
 * The receipt holds where every check is ok. Takes the parsed JSON, since the signature is over every member,
 * known here or not. Throws a FormatError where the form is wrong or a key cannot be read.
 */
export function verifyReceipt(document: unknown, options: ReceiptOptions = {}): Findings {
  if (!isFields(document)) throw new FormatError('a receipt is a JSON object')
  const receipt = readReceipt(document)
  const checked = checkKey(receipt.key, options.trustedKey)
  const { vkey, key } = checked
  const verdict = verifyCheckpoint(receipt.ledger.checkpoint, vkey)
  const checkpoint = verdict.ok ? verdict.checkpoint : undefined
  const { leaf_index: leafIndex, entry, inclusion } = receipt.ledger
  const checks = [
    attempt('signature', () =>
      check(
        'signature',
        verifySignature(fromBase64(receipt.signature), receiptMessage(document), key.publicKey),
        {
          good: 'the receipt is signed as it is',
          bad: 'the signature is not over this receipt',
        },
      ),
    ),
    checkCheckpoint(verdict),
    checkOrigin(checkpoint),
    checkInclusion({ leafIndex, leaf: () => leafHash(fromBase64(entry)), inclusion }, checkpoint),
    attempt('ledger', () => checkLedgerEntry(receipt)),
    checkAmounts(receipt),
    ...checkDelivery(receipt, options),
  ]
  return { checks: judgedBy(checked, checks), unchecked: uncheckedOf(options) }
}

function checkOrigin(checkpoint: SignedCheckpoint | undefined): Check {
  return check('origin', checkpoint?.origin.endsWith(systemOrigin) === true, {
    good: "the checkpoint is that of the service's own log",
    bad: "the checkpoint is not that of the service's own log",
  })
}

/** The entry must be of a sale, and every fact be the same there. */
function checkLedgerEntry(receipt: Receipt): Check {
  const { header, body } = decodeShownEntry(fromBase64(receipt.ledger.entry))
  const booked = parseJson(body, "the ledger entry's body")
  if (!isFields(booked)) throw new FormatError("the ledger entry's body is not an object")
  if (header.type !== 'ledger' || fieldOf(booked, 'kind') !== 'sale')
    throw new FormatError('the entry is not that of a sale')
  const differing = factNames.filter((name) => {
    const value = fieldOf(booked, name)
    return value === undefined || canonicalJson(value) !== canonicalJson(receipt[name])
  })
  return check('ledger', differing.length === 0, {
    good: 'the ledger entry says the same',
    bad: `the ledger entry differs in ${differing.join(', ')}`,
  })
}

/** A payment from a balance (no transaction) deposits nothing. */
function checkAmounts({ amount, deposited, change, transaction }: Receipt): Check {
  const sums = transaction === null || BigInt(amount) + BigInt(change) === BigInt(deposited)
  return check('amounts', sums, {
    good: transaction === null ? 'paid from a balance' : 'charge and change make up the deposit',
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
    checks.push(check('request', requestHash(request) === receipt.request_hash, texts))
  }
  if (reply !== undefined) {
    const texts = { good: 'the receipt is for this reply', bad: 'the receipt is for another reply' }
    checks.push(check('reply', sha256Hex(reply) === receipt.result_hash, texts))
  }
  return checks
}

function uncheckedOf({ request, reply }: ReceiptOptions): readonly Unchecked[] {
  return [
    ...(request === undefined
      ? [{ name: 'request', detail: 'no request was given to compare with the receipt' }]
      : []),
    ...(reply === undefined
      ? [{ name: 'reply', detail: 'no reply was given to compare with the receipt' }]
      : []),
  ]
}

function readLedger(fields: Fields): ReceiptLedger {
  return {
    height: countField(fields, 'height'),
    sequence: countField(fields, 'sequence'),
    leaf_index: countField(fields, 'leaf_index'),
    entry: textField(fields, 'entry'),
    inclusion: readInclusion(objectField(fields, 'inclusion')),
    checkpoint: textField(fields, 'checkpoint'),
  }
}

function amountField(fields: Fields, name: string): string {
  const value = textField(fields, name)
  if (!/^(0|[1-9][0-9]{0,77})$/.test(value))
    throw new FormatError(`"${name}" must be a whole number as a string`)
  return value
}

function sha256Hex(bytes: Uint8Array): string {
  return hex(sha256(bytes))
}
