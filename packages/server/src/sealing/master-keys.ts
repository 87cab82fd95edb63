import { createCipheriv, createDecipheriv, createHmac } from 'node:crypto'
import { SetupError } from '../base/setup-error.ts'
import { sealingKeyBytes } from './envelope.ts'

/** A data key as it is kept: wrapped by the master key of this id. */
export type WrappedKey = { readonly masterKey: string; readonly wrapped: Buffer }

type MasterKey = { readonly id: string; readonly key: Buffer }

/** Master keys, the present one first; the others open what was wrapped before. */
export type MasterKeys = readonly [MasterKey, ...MasterKey[]]

const nonceBytes = 12
const tagBytes = 16

/** Parses master keys: 32 bytes each in base64, apart by commas or white space, the present one first. */
export function parseMasterKeys(text: string, source: string): MasterKeys {
  const [first, ...others] = text.split(/[\s,]+/).filter((part) => part !== '')
  if (first === undefined) throw new SetupError(`${source} holds no master key`)
  const parse = (part: string): MasterKey => {
    const key = Buffer.from(part, 'base64')
    if (key.length !== sealingKeyBytes)
      throw new SetupError(`${source} must hold keys of ${sealingKeyBytes} bytes in base64`)
    return { id: deriveId(key), key }
  }
  return [parse(first), ...others.map(parse)]
}

/** Wraps a data key; `owner` names what it is for, and a wrapped key opens for nothing else. */
export function wrapKey(
  [{ id, key }]: MasterKeys,
  plain: Buffer,
  {
    owner,
    randomBytes,
  }: { readonly owner: string; readonly randomBytes: (count: number) => Buffer },
): WrappedKey {
  const nonce = randomBytes(nonceBytes)
  const cipher = createCipheriv('aes-256-gcm', key, nonce)
  cipher.setAAD(Buffer.from(owner))
  const wrapped = Buffer.concat([nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()])
  return { masterKey: id, wrapped }
}

/** Unwraps a data key; undefined where its master key is not there. Throws where it was changed or is another's. */
export function unwrapKey(
  keys: MasterKeys,
  { masterKey, wrapped }: WrappedKey,
  owner: string,
): Buffer | undefined {
  const master = keys.find(({ id }) => id === masterKey)
  if (master === undefined) return undefined
  const decipher = createDecipheriv('aes-256-gcm', master.key, wrapped.subarray(0, nonceBytes), {
    authTagLength: tagBytes,
  })
  decipher.setAAD(Buffer.from(owner))
  decipher.setAuthTag(wrapped.subarray(-tagBytes))
  return Buffer.concat([decipher.update(wrapped.subarray(nonceBytes, -tagBytes)), decipher.final()])
}

/** The id tells nothing of the key. */
function deriveId(key: Buffer): string {
  return createHmac('sha256', key).update('tollbase master key').digest('hex').slice(0, 16)
}
