import { computeKeyId, formatNote } from '@tollbase/verify/checkpoint'

/** Signs with the key of the service, which each of its logs has under a name of its own. */
export type NoteKey = {
  /** Raw Ed25519 key. */
  readonly publicKey: Uint8Array
  readonly sign: (bytes: Uint8Array) => Uint8Array
}

/** Signs a text as a note of the log with this name. */
export function signNote({ publicKey, sign }: NoteKey, name: string, text: string): string {
  const keyId = computeKeyId(name, publicKey)
  return formatNote(text, [{ name, keyId, signature: sign(Buffer.from(text)) }])
}
