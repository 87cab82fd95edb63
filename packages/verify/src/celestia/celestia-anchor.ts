import { areBytesEqual, decodeBase64, encodeBase64, encodeUtf8, FormatError } from '../bytes.ts'
import { attempt, type Check, makeCheck, type Unchecked } from '../check.ts'
import { type Checkpoint, formatVerifierKey, verifyCheckpoint } from '../checkpoint.ts'
import { type Fields, requireObject, requireText, requireTextOrNull } from '../fields.ts'
import { computeCommitment } from './commitment.ts'
import {
  type CommitmentProof,
  parseCommitmentProof,
  verifyCommitmentProof,
} from './commitment-proof.ts'
import {
  type CelestiaHeader,
  formatBlockHash,
  getDataRoot,
  hashHeader,
  parseHeader,
  parseHeaderTime,
} from './header.ts'
import { deriveNamespace } from './namespace.ts'
import { countShares } from './shares.ts'

/** The members of an anchor proof that are those of Celestia. */
export type CelestiaAnchorParts = {
  /** CAIP-2: `cosmos:` and the id of the chain. */
  readonly network: string
  /** Base64, as nodes take them. */
  readonly namespace: string
  readonly commitment: string
  /** The hash of the transaction; null where the node did not tell it. */
  readonly transaction: string | null
  /** The content of the blob: the signed note of the checkpoint that is anchored. */
  readonly note: string
  /** The header of the block, and the proof that its data has the blob, as nodes give them. */
  readonly header: CelestiaHeader
  readonly proof: CommitmentProof
}

/** The block that a proof names. */
type NamedBlock = {
  readonly block_number: number
  readonly block_hash: string
  readonly time: string
}

const networkPrefix = 'cosmos:'
/** The application whose namespace has the anchors. */
export const anchorsApp = 'system'
/** The name of the check that needs a hash from outside. */
export const headerCheckName = 'anchor on its chain'
const noteCharsMax = 4_096

/** Returns true for the CAIP-2 id of a network of Celestia. */
export function isCelestiaNetwork(network: string): boolean {
  return network.startsWith(networkPrefix)
}

/** Formats the CAIP-2 id of the chain with this id. */
export function formatNetwork(chainId: string): string {
  return `${networkPrefix}${chainId}`
}

/** Returns the id of the chain, as its headers have it. */
export function getChainId(network: string): string {
  return network.slice(networkPrefix.length)
}

/** Parses these members; throws a FormatError that names the member. */
export function parseCelestiaAnchor(fields: Fields): CelestiaAnchorParts {
  const note = requireText(fields, 'note')
  if (note.length > noteCharsMax) throw new FormatError('"note" is too long')
  return {
    network: requireText(fields, 'network'),
    namespace: requireText(fields, 'namespace'),
    commitment: requireText(fields, 'commitment'),
    transaction: requireTextOrNull(fields, 'transaction'),
    note,
    header: parseHeader(requireObject(fields, 'header')),
    proof: parseCommitmentProof(requireObject(fields, 'proof')),
  }
}

/**
 * Checks that the block's data has a blob with the note of the tree, and that the header is that of the named block.
 * Anybody can make a header: only a hash from a place that is trusted tells that validators signed it.
 */
export function checkCelestiaAnchor(
  anchor: CelestiaAnchorParts & NamedBlock,
  {
    system,
    publicKey,
    trustedHeaderHash,
  }: {
    readonly system: Checkpoint | undefined
    readonly publicKey: Uint8Array
    readonly trustedHeaderHash: string | undefined
  },
): readonly Check[] {
  return [
    attempt('anchor', () => checkBlob(anchor, { system, publicKey })),
    attempt('anchor header', () => checkHeader(anchor)),
    ...(trustedHeaderHash === undefined
      ? []
      : [
          makeCheck(headerCheckName, trustedHeaderHash.toUpperCase() === anchor.block_hash, {
            good: `block ${anchor.block_number} of ${anchor.network} has the hash that is trusted`,
            bad: `the hash that is trusted is not that of block ${anchor.block_number}, ${anchor.block_hash}`,
          }),
        ]),
  ]
}

/** Tells that nobody has checked who made the header. */
export function describeUncheckedHeader({
  network,
  block_number,
  block_hash,
}: CelestiaAnchorParts & NamedBlock): Unchecked {
  return {
    name: 'anchor',
    detail: `whether the validators of ${network} signed block ${block_number} with the hash ${block_hash} was not checked: give the hash from a place you trust (--header-hash), or ask a node (--rpc)`,
  }
}

function checkBlob(
  anchor: CelestiaAnchorParts,
  {
    system,
    publicKey,
  }: { readonly system: Checkpoint | undefined; readonly publicKey: Uint8Array },
): Check {
  const { note } = anchor
  const [namespace, data] = [deriveNamespace(anchorsApp), encodeUtf8(note)]
  if (system === undefined || anchor.namespace !== encodeBase64(namespace))
    throw new FormatError('the blob is in another namespace than that of anchors')
  const signed = verifyCheckpoint(note, formatVerifierKey(system.origin, publicKey))
  if (!signed.ok) throw new FormatError(signed.problem)
  const { origin, size, root } = signed.checkpoint
  const isOf = origin === system.origin && size === system.size && areBytesEqual(root, system.root)
  if (!isOf) throw new FormatError('the blob anchors another tree')
  const commitment = computeCommitment(namespace, data)
  if (!areBytesEqual(commitment, decodeBase64(anchor.commitment)))
    throw new FormatError('the commitment is not that of the blob')
  const dataRoot = getDataRoot(anchor.header)
  verifyCommitmentProof(anchor.proof, {
    ...{ namespace, commitment, dataRoot },
    shares: countShares(data.length),
  })
  const detail = `the blob ${anchor.commitment}, which anchors this tree, is below the data root ${anchor.header.data_hash}`
  return { name: 'anchor', ok: true, detail }
}

function checkHeader({
  header,
  network,
  block_number,
  block_hash,
  time,
}: CelestiaAnchorParts & NamedBlock): Check {
  const found = [
    header.chain_id,
    header.height,
    formatBlockHash(hashHeader(header)),
    parseHeaderTime(header),
  ]
  const told = [getChainId(network), String(block_number), block_hash, time]
  return makeCheck('anchor header', found.join(' ') === told.join(' '), {
    good: `block ${header.height} of ${header.chain_id} with this data root has the hash ${block_hash}`,
    bad: `the header is that of ${found.join(' ')}, not of ${told.join(' ')}`,
  })
}
