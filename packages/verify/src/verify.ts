import { FormatError } from './bytes.ts'
import type { Check, Findings, Unchecked } from './check.ts'
import { verifyCheckpoint } from './checkpoint.ts'
import { verifyCosignature } from './cosignature.ts'
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

/** The type of a checkpoint's verdict: a note has none of its own. */
export const checkpointType = 'tollbase/checkpoint@v1'

/** Returns true for the text of a signed note (https://c2sp.org/signed-note), as no JSON is. */
export function isNote(text: string): boolean {
  return /\n\n— /u.test(text)
}

/** Verifies the note of a checkpoint: that the log's key signed it, and each of these witnesses. */
export function verifyNote(
  note: string,
  {
    trustedKey,
    witnessKeys = [],
  }: { readonly trustedKey?: string | undefined; readonly witnessKeys?: readonly string[] },
): Verdict {
  const checks: Check[] = []
  if (trustedKey !== undefined) {
    const own = verifyCheckpoint(note, trustedKey)
    const detail = own.ok
      ? `signed for ${own.checkpoint.size} entries of ${own.checkpoint.origin}`
      : own.problem
    checks.push({ name: 'checkpoint', ok: own.ok, detail })
  }
  for (const witnessKey of witnessKeys) {
    const cosigned = verifyCosignature(note, witnessKey)
    const name = witnessKey.split('+')[0] ?? ''
    const detail = cosigned.ok
      ? `${name} signed it at ${new Date(cosigned.time * 1000).toISOString()}`
      : cosigned.problem
    checks.push({ name: 'witness', ok: cosigned.ok, detail })
  }
  const trusted = trustedKey !== undefined
  const unchecked =
    witnessKeys.length > 0
      ? []
      : [{ name: 'witness', detail: 'whether others were shown the same log (--witness)' }]
  return { type: checkpointType, ok: checks.every(({ ok }) => ok), trusted, checks, unchecked }
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
