import {
  type AnchorOptions,
  type AnchorProof,
  checkAnchor,
  checkHeaderHash,
  findAnchorProof,
  listUncheckedAnchor,
} from './anchor-proof.ts'
import {
  hashBlock,
  type ProofBlock,
  parseBlockHeader,
  parseProofBlock,
  verifyBlockSignature,
} from './block.ts'
import { areBytesEqual, decodeBase64, decodeHex, encodeHex, FormatError } from './bytes.ts'
import {
  applyKeyTrust,
  attempt,
  type Check,
  checkKey,
  type Findings,
  makeCheck,
  type Unchecked,
} from './check.ts'
import { type VerifierKey, verifyCheckpoint } from './checkpoint.ts'
import { decodeShownEntry } from './entry.ts'
import { type Fields, findField, requireCount, requireObject, requireText } from './fields.ts'
import { checkCheckpoint, checkInclusion, type Inclusion, parseInclusion } from './inclusion.ts'
import { hashBytes, hashLeaf } from './tree.ts'

export const recordProofType = 'tollbase/record-proof@v1'

/** The proof that one entry is in an application's log, to be checked by anyone, offline. */
export type RecordProof = {
  readonly type: typeof recordProofType
  readonly app: string
  readonly height: number
  /** Place within the block, from 0. */
  readonly sequence: number
  readonly leaf_index: number
  /** The leaf's bytes (see entry.ts) in base64; callers who may not read the entry get `leaf_hash` instead. */
  readonly entry?: string
  /** SHA-256 (hex) of the leaf, see `hashLeaf`. */
  readonly leaf_hash?: string
  readonly inclusion: Inclusion
  /** Signed note, see checkpoint.ts. */
  readonly checkpoint: string
  /** The signed header of the block; without it the leaf index is proven, but height and sequence are only claims. */
  readonly block?: ProofBlock
  /** Verifier key that checkpoint and block are signed with. */
  readonly key: string
  /** Where another chain already has a root that covers the entry. */
  readonly anchor?: AnchorProof
}

export type ProofOptions = AnchorOptions & {
  /** The service's verifier key from a place that the caller trusts. */
  readonly trustedKey?: string | undefined
}

/** Parses a record proof; throws a FormatError that names the member. */
export function parseRecordProof(fields: Fields): RecordProof {
  const has = (name: string) => findField(fields, name) !== undefined
  const block = has('block') ? requireObject(fields, 'block') : undefined
  const anchor = findAnchorProof(fields)
  const proof = {
    type: recordProofType,
    app: requireText(fields, 'app'),
    height: requireCount(fields, 'height'),
    sequence: requireCount(fields, 'sequence'),
    leaf_index: requireCount(fields, 'leaf_index'),
    ...(has('entry') && { entry: requireText(fields, 'entry') }),
    ...(has('leaf_hash') && { leaf_hash: requireText(fields, 'leaf_hash') }),
    inclusion: parseInclusion(requireObject(fields, 'inclusion')),
    checkpoint: requireText(fields, 'checkpoint'),
    ...(block && { block: parseProofBlock(block) }),
    key: requireText(fields, 'key'),
    ...(anchor && { anchor }),
  } as const
  if (!has('entry') && !has('leaf_hash'))
    throw new FormatError('"entry" must be a string, or "leaf_hash" in its place')
  return proof
}

/** Verifies a proof, which holds where every check is ok. Throws a FormatError where a key cannot be read. */
export function verifyRecordProof(proof: RecordProof, options: ProofOptions = {}): Findings {
  const key = checkKey(proof.key, options.trustedKey)
  const verdict = verifyCheckpoint(proof.checkpoint, key.vkey)
  const checkpoint = verdict.ok ? verdict.checkpoint : undefined
  const { leaf_index: leafIndex, entry, inclusion, block, anchor } = proof
  const leaf = () => parseLeafHash(proof)
  const checks = [
    checkCheckpoint(verdict),
    makeCheck('application', checkpoint?.origin.endsWith(`/${proof.app}`) === true, {
      good: `the checkpoint is that of ${proof.app}`,
      bad: `the checkpoint is not that of ${proof.app}`,
    }),
    checkInclusion({ leafIndex, leaf, inclusion }, checkpoint),
    ...(entry === undefined
      ? []
      : [
          attempt('entry', () => {
            const { header } = decodeShownEntry(decodeBase64(entry))
            return { name: 'entry', ok: true, detail: `the entry is a ${header.type}` }
          }),
        ]),
    ...(block === undefined ? [] : [checkBlock(proof, block, key.key)]),
    ...(anchor
      ? checkAnchor(anchor, { app: proof.app, leafIndex, leaf, key: key.key }, options)
      : []),
    ...checkHeaderHash(anchor, options),
  ]
  return { checks: applyKeyTrust(key, checks), unchecked: listUnchecked(proof, options) }
}

/** Parses the leaf hash; where the proof has both, it must be that of the entry. */
function parseLeafHash({ entry, leaf_hash }: RecordProof): Uint8Array {
  const told = leaf_hash === undefined ? undefined : decodeHex(leaf_hash, hashBytes)
  const made = entry === undefined ? undefined : hashLeaf(decodeBase64(entry))
  const leaf = made ?? told
  if (leaf === undefined || (told !== undefined && !areBytesEqual(leaf, told)))
    throw new FormatError('"leaf_hash" is not the hash of "entry"')
  return leaf
}

function listUnchecked(
  { entry, block, anchor }: RecordProof,
  options: ProofOptions,
): readonly Unchecked[] {
  const content =
    'the proof holds the hash of the entry only, so what the entry says was not checked'
  const place =
    'the proof has no signed block header, so the height and the sequence that it names were not checked'
  return [
    ...(entry === undefined ? [{ name: 'content', detail: content }] : []),
    ...(block === undefined ? [{ name: 'height', detail: place }] : []),
    ...listUncheckedAnchor(anchor, options),
  ]
}

/** Checks that the signed block header puts this leaf at this height and sequence. */
function checkBlock(proof: RecordProof, block: ProofBlock, key: VerifierKey): Check {
  return attempt('block', () => {
    const header = parseBlockHeader(block.header)
    const signed = verifyBlockSignature(block.header, decodeBase64(block.signature), key.publicKey)
    const placed =
      header.height === proof.height &&
      header.treeSize - header.entryCount + proof.sequence === proof.leaf_index &&
      proof.sequence < header.entryCount &&
      header.origin === key.name
    return makeCheck('block', signed && placed, {
      good: `entry ${proof.sequence} of block ${proof.height}, hash ${encodeHex(hashBlock(block.header))}`,
      bad: signed
        ? 'the block header puts the entry elsewhere'
        : 'the signature of the block header is wrong',
    })
  })
}
