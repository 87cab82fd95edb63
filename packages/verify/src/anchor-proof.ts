import {
  type ProofBlock,
  parseBlockHeader,
  parseProofBlock,
  verifyBlockSignature,
} from './block.ts'
import { decodeBase64, FormatError } from './bytes.ts'
import {
  type CelestiaAnchorParts,
  checkCelestiaAnchor,
  describeUncheckedHeader,
  headerCheckName,
  isCelestiaNetwork,
  parseCelestiaAnchor,
} from './celestia/celestia-anchor.ts'
import { attempt, type Check, type Unchecked } from './check.ts'
import type { Checkpoint, VerifierKey } from './checkpoint.ts'
import { decodeShownEntry } from './entry.ts'
import { checkTransaction, type EvmAnchorParts, parseEvmAnchor } from './evm-anchor.ts'
import {
  type Fields,
  findField,
  isFields,
  parseJson,
  requireCount,
  requireObject,
  requireText,
} from './fields.ts'
import { checkInclusion, type Inclusion, parseInclusion } from './inclusion.ts'
import { hashLeaf } from './tree.ts'

/** The entry of the service's own log that tells how far an application's log was. */
export type ProvenHead = {
  readonly leaf_index: number
  /** The leaf's bytes in base64; the body is {app, height, size, root}. */
  readonly entry: string
  /** Leads from this entry to the root that is anchored. */
  readonly inclusion: Inclusion
}

type Proven = {
  /** Leads from the entry to the root that is anchored or, where there is a head, to the root that the head tells. */
  readonly inclusion: Inclusion
  /** Absent where the entry is one of the service's own log. */
  readonly head?: ProvenHead
  /** The block of the service's own log at whose end its tree was anchored. */
  readonly block: ProofBlock
  /** The block of the other chain that the service saw it in. */
  readonly block_number: number
  readonly block_hash: string
  readonly time: string
}

export type EvmAnchorProof = Proven & EvmAnchorParts
export type CelestiaAnchorProof = Proven & CelestiaAnchorParts

/** The proof that an entry was in the log when a block of another chain was made. */
export type AnchorProof = EvmAnchorProof | CelestiaAnchorProof

export type AnchorOptions = {
  /** Hash of the block of Celestia that has the anchor, from a place that the caller trusts. */
  readonly trustedHeaderHash?: string | undefined
}

/** The entry that is proven. */
export type AnchoredEntry = {
  readonly app: string
  readonly leafIndex: number
  readonly leaf: () => Uint8Array
  /** Key of the application's log. */
  readonly key: VerifierKey
}

/** Parses an anchor proof; throws a FormatError that names the member. */
export function parseAnchorProof(fields: Fields): AnchorProof {
  const head = findField(fields, 'head') === undefined ? undefined : requireObject(fields, 'head')
  return {
    inclusion: parseInclusion(requireObject(fields, 'inclusion')),
    ...(head && {
      head: {
        leaf_index: requireCount(head, 'leaf_index'),
        entry: requireText(head, 'entry'),
        inclusion: parseInclusion(requireObject(head, 'inclusion')),
      },
    }),
    block: parseProofBlock(requireObject(fields, 'block')),
    block_number: requireCount(fields, 'block_number'),
    block_hash: requireText(fields, 'block_hash'),
    time: requireText(fields, 'time'),
    ...(isCelestiaNetwork(requireText(fields, 'network'))
      ? parseCelestiaAnchor(fields)
      : parseEvmAnchor(fields)),
  }
}

/** Returns true for an anchor on Celestia. */
export function isCelestiaProof(proof: AnchorProof): proof is CelestiaAnchorProof {
  return isCelestiaNetwork(proof.network)
}

/** Finds the anchor proof of a document; undefined where it has none. */
export function findAnchorProof(document: unknown): AnchorProof | undefined {
  const anchor = isFields(document) ? findField(document, 'anchor') : undefined
  if (anchor === undefined) return undefined
  if (!isFields(anchor)) throw new FormatError('"anchor" must be an object')
  return parseAnchorProof(anchor)
}

/** Checks each step from the entry to the transaction, or the block of Celestia, that anchors it. */
export function checkAnchor(
  proof: AnchorProof,
  entry: AnchoredEntry,
  { trustedHeaderHash }: AnchorOptions = {},
): readonly Check[] {
  const { head } = proof
  let system: Checkpoint | undefined
  const block = attempt('anchored block', () => {
    system = parseSystemTree(proof.block, entry)
    return {
      name: 'anchored block',
      ok: true,
      detail: `signed for ${system.size} entries of ${system.origin}`,
    }
  })
  return [
    block,
    ...(head === undefined ? [] : [checkHead(head, system)]),
    attempt('anchored entry', () => {
      const tree = head === undefined ? system : parseHead(head, entry.app)
      const { name: _, ...check } = checkInclusion({ ...entry, inclusion: proof.inclusion }, tree)
      return { name: 'anchored entry', ...check }
    }),
    ...(isCelestiaProof(proof)
      ? checkCelestiaAnchor(proof, { system, publicKey: entry.key.publicKey, trustedHeaderHash })
      : [attempt('anchor', () => checkTransaction(proof, system))]),
  ]
}

/** Checks that the hash of a header was given for a document that has one. */
export function checkHeaderHash(
  proof: AnchorProof | undefined,
  { trustedHeaderHash }: AnchorOptions,
): readonly Check[] {
  if (trustedHeaderHash === undefined || (proof !== undefined && isCelestiaProof(proof))) return []
  const detail = 'the document has no anchor on Celestia, so it has no header to compare'
  return [{ name: headerCheckName, ok: false, detail }]
}

/** Tells what only a node of the other chain knows, and nobody has asked. */
export function listUncheckedAnchor(
  proof: AnchorProof | undefined,
  { trustedHeaderHash }: AnchorOptions = {},
): readonly Unchecked[] {
  if (proof === undefined) return []
  if (isCelestiaProof(proof))
    return trustedHeaderHash === undefined ? [describeUncheckedHeader(proof)] : []
  const { transaction, network, block_number } = proof
  return [
    {
      name: 'anchor',
      detail: `whether ${network} has the transaction ${transaction} in block ${block_number} was not checked: ask a node of it (--rpc)`,
    },
  ]
}

/**
 * Parses the tree of the service's own log from its block; throws a FormatError. All logs of a service are signed
 * with one key, each under its own name.
 */
function parseSystemTree(block: ProofBlock, { app, key }: AnchoredEntry): Checkpoint {
  const { origin, treeSize: size, root } = parseBlockHeader(block.header)
  const suffix = `/${app}`
  const service = key.name.endsWith(suffix) ? key.name.slice(0, -suffix.length) : undefined
  if (origin !== `${service}/system`)
    throw new FormatError("the block is not one of the service's own log")
  if (!verifyBlockSignature(block.header, decodeBase64(block.signature), key.publicKey))
    throw new FormatError('the signature of the block header is wrong')
  return { origin, size, root }
}

function checkHead(head: ProvenHead, system: Checkpoint | undefined): Check {
  const { leaf_index: leafIndex, entry, inclusion } = head
  const parts = { leafIndex, leaf: () => hashLeaf(decodeBase64(entry)), inclusion }
  const { ok, detail } = checkInclusion(parts, system)
  return { name: 'anchored head', ok, detail }
}

/** Parses the tree that a head tells of; throws a FormatError where it is of another application. */
function parseHead({ entry }: ProvenHead, app: string): { size: number; root: Uint8Array } {
  const { header, body } = decodeShownEntry(decodeBase64(entry))
  const told = parseJson(body, "the head's body")
  if (header.type !== 'head' || !isFields(told)) throw new FormatError('the entry is not a head')
  if (findField(told, 'app') !== app) throw new FormatError(`the head is not that of ${app}`)
  return { size: requireCount(told, 'size'), root: decodeBase64(requireText(told, 'root')) }
}
