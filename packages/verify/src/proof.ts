import { blockHash, parseBlockHeader, verifyBlockSignature } from './block.ts'
import { fromBase64, hex } from './bytes.ts'
import { attempt, type Check, check, checkKey } from './check.ts'
import { verifyCheckpoint } from './checkpoint.ts'
import { decodeEntry } from './entry.ts'
import { countField, type Fields, fieldOf, objectField, textField } from './fields.ts'
import { checkCheckpoint, checkInclusion, type Inclusion, readInclusion } from './inclusion.ts'

export const recordProofType = 'tollbase/record-proof@v1'

/** That one entry is in an application's log, to be checked by anyone, offline. */
export type RecordProof = {
  readonly type: typeof recordProofType
  readonly app: string
  readonly height: number
  /** Place within the block, from 0. */
  readonly sequence: number
  readonly leaf_index: number
  /** The leaf's bytes (see entry.ts) in base64. */
  readonly entry: string
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
  const block = fieldOf(fields, 'block') === undefined ? undefined : objectField(fields, 'block')
  return {
    type: recordProofType,
    app: textField(fields, 'app'),
    height: countField(fields, 'height'),
    sequence: countField(fields, 'sequence'),
    leaf_index: countField(fields, 'leaf_index'),
    entry: textField(fields, 'entry'),
    inclusion: readInclusion(objectField(fields, 'inclusion')),
    checkpoint: textField(fields, 'checkpoint'),
    ...(block === undefined
      ? {}
      : {
          block: { header: textField(block, 'header'), signature: textField(block, 'signature') },
        }),
    key: textField(fields, 'key'),
  }
}

/** The proof holds where every check is ok. Throws a FormatError where a key cannot be read. */
export function verifyRecordProof(proof: RecordProof, options: ProofOptions = {}): Check[] {
  const { check: keyCheck, vkey, key } = checkKey(proof.key, options.trustedKey)
  const verdict = verifyCheckpoint(proof.checkpoint, vkey)
  const checkpoint = verdict.ok ? verdict.checkpoint : undefined
  const { leaf_index: leafIndex, entry, inclusion } = proof
  return [
    keyCheck,
    checkCheckpoint(verdict),
    check('application', checkpoint?.origin.endsWith(`/${proof.app}`) === true, {
      good: `the checkpoint is that of ${proof.app}`,
      bad: `the checkpoint is not that of ${proof.app}`,
    }),
    checkInclusion({ leafIndex, entry, inclusion }, checkpoint),
    attempt('entry', () => {
      const { header } = decodeEntry(fromBase64(entry))
      return { name: 'entry', ok: true, detail: `the entry is a ${header.type}` }
    }),
    ...(proof.block === undefined ? [] : [checkBlock(proof, proof.block, key.publicKey)]),
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
