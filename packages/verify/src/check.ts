import { FormatError } from './bytes.ts'
import { parseVerifierKey, type VerifierKey } from './checkpoint.ts'

/** One thing that was checked about a document. */
export type Check = { readonly name: string; readonly ok: boolean; readonly detail: string }

/** One thing that a document says, or that its reader may take it to say, and that was not checked. */
export type Unchecked = { readonly name: string; readonly detail: string }

/** What came of the checks: the document holds where each is ok and its key is trusted. */
export type Findings = {
  readonly checks: readonly Check[]
  readonly unchecked: readonly Unchecked[]
}

export type CheckedKey = { readonly check: Check; readonly vkey: string; readonly key: VerifierKey }

export function check(
  name: string,
  ok: boolean,
  texts: { readonly good: string; readonly bad: string },
): Check {
  return { name, ok, detail: ok ? texts.good : texts.bad }
}

/** The key to verify with: the trusted one; without one, that of the document shows at most that it does not hold. */
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
  return { check: check('key', trustedKey === documentKey, texts), vkey: trustedKey, key }
}

/** Without a trusted key nothing is shown to be true: of the other checks only those that fail say something. */
export function judgedBy({ check: key }: CheckedKey, checks: readonly Check[]): readonly Check[] {
  return [key, ...(key.ok ? checks : checks.filter(({ ok }) => !ok))]
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
