import { FormatError } from './bytes.ts'
import { parseVerifierKey, type VerifierKey } from './checkpoint.ts'

/** One thing that was checked about a document. */
export type Check = { readonly name: string; readonly ok: boolean; readonly detail: string }

/** A statement of a document, or one that a reader may take from it, that was not checked. */
export type Unchecked = { readonly name: string; readonly detail: string }

/** The result of the checks: the document holds where each is ok and its key is trusted. */
export type Findings = {
  readonly checks: readonly Check[]
  readonly unchecked: readonly Unchecked[]
}

export type CheckedKey = { readonly check: Check; readonly vkey: string; readonly key: VerifierKey }

export function makeCheck(
  name: string,
  ok: boolean,
  texts: { readonly good: string; readonly bad: string },
): Check {
  return { name, ok, detail: ok ? texts.good : texts.bad }
}

/**
 * Returns the key to verify with: the trusted one. Without one, the document's own key can at most show that the
 * document does not hold.
 */
export function checkKey(documentKey: string, trustedKey: string | undefined): CheckedKey {
  if (trustedKey === undefined) {
    const key = parseVerifierKey(documentKey)
    const detail = `no trusted key was given; the document names ${documentKey}, which anybody can write into it`
    return { check: { name: 'key', ok: false, detail }, vkey: documentKey, key }
  }
  const texts = {
    good: `the document names the trusted key, ${trustedKey}`,
    bad: `the document names another key: ${documentKey}`,
  }
  const key = parseVerifierKey(trustedKey)
  return { check: makeCheck('key', trustedKey === documentKey, texts), vkey: trustedKey, key }
}

/**
 * Drops successful checks where the key is not trusted: nothing is shown to be true then, and only failures mean
 * something.
 */
export function applyKeyTrust(
  { check: key }: CheckedKey,
  checks: readonly Check[],
): readonly Check[] {
  return [key, ...(key.ok ? checks : checks.filter(({ ok }) => !ok))]
}

/** Runs a check; a part that cannot be read fails its check instead of ending all of them. */
export function attempt(name: string, work: () => Check): Check {
  try {
    return work()
  } catch (error) {
    if (error instanceof FormatError) return { name, ok: false, detail: error.message }
    throw error
  }
}
