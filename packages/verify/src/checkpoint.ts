import { ed25519 } from '@noble/curves/ed25519.js'
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
import { parseCount } from './fields.ts'
import { hashBytes } from './tree.ts'

/*
 * C2SP tlog-checkpoint in a C2SP signed-note (https://c2sp.org/tlog-checkpoint, https://c2sp.org/signed-note):
 *
 *   <origin>\n<size>\n<base64 root>\n\n— <key name> <base64(key id || signature)>\n
 *
 * Verifier keys are written `<name>+<hex key id>+<base64(0x01 || public key)>`.
 */

export type Checkpoint = {
  readonly origin: string
  readonly size: number
  readonly root: Uint8Array
}

export type NoteSignature = {
  readonly name: string
  readonly keyId: Uint8Array
  readonly signature: Uint8Array
}

export type SignedCheckpoint = Checkpoint & {
  /** The signed text. */
  readonly text: string
  readonly signatures: readonly NoteSignature[]
}

export type VerifierKey = {
  readonly name: string
  readonly keyId: Uint8Array
  readonly publicKey: Uint8Array
}

export type CheckpointVerdict =
  | { readonly ok: true; readonly checkpoint: SignedCheckpoint }
  | { readonly ok: false; readonly problem: string }

/** The algorithm byte of Ed25519 in key ids and verifier keys. */
const ed25519Byte = Uint8Array.of(1)
const keyIdBytes = 4
const publicKeyBytes = 32
const signatureBytes = 64
const noteCharsMax = 64 * 1024
const signaturesMax = 64

/** Formats the note's text, which is signed. */
export function formatCheckpoint({ origin, size, root }: Checkpoint): string {
  return `${origin}\n${size}\n${encodeBase64(root)}\n`
}

/** Formats the whole note: the text with its signature lines. */
export function formatNote(text: string, signatures: readonly NoteSignature[]): string {
  const lines = signatures.map(
    ({ name, keyId, signature }) => `— ${name} ${encodeBase64(concat(keyId, signature))}\n`,
  )
  return `${text}\n${lines.join('')}`
}

/** Computes a key id: the first four bytes of SHA-256(name || 0x0A || 0x01 || public key). */
export function computeKeyId(name: string, publicKey: Uint8Array): Uint8Array {
  return sha256(concat(encodeUtf8(`${name}\n`), ed25519Byte, publicKey)).subarray(0, keyIdBytes)
}

export function formatVerifierKey(name: string, publicKey: Uint8Array): string {
  if (!isKeyName(name))
    throw new FormatError('a key name is not empty and has no space and no plus sign')
  return `${name}+${encodeHex(computeKeyId(name, publicKey))}+${encodeBase64(concat(ed25519Byte, publicKey))}`
}

/** Throws a FormatError where the text is not a verifier key, or its id is not that of its name and key. */
export function parseVerifierKey(vkey: string): VerifierKey {
  const parts = /^([^+\s]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/=]+)$/u.exec(vkey)
  const [, name, id, encoded] = parts ?? []
  if (name === undefined || id === undefined || encoded === undefined) {
    throw new FormatError('a verifier key has the form <name>+<key id>+<base64>')
  }
  const key = decodeBase64(encoded)
  if (key.length !== 1 + publicKeyBytes || key[0] !== 1)
    throw new FormatError('the verifier key is not for Ed25519')
  const publicKey = key.subarray(1)
  const expected = computeKeyId(name, publicKey)
  if (!areBytesEqual(decodeHex(id, keyIdBytes), expected)) {
    throw new FormatError("the verifier key's id does not belong to its name and key")
  }
  return { name, keyId: expected, publicKey }
}

/** Reads a signed note without checking its signatures; throws a FormatError. */
export function parseCheckpoint(note: string): SignedCheckpoint {
  if (note.length > noteCharsMax) throw new FormatError('the checkpoint is too long')
  const split = note.lastIndexOf('\n\n')
  if (split < 0 || !note.endsWith('\n')) throw new FormatError('the checkpoint has no signatures')
  const text = note.slice(0, split + 1)
  const lines = note.slice(split + 2, -1).split('\n')
  if (lines.length > signaturesMax) throw new FormatError('the checkpoint has too many signatures')
  const [origin, size, root] = text.split('\n')
  if (origin === undefined || origin === '' || size === undefined || root === undefined) {
    throw new FormatError('a checkpoint has the lines origin, size and root')
  }
  const rootHash = decodeBase64(root)
  if (rootHash.length !== hashBytes)
    throw new FormatError("the checkpoint's root must have 32 bytes")
  return {
    origin,
    size: parseCount(size, "checkpoint's size"),
    root: rootHash,
    text,
    signatures: lines.map(parseSignature),
  }
}

/** Judges an Ed25519 signature. A caller with a faster implementation than the pure one of this package gives its own. */
export type SignatureJudge = (
  signature: Uint8Array,
  message: Uint8Array,
  publicKey: Uint8Array,
) => boolean

/**
 * Checks that the note is of the log that the key is named after, and carries one signature by it, which is valid. All
 * logs of a service sign with one key, and the name in a signature line is not signed: only the origin tells them apart.
 * Signatures of others (witnesses) are not judged.
 */
export function verifyCheckpoint(
  note: string,
  vkey: string,
  isSigned: SignatureJudge = verifySignature,
): CheckpointVerdict {
  try {
    const key = parseVerifierKey(vkey)
    const checkpoint = parseCheckpoint(note)
    if (checkpoint.origin !== key.name)
      return { ok: false, problem: `the checkpoint is of ${checkpoint.origin}, not of ${key.name}` }
    const [own, ...more] = checkpoint.signatures.filter(
      (each) => each.name === key.name && areBytesEqual(each.keyId, key.keyId),
    )
    if (own === undefined)
      return { ok: false, problem: `the checkpoint is not signed by ${key.name}` }
    if (more.length > 0)
      return { ok: false, problem: `the checkpoint has several signatures of ${key.name}` }
    return isSigned(own.signature, encodeUtf8(checkpoint.text), key.publicKey)
      ? { ok: true, checkpoint }
      : { ok: false, problem: 'the signature of the checkpoint is wrong' }
  } catch (error) {
    if (error instanceof FormatError) return { ok: false, problem: error.message }
    throw error
  }
}

/** Signatures that were found right and are not judged again: those of this many checkpoints and blocks. */
const verifiedMax = 4096
const verified = new Set<string>()

/**
 * Verifies Ed25519 by the strict rules of RFC 8032, the same that OpenSSL applies. Proofs of one log have few signatures
 * among them, each of which is judged once.
 */
export function verifySignature(
  signature: Uint8Array,
  message: Uint8Array,
  publicKey: Uint8Array,
): boolean {
  if (signature.length !== signatureBytes || publicKey.length !== publicKeyBytes) return false
  const judged = encodeHex(sha256(concat(publicKey, signature, message)))
  if (verified.has(judged)) return true
  if (!isSignature(signature, message, publicKey)) return false
  const [oldest] = verified
  if (verified.size >= verifiedMax && oldest !== undefined) verified.delete(oldest)
  verified.add(judged)
  return true
}

function isSignature(signature: Uint8Array, message: Uint8Array, publicKey: Uint8Array): boolean {
  try {
    return ed25519.verify(signature, message, publicKey, { zip215: false })
  } catch {
    return false
  }
}

function parseSignature(line: string): NoteSignature {
  const [, name, encoded] = /^— (\S+) (\S+)$/u.exec(line) ?? []
  if (name === undefined || encoded === undefined || !isKeyName(name)) {
    throw new FormatError('a signature line has the form — <name> <base64>')
  }
  const bytes = decodeBase64(encoded)
  if (bytes.length <= keyIdBytes) throw new FormatError('a signature is too short')
  return { name, keyId: bytes.subarray(0, keyIdBytes), signature: bytes.subarray(keyIdBytes) }
}

function isKeyName(name: string): boolean {
  return /^[^+\s]+$/u.test(name)
}
