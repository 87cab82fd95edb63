import type { World } from '../../base/world.ts'
import { nonceBytes, open, seal } from '../../sealing/aes-gcm.ts'

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

/** Seals the values of headers, by name, under a key of 32 bytes. */
export function sealHeaders(
  { key, world }: { readonly key: Buffer; readonly world: Pick<World, 'randomBytes'> },
  headers: Readonly<Record<string, string>>,
  place: HeaderPlace,
): Record<string, string> {
  const sealOne = (name: string, value: string) => {
    const nonce = world.randomBytes(nonceBytes)
    const sealed = seal(value, { key, nonce, bound: formatBinding(place, name) })
    return [version, nonce.toString('base64url'), sealed.toString('base64url')]
  }
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, sealOne(name, value).join('.')]),
  )
}

/** Opens the values of sealed headers; throws where one was changed, or was sealed for another place or key. */
export function openHeaders(
  key: Buffer,
  sealed: Readonly<Record<string, string>>,
  place: HeaderPlace,
): Record<string, string> {
  const openOne = (name: string, text: string) => {
    const [form, nonce = '', content = ''] = text.split('.')
    if (form !== version) throw new Error(`header ${name} is not sealed`)
    return open(Buffer.from(content, 'base64url'), {
      key,
      nonce: Buffer.from(nonce, 'base64url'),
      bound: formatBinding(place, name),
    }).toString()
  }
  return Object.fromEntries(
    Object.entries(sealed).map(([name, text]) => [name, openOne(name, text)]),
  )
}

/** JSON, so that no two places have the same bytes. */
function formatBinding({ app, collection, origin }: HeaderPlace, name: string): string {
  return JSON.stringify(['tollbase upstream header', app, collection, origin, name])
}
