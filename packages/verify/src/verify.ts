import { FormatError } from './bytes.ts'
import type { Check, Findings, Unchecked } from './check.ts'
import { type Fields, fieldOf, isFields, parseJson } from './fields.ts'
import { readRecordProof, recordProofType, verifyRecordProof } from './proof.ts'
import { type ReceiptOptions, receiptType, verifyReceipt } from './receipt.ts'

export type Verdict = {
  /** The document's own `type`. */
  readonly type: string
  /** Whether every check is ok, by a key that the caller trusts. */
  readonly ok: boolean
  /** Without a trusted key nothing was found true; the checks are those that fail even by the document's own key. */
  readonly trusted: boolean
  readonly checks: readonly Check[]
  readonly unchecked: readonly Unchecked[]
}

/**
 * Verifies a proof or a receipt, whichever the text is. A document of the right type and the wrong form fails
 * its check `format`; a text that is no document of ours throws a FormatError that says so.
 */
export function verifyDocument(text: string, options: ReceiptOptions = {}): Verdict {
  const document = parseJson(text, 'the document')
  const type = isFields(document) ? fieldOf(document, 'type') : undefined
  if (!isFields(document) || typeof type !== 'string') {
    throw new FormatError('the document is not a JSON object with a `type`')
  }
  const { checks, unchecked } = findingsOf(type, document, options)
  const trusted = options.trustedKey !== undefined
  return { type, ok: checks.every((each) => each.ok), trusted, checks, unchecked }
}

function findingsOf(type: string, document: Fields, options: ReceiptOptions): Findings {
  if (type !== recordProofType && type !== receiptType) {
    throw new FormatError(
      `documents of type "${type}" are not known here; known are ${recordProofType} and ${receiptType}`,
    )
  }
  try {
    return type === receiptType
      ? verifyReceipt(document, options)
      : verifyRecordProof(readRecordProof(document), options)
  } catch (error) {
    if (error instanceof FormatError)
      return { checks: [{ name: 'format', ok: false, detail: error.message }], unchecked: [] }
    throw error
  }
}
