import { createCipheriv, createDecipheriv } from 'node:crypto'
import type { World } from '../../base/world.ts'

// Headers of upstreams are secrets of sellers, and definitions are entries of a chain that others may read: so the
// chain has them sealed (AES-256-GCM), as `v1.<nonce>.<ciphertext and tag>` in base64url.

/** The place of a header, which its ciphertext is bound to: elsewhere, it cannot be opened. */
export type HeaderPlace = {
  /** Application id. */
  readonly app: string
  /** Collection id. */
  readonly collection: string
  /** Scheme, host and port that it is sent to. */
  readonly origin: string
}

const version = 'v1'
const nonceBytes = 12
const tagBytes = 16

/** Seals the values of headers, by name, under a key of 32 bytes. */
export function sealHeaders(
  { key, world }: { readonly key: Buffer; readonly world: Pick<World, 'randomBytes'> },
  headers: Readonly<Record<string, string>>,
  place: HeaderPlace,
): Record<string, string> {
  const seal = (name: string, value: string) => {
    const nonce = world.randomBytes(nonceBytes)
    const cipher = createCipheriv('aes-256-gcm', key, nonce)
    cipher.setAAD(formatBinding(place, name))
    const sealed = [cipher.update(value, 'utf8'), cipher.final(), cipher.getAuthTag()]
    return [version, nonce.toString('base64url'), Buffer.concat(sealed).toString('base64url')]
  }
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, seal(name, value).join('.')]),
  )
}

/** Opens the values of sealed headers; throws where one was changed, or was sealed for another place or key. */
export function openHeaders(
  key: Buffer,
  sealed: Readonly<Record<string, string>>,
  place: HeaderPlace,
): Record<string, string> {
  const open = (name: string, text: string) => {
    const [form, nonce = '', content = ''] = text.split('.')
    const bytes = Buffer.from(content, 'base64url')
    if (form !== version || bytes.length < tagBytes) throw new Error(`header ${name} is not sealed`)
    const iv = Buffer.from(nonce, 'base64url')
    const decipher = createDecipheriv('aes-256-gcm', key, iv, { authTagLength: tagBytes })
    decipher.setAAD(formatBinding(place, name))
    decipher.setAuthTag(bytes.subarray(-tagBytes))
    return decipher.update(bytes.subarray(0, -tagBytes), undefined, 'utf8') + decipher.final('utf8')
  }
  return Object.fromEntries(Object.entries(sealed).map(([name, text]) => [name, open(name, text)]))
}

/** JSON, so that no two places have the same bytes. */
function formatBinding({ app, collection, origin }: HeaderPlace, name: string): Buffer {
  return Buffer.from(JSON.stringify(['tollbase upstream header', app, collection, origin, name]))
}
