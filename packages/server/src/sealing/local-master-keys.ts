import { createHmac } from 'node:crypto'
import { SetupError } from '../base/setup-error.ts'
import { aesKeyBytes, nonceBytes, open, seal } from './aes-gcm.ts'

/** A data key as it is kept: wrapped by the master key of this id. */
export type WrappedKey = { readonly masterKey: string; readonly wrapped: Buffer }

type MasterKey = { readonly id: string; readonly key: Buffer }

/** Master keys, the present one first; the others open what was wrapped before. */
export type MasterKeys = readonly [MasterKey, ...MasterKey[]]

/** Parses master keys: 32 bytes each in base64, apart by commas or white space, the present one first. */
export function parseMasterKeys(text: string, source: string): MasterKeys {
  const [first, ...others] = text.split(/[\s,]+/).filter((part) => part !== '')
  if (first === undefined) throw new SetupError(`${source} holds no master key`)
  const parse = (part: string): MasterKey => {
    const key = Buffer.from(part, 'base64')
    if (key.length !== aesKeyBytes)
      throw new SetupError(`${source} must hold keys of ${aesKeyBytes} bytes in base64`)
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
  const wrapped = Buffer.concat([nonce, seal(plain, { key, nonce, bound: owner })])
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
  const nonce = wrapped.subarray(0, nonceBytes)
  return open(wrapped.subarray(nonceBytes), { key: master.key, nonce, bound: owner })
}

/** The id tells nothing of the key. */
function deriveId(key: Buffer): string {
  return createHmac('sha256', key).update('tollbase master key').digest('hex').slice(0, 16)
}
