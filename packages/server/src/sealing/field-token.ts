import { createHmac } from 'node:crypto'

/** Bytes of a field's token: enough that no two values meet by chance. */
const fieldTokenBytes = 16

/** A value that equality finds: two are equal where their JSON types and values are. */
export type TokenValue = string | number | boolean

/**
 * Derives the key of the tokens of fields from a data key. So the tokens of two epochs have nothing in common, and
 * they go with the data key when it is deleted.
 */
export function deriveFieldTokenKey(dataKey: Buffer): Buffer {
  return createHmac('sha256', dataKey).update('tollbase field tokens').digest()
}

/**
 * Derives the token of a field's value. Equal values of a field have equal tokens under one key, and nobody can try
 * values without it. A number counts as the nearest double, in its shortest form.
 */
export function deriveFieldToken(key: Buffer, field: string, value: TokenValue): string {
  const text = JSON.stringify(['field', field, typeof value, String(value)])
  return createHmac('sha256', key)
    .update(text)
    .digest()
    .subarray(0, fieldTokenBytes)
    .toString('base64url')
}
