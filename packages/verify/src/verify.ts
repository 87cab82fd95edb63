import { FormatError } from './bytes.ts'
import type { Check, Findings, Unchecked } from './check.ts'
import { type Fields, findField, isFields, parseJson } from './fields.ts'
import { parseRecordProof, recordProofType, verifyRecordProof } from './proof.ts'
import { type ReceiptOptions, receiptType, verifyReceipt } from './receipt.ts'

export type Verdict = {
  /** The document's own `type`. */
  readonly type: string
  /** True where every check is ok, with a key that the caller trusts. */
  readonly ok: boolean
  /**
   * True where a trusted key was given. Without one nothing was found true; the checks are those that fail even
   * with the document's own key.
   */
  readonly trusted: boolean
  readonly checks: readonly Check[]
  readonly unchecked: readonly Unchecked[]
}

/**
 * Verifies a proof or a receipt, whichever the text is. A document of the right type and the wrong form fails its
 * check `format`; any other text throws a FormatError that says so.
 */
export function verifyDocument(text: string, options: ReceiptOptions = {}): Verdict {
  const document = parseJson(text, 'the document')
  const type = isFields(document) ? findField(document, 'type') : undefined
  if (!isFields(document) || typeof type !== 'string') {
    throw new FormatError('the document is not a JSON object with a `type`')
  }
  const { checks, unchecked } = verifyByType(type, document, options)
  const trusted = options.trustedKey !== undefined
  return { type, ok: checks.every((each) => each.ok), trusted, checks, unchecked }
}

function verifyByType(type: string, document: Fields, options: ReceiptOptions): Findings {
  if (type !== recordProofType && type !== receiptType) {
    throw new FormatError(
      `documents of type "${type}" are not known here; known are ${recordProofType} and ${receiptType}`,
    )
  }
  try {
    return type === receiptType
      ? verifyReceipt(document, options)
      : verifyRecordProof(parseRecordProof(document), options)
  } catch (error) {
    if (error instanceof FormatError)
      return { checks: [{ name: 'format', ok: false, detail: error.message }], unchecked: [] }
    throw error
  }
}
