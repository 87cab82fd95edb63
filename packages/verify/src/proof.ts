import { blockHash, parseBlockHeader, verifyBlockSignature } from './block.ts'
import { equalBytes, FormatError, fromBase64, fromHex, hex } from './bytes.ts'
import {
  attempt,
  type Check,
  check,
  checkKey,
  type Findings,
  judgedBy,
  type Unchecked,
} from './check.ts'
import { verifyCheckpoint } from './checkpoint.ts'
import { decodeShownEntry } from './entry.ts'
import { countField, type Fields, fieldOf, objectField, textField } from './fields.ts'
import { checkCheckpoint, checkInclusion, type Inclusion, readInclusion } from './inclusion.ts'
import { hashBytes, leafHash } from './tree.ts'

export const recordProofType = 'tollbase/record-proof@v1'

/** That one entry is in an application's log, to be checked by anyone, offline. */
export type RecordProof = {
  readonly type: typeof recordProofType
  readonly app: string
  readonly height: number
  /** Place within the block, from 0. */
  readonly sequence: number
  readonly leaf_index: number
  /** The leaf's bytes (see entry.ts) in base64; who may not read the entry gets `leaf_hash` in its place. */
  readonly entry?: string
  /** SHA-256 (hex) of the leaf, see `leafHash`. */
  readonly leaf_hash?: string
  readonly inclusion: Inclusion
  /** Signed note, see checkpoint.ts. */
  readonly checkpoint: string
  /** The signed header of the block; without it height and sequence are claims, the leaf index is proven. */
  readonly block?: ProofBlock
  /** Verifier key that checkpoint and block are signed with. */
  readonly key: string
}

/** Header text and base64 signature, see block.ts. */
export type ProofBlock = { readonly header: string; readonly signature: string }

export type ProofOptions = {
  /** The service's verifier key from a place that the caller trusts. */
  readonly trustedKey?: string | undefined
}

/** Throws a FormatError that names the member. */
export function readRecordProof(fields: Fields): RecordProof {
  const has = (name: string) => fieldOf(fields, name) !== undefined
  const block = has('block') ? objectField(fields, 'block') : undefined
  const proof = {
    type: recordProofType,
    app: textField(fields, 'app'),
    height: countField(fields, 'height'),
    sequence: countField(fields, 'sequence'),
    leaf_index: countField(fields, 'leaf_index'),
    ...(has('entry') && { entry: textField(fields, 'entry') }),
    ...(has('leaf_hash') && { leaf_hash: textField(fields, 'leaf_hash') }),
    inclusion: readInclusion(objectField(fields, 'inclusion')),
    checkpoint: textField(fields, 'checkpoint'),
    ...(block === undefined
      ? {}
      : {
          block: { header: textField(block, 'header'), signature: textField(block, 'signature') },
        }),
    key: textField(fields, 'key'),
  } as const
  if (!has('entry') && !has('leaf_hash'))
    throw new FormatError('"entry" must be a string, or "leaf_hash" in its place')
  return proof
}

/** The proof holds where every check is ok. Throws a FormatError where a key cannot be read. */
export function verifyRecordProof(proof: RecordProof, options: ProofOptions = {}): Findings {
  const key = checkKey(proof.key, options.trustedKey)
  const verdict = verifyCheckpoint(proof.checkpoint, key.vkey)
  const checkpoint = verdict.ok ? verdict.checkpoint : undefined
  const { leaf_index: leafIndex, entry, inclusion, block } = proof
  const checks = [
    checkCheckpoint(verdict),
    check('application', checkpoint?.origin.endsWith(`/${proof.app}`) === true, {
      good: `the checkpoint is that of ${proof.app}`,
      bad: `the checkpoint is not that of ${proof.app}`,
    }),
    checkInclusion({ leafIndex, leaf: () => leafOf(proof), inclusion }, checkpoint),
    ...(entry === undefined
      ? []
      : [
          attempt('entry', () => {
            const { header } = decodeShownEntry(fromBase64(entry))
            return { name: 'entry', ok: true, detail: `the entry is a ${header.type}` }
          }),
        ]),
    ...(block === undefined ? [] : [checkBlock(proof, block, key.key.publicKey)]),
  ]
  return { checks: judgedBy(key, checks), unchecked: uncheckedOf(proof) }
}

/** Where the proof has both, the hash is that of the entry. */
function leafOf({ entry, leaf_hash }: RecordProof): Uint8Array {
  const told = leaf_hash === undefined ? undefined : fromHex(leaf_hash, hashBytes)
  const made = entry === undefined ? undefined : leafHash(fromBase64(entry))
  const leaf = made ?? told
  if (leaf === undefined || (told !== undefined && !equalBytes(leaf, told)))
    throw new FormatError('"leaf_hash" is not the hash of "entry"')
  return leaf
}

function uncheckedOf({ entry, block }: RecordProof): readonly Unchecked[] {
  const content =
    'the proof holds the hash of the entry only, so what the entry says was not checked'
  const place =
    'the proof has no signed block header, so the height and the sequence that it names were not checked'
  return [
    ...(entry === undefined ? [{ name: 'content', detail: content }] : []),
    ...(block === undefined ? [{ name: 'height', detail: place }] : []),
  ]
}

/** That the signed block header puts this leaf at this height and sequence. */
function checkBlock(proof: RecordProof, block: ProofBlock, publicKey: Uint8Array): Check {
  return attempt('block', () => {
    const header = parseBlockHeader(block.header)
    const signed = verifyBlockSignature(block.header, fromBase64(block.signature), publicKey)
    const placed =
      header.height === proof.height &&
      header.treeSize - header.entryCount + proof.sequence === proof.leaf_index &&
      proof.sequence < header.entryCount &&
      header.origin.endsWith(`/${proof.app}`)
    return check('block', signed && placed, {
      good: `entry ${proof.sequence} of block ${proof.height}, hash ${hex(blockHash(block.header))}`,
      bad: signed
        ? 'the block header puts the entry elsewhere'
        : 'the signature of the block header is wrong',
    })
  })
}
