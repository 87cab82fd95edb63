import { concat, FormatError } from '../bytes.ts'
import { namespaceBytes, requireBlobNamespace } from './namespace.ts'

/** Bytes of a share, the unit of a block. */
export const shareBytes = 512

const infoBytes = 1
const lengthBytes = 4
/** Bytes of data in the first share of a blob, and in each that follows. */
const firstDataBytes = shareBytes - namespaceBytes - infoBytes - lengthBytes
const nextDataBytes = shareBytes - namespaceBytes - infoBytes

/** Counts the shares of a blob of so many bytes (share version 0). */
export function countShares(bytes: number): number {
  return 1 + Math.max(0, Math.ceil((bytes - firstDataBytes) / nextDataBytes))
}

/**
 * Splits the data of a blob into shares of version 0: namespace, info byte (version and whether the share is the first),
 * in the first the data's length (32 bits, big endian), then data, filled up with zeros. Throws a FormatError.
 */
export function splitShares(namespace: Uint8Array, data: Uint8Array): Uint8Array[] {
  requireBlobNamespace(namespace)
  if (data.length === 0) throw new FormatError('a blob is not empty')
  const length = new Uint8Array(lengthBytes)
  new DataView(length.buffer).setUint32(0, data.length)
  return Array.from({ length: countShares(data.length) }, (_, at) => {
    const share = new Uint8Array(shareBytes)
    const start = at === 0 ? 0 : firstDataBytes + (at - 1) * nextDataBytes
    const head =
      at === 0 ? concat(namespace, Uint8Array.of(1), length) : concat(namespace, Uint8Array.of(0))
    share.set(head)
    share.set(data.subarray(start, start + shareBytes - head.length), head.length)
    return share
  })
}
