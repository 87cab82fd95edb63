import { createCipheriv, createDecipheriv } from 'node:crypto'

/** Bytes of a key, of a nonce, and of the tag at the end of a sealed text. */
export const aesKeyBytes = 32
export const nonceBytes = 12
export const tagBytes = 16

/** A nonce must never be used twice under one key; `bound` has to be the same when the text is opened. */
type Sealing = { readonly key: Buffer; readonly nonce: Buffer; readonly bound: string }

/** Seals by AES-256-GCM; returns the ciphertext with its tag behind it. */
export function seal(content: string | Buffer, { key, nonce, bound }: Sealing): Buffer {
  const cipher = createCipheriv('aes-256-gcm', key, nonce)
  cipher.setAAD(Buffer.from(bound))
  const bytes = typeof content === 'string' ? Buffer.from(content) : content
  return Buffer.concat([cipher.update(bytes), cipher.final(), cipher.getAuthTag()])
}

/** Opens what `seal` made; throws where a byte of it was changed, or where key, nonce or `bound` are others. */
export function open(sealed: Buffer, { key, nonce, bound }: Sealing): Buffer {
  if (nonce.length !== nonceBytes || sealed.length < tagBytes)
    throw new Error('a sealed text is too short')
  const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: tagBytes })
  decipher.setAAD(Buffer.from(bound))
  decipher.setAuthTag(sealed.subarray(-tagBytes))
  return Buffer.concat([decipher.update(sealed.subarray(0, -tagBytes)), decipher.final()])
}
