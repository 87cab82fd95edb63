import { sha256 } from '@noble/hashes/sha2.js'
import { areBytesEqual, concat, encodeUtf8, FormatError } from '../bytes.ts'

/** Bytes of a namespace: the version, and the id. */
export const namespaceBytes = 29

const versionZero = Uint8Array.of(0)
const userBytes = 10
const leadingZeros = new Uint8Array(18)
/** The largest of the namespaces that the network keeps for itself, below those of blobs. */
const reservedMax = 255

/** The namespace of padding and parity shares: nothing of anybody's is in it. */
export const parityNamespace: Uint8Array = new Uint8Array(namespaceBytes).fill(0xff)

/** Derives the namespace of an application's blobs: version 0, and the first 10 bytes of SHA-256("ondb:" || app). */
export function deriveNamespace(app: string): Uint8Array {
  const id = sha256(encodeUtf8(`ondb:${app}`)).subarray(0, userBytes)
  return concat(versionZero, leadingZeros, id)
}

/** Requires a namespace that a blob can have: of version 0, and not one that the network keeps; throws a FormatError. */
export function requireBlobNamespace(namespace: Uint8Array): Uint8Array {
  const head = namespace.subarray(0, 1 + leadingZeros.length)
  const isZero =
    namespace.length === namespaceBytes && areBytesEqual(head, concat(versionZero, leadingZeros))
  if (!isZero)
    throw new FormatError('a namespace of blobs has version 0, 18 zero bytes and 10 more')
  const user = namespace.subarray(head.length)
  if (user.subarray(0, -1).every((byte) => byte === 0) && (user.at(-1) ?? 0) <= reservedMax)
    throw new FormatError('the network keeps this namespace for itself')
  return namespace
}

/** Compares two namespaces: negative where the first is the smaller one. */
export function compareNamespaces(a: Uint8Array, b: Uint8Array): number {
  for (let at = 0; at < namespaceBytes; at++) {
    const difference = (a[at] ?? 0) - (b[at] ?? 0)
    if (difference !== 0) return difference
  }
  return 0
}
