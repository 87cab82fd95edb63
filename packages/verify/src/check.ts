import { FormatError } from './bytes.ts'
import { parseVerifierKey, type VerifierKey } from './checkpoint.ts'

/** One thing that was checked about a document. */
export type Check = { readonly name: string; readonly ok: boolean; readonly detail: string }

export type CheckedKey = { readonly check: Check; readonly vkey: string; readonly key: VerifierKey }

export function check(
  name: string,
  ok: boolean,
  texts: { readonly good: string; readonly bad: string },
): Check {
  return { name, ok, detail: ok ? texts.good : texts.bad }
}

/** The key to verify with: the trusted one where the caller has one, otherwise the one that the document names. */
export function checkKey(documentKey: string, trustedKey: string | undefined): CheckedKey {
  if (trustedKey === undefined) {
    const key = parseVerifierKey(documentKey)
    const detail = `no trusted key was given; compare ${documentKey} with the key that the service publishes`
    return { check: { name: 'key', ok: true, detail }, vkey: documentKey, key }
  }
  const texts = {
    good: 'signed for the trusted key',
    bad: `the document names another key: ${documentKey}`,
  }
  const key = parseVerifierKey(trustedKey)
  return { check: check('key', trustedKey === documentKey, texts), vkey: trustedKey, key }
}

/** A part that cannot even be read fails its check instead of ending all of them. */
export function attempt(name: string, work: () => Check): Check {
  try {
    return work()
  } catch (error) {
    if (error instanceof FormatError) return { name, ok: false, detail: error.message }
    throw error
  }
}
