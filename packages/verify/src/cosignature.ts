import { sha256 } from '@noble/hashes/sha2.js'
import {
  areBytesEqual,
  concat,
  decodeBase64,
  decodeHex,
  encodeBase64,
  encodeHex,
  encodeUtf8,
  FormatError,
} from './bytes.ts'
import {
  type NoteSignature,
  parseCheckpoint,
  type SignatureJudge,
  type VerifierKey,
  verifySignature,
} from './checkpoint.ts'

/*
 * C2SP tlog-cosignature v1 (https://c2sp.org/tlog-cosignature): a witness signs a checkpoint that it has found to go on
 * from the one it signed before. A line of the note like any other, whose signature is the time (64 bits, big endian,
 * seconds since 1970) and Ed25519 over
 *
 *   cosignature/v1\ntime <seconds>\n<origin>\n<size>\n<base64 root>\n
 *
 * Verifier keys of witnesses have the algorithm byte 4.
 */

const algorithmByte = Uint8Array.of(4)
const keyBytes = 32
const timeBytes = 8
const signatureBytes = 64

export type Cosigned =
  /** Seconds since 1970. */
  { readonly ok: true; readonly time: number } | { readonly ok: false; readonly problem: string }

/** Encodes the message that a witness signs for a checkpoint's text. */
export function encodeCosignedMessage(text: string, time: number): Uint8Array {
  return encodeUtf8(`cosignature/v1\ntime ${time}\n${text}`)
}

/** Makes the line's signature of the time and the Ed25519 signature over the message. */
export function formatCosignature(
  { name, keyId }: Pick<VerifierKey, 'name' | 'keyId'>,
  signed: { readonly time: number; readonly signature: Uint8Array },
): NoteSignature {
  const time = new Uint8Array(timeBytes)
  new DataView(time.buffer).setBigUint64(0, BigInt(signed.time))
  return { name, keyId, signature: concat(time, signed.signature) }
}

/** Computes a witness's key id: the first four bytes of SHA-256(name || 0x0A || 0x04 || public key). */
export function computeWitnessKeyId(name: string, publicKey: Uint8Array): Uint8Array {
  return sha256(concat(encodeUtf8(`${name}\n`), algorithmByte, publicKey)).subarray(0, 4)
}

export function formatWitnessKey(name: string, publicKey: Uint8Array): string {
  if (!/^[^+\s]+$/u.test(name))
    throw new FormatError("a witness's name is not empty and has no space and no plus sign")
  const id = encodeHex(computeWitnessKeyId(name, publicKey))
  return `${name}+${id}+${encodeBase64(concat(algorithmByte, publicKey))}`
}

/** Throws a FormatError where the text is not the verifier key of a witness. */
export function parseWitnessKey(vkey: string): VerifierKey {
  const [, name, id, encoded] = /^([^+\s]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/=]+)$/u.exec(vkey) ?? []
  if (name === undefined || id === undefined || encoded === undefined)
    throw new FormatError('a verifier key has the form <name>+<key id>+<base64>')
  const key = decodeBase64(encoded)
  if (key.length !== 1 + keyBytes || key[0] !== algorithmByte[0])
    throw new FormatError('the verifier key is not that of a witness')
  const publicKey = key.subarray(1)
  const keyId = computeWitnessKeyId(name, publicKey)
  if (!areBytesEqual(decodeHex(id, keyId.length), keyId))
    throw new FormatError("the verifier key's id does not belong to its name and key")
  return { name, keyId, publicKey }
}

/** Checks that the note has a cosignature of this witness; the log's own signature is judged by `verifyCheckpoint`. */
export function verifyCosignature(
  note: string,
  witnessKey: string,
  isSigned: SignatureJudge = verifySignature,
): Cosigned {
  try {
    const key = parseWitnessKey(witnessKey)
    const { text, signatures } = parseCheckpoint(note)
    const own = signatures.filter(
      (each) => each.name === key.name && areBytesEqual(each.keyId, key.keyId),
    )
    const [first, ...more] = own
    if (first === undefined || more.length > 0)
      return { ok: false, problem: `the checkpoint has no cosignature of ${key.name}` }
    if (first.signature.length !== timeBytes + signatureBytes)
      return { ok: false, problem: `the cosignature of ${key.name} has a wrong length` }
    const time = Number(new DataView(first.signature.slice().buffer).getBigUint64(0))
    const message = encodeCosignedMessage(text, time)
    return Number.isSafeInteger(time) &&
      isSigned(first.signature.subarray(timeBytes), message, key.publicKey)
      ? { ok: true, time }
      : { ok: false, problem: `the cosignature of ${key.name} is wrong` }
  } catch (error) {
    if (error instanceof FormatError) return { ok: false, problem: error.message }
    throw error
  }
}
