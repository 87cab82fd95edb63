import type { Measured } from '@tollbase/verify/sale-details'

/**
 * All that the answer to a paid write takes beside its entries in the log. It is kept with the claim before anything is
 * written: a write that was made is answered and charged by it, though its buyer may never ask again.
 */
export type WriteForm = (
  | { readonly operation: 'store' | 'upload'; readonly rows: number; readonly wait: boolean }
  | {
      readonly operation: 'batch'
      readonly rows: number
      readonly steps: readonly { readonly operation: string; readonly collection: string }[]
    }
  | { readonly operation: 'encryption'; readonly rows: 0 }
) & {
  /** The use of each part of the price; forms from before it was noted lack it. */
  readonly measured?: readonly (Measured | undefined)[]
}

export function encodeWriteForm(form: WriteForm): string {
  return JSON.stringify(form)
}

/** Decodes what `encodeWriteForm` wrote. */
export function decodeWriteForm(text: string): WriteForm {
  const form: WriteForm = JSON.parse(text)
  return form
}
