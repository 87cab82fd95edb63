import { areBytesEqual, decodeBase64, FormatError } from '../bytes.ts'
import {
  type Fields,
  findField,
  isCount,
  isFields,
  parseCount,
  requireObject,
  requireText,
  requireTexts,
} from '../fields.ts'
import { hashLeaf, verifyInclusion } from '../tree.ts'
import { computeRoot, computeSubtreeWidth } from './commitment.ts'
import { compareNamespaces, namespaceBytes } from './namespace.ts'
import { getNamespaceMax, getNamespaceMin, hashNodes, requireNode } from './namespaced-tree.ts'

/** The proof that a node gives for a blob (`blob.GetCommitmentProof`), in the node's own JSON. */
export type CommitmentProof = {
  /** Base64. */
  readonly subtree_roots: readonly string[]
  /** For each row that has shares of the blob: the range of its leaves, and the nodes beside it. */
  readonly subtree_root_proofs: readonly SubtreeRootProof[]
  /** Base64 of 28 bytes. */
  readonly namespace_id: string
  readonly row_proof: RowProof
  readonly namespace_version: number
}

type SubtreeRootProof = {
  /** Absent where 0, like all numbers here that a node leaves out. */
  readonly start?: number
  readonly end: number
  /** Base64; absent where there are none. */
  readonly nodes?: readonly string[]
  readonly is_max_namespace_ignored: true
}

type RowProof = {
  /** Base64. */
  readonly row_roots: readonly string[]
  readonly proofs: readonly RowRootProof[]
  readonly start_row?: number
  readonly end_row?: number
}

/** Leads from a row's root to the data root; total and index are decimal digits. */
type RowRootProof = {
  readonly total: string
  readonly index?: string
  readonly leaf_hash: string
  readonly aunts: readonly string[]
}

export type CommitmentClaim = {
  readonly namespace: Uint8Array
  readonly commitment: Uint8Array
  /** The number of the blob's shares. */
  readonly shares: number
  /** The root of the block's data, `data_hash` of its header. */
  readonly dataRoot: Uint8Array
}

/** Rows of the largest square, before it is extended to twice as many. */
const squareWidthMax = 512
/** Row roots and column roots are the leaves below a data root: four for each row of the square. */
const rootsForRow = 4
const subtreeRootsMax = 256
/** Nodes beside a range in the tree of the longest row. */
const nodesMax = 20
/** Roots beside one row's root. */
const auntsMax = 11

/** Parses a proof; throws a FormatError that names the member. Members that are not known here are dropped. */
export function parseCommitmentProof(fields: Fields): CommitmentProof {
  const rows = requireObject(fields, 'row_proof')
  return {
    subtree_roots: requireTextsUpTo(fields, 'subtree_roots', subtreeRootsMax),
    subtree_root_proofs: requireObjects(fields, 'subtree_root_proofs').map(parseSubtreeRootProof),
    namespace_id: requireText(fields, 'namespace_id'),
    row_proof: {
      row_roots: requireTextsUpTo(rows, 'row_roots', squareWidthMax),
      proofs: requireObjects(rows, 'proofs').map(parseRowRootProof),
      ...takeCount(rows, 'start_row'),
      ...takeCount(rows, 'end_row'),
    },
    namespace_version: requireSmallCount(fields, 'namespace_version'),
  }
}

function parseSubtreeRootProof(fields: Fields): SubtreeRootProof {
  if (findField(fields, 'is_max_namespace_ignored') !== true)
    throw new FormatError('"is_max_namespace_ignored" must be true')
  if (findField(fields, 'leaf_hash') !== undefined)
    throw new FormatError('a proof of presence has no "leaf_hash"')
  return {
    ...takeCount(fields, 'start'),
    end: requireSmallCount(fields, 'end'),
    ...(findField(fields, 'nodes') !== undefined && {
      nodes: requireTextsUpTo(fields, 'nodes', nodesMax),
    }),
    is_max_namespace_ignored: true,
  }
}

function parseRowRootProof(fields: Fields): RowRootProof {
  return {
    total: requireText(fields, 'total'),
    ...(findField(fields, 'index') !== undefined && { index: requireText(fields, 'index') }),
    leaf_hash: requireText(fields, 'leaf_hash'),
    aunts: requireTextsUpTo(fields, 'aunts', auntsMax),
  }
}

/**
 * Verifies that a block whose data has this root holds the blob with this commitment: its subtree roots are nodes of
 * rows that follow each other without a gap, and these rows are rows of the block's square. Throws a FormatError that
 * says what is wrong.
 */
export function verifyCommitmentProof(proof: CommitmentProof, claim: CommitmentClaim): void {
  const { namespace, commitment, shares } = claim
  const roots = proof.subtree_roots.map((root) => requireNode(decodeBase64(root)))
  const isOwn = (node: Uint8Array) =>
    compareNamespaces(getNamespaceMin(node), namespace) === 0 &&
    compareNamespaces(getNamespaceMax(node), namespace) === 0
  const isNamespace =
    proof.namespace_version === namespace[0] &&
    areBytesEqual(decodeBase64(proof.namespace_id), namespace.subarray(1)) &&
    namespace.length === namespaceBytes
  if (!isNamespace || !roots.every(isOwn))
    throw new FormatError('the proof is for another namespace')
  if (!areBytesEqual(computeRoot(roots), commitment))
    throw new FormatError('the proof is for another commitment')
  const { squareWidth, rowRoots } = verifyRows(proof.row_proof, claim.dataRoot)
  const ranges = parseRanges(proof.subtree_root_proofs, squareWidth)
  if (ranges.length !== rowRoots.length)
    throw new FormatError('each row of the proof has a range of shares')
  if (ranges.reduce((sum, { start, end }) => sum + end - start, 0) !== shares)
    throw new FormatError('the proof is for another number of shares')
  const width = computeSubtreeWidth(shares)
  let used = 0
  ranges.forEach((range, at) => {
    const sizes = splitAligned(range, width)
    const own = roots.slice(used, used + sizes.length)
    used += sizes.length
    if (own.length !== sizes.length) throw new FormatError('the proof has too few subtree roots')
    const root = computeRowRoot({ ...range, squareWidth, sizes, roots: own })
    if (!areBytesEqual(root, rowRoots[at] ?? new Uint8Array(0)))
      throw new FormatError('the subtree roots are not those of the row')
  })
  if (used !== roots.length) throw new FormatError('the proof has too many subtree roots')
}

/** Verifies the rows against the data root; returns the width of the square, and the root of each row. */
function verifyRows(
  { row_roots, proofs, start_row: first = 0, end_row: last = 0 }: RowProof,
  dataRoot: Uint8Array,
): { readonly squareWidth: number; readonly rowRoots: readonly Uint8Array[] } {
  const size = parseCount(proofs[0]?.total ?? '', 'total of a row proof')
  const squareWidth = size / rootsForRow
  const isSquare = Number.isInteger(Math.log2(squareWidth)) && squareWidth <= squareWidthMax
  if (squareWidth < 1 || !isSquare) throw new FormatError('the data root is of no square')
  // A row after the square's own ones is parity, and what follows the rows are columns.
  if (last < first || last >= squareWidth || last - first + 1 !== row_roots.length)
    throw new FormatError('the rows of the proof are not rows of the square')
  if (proofs.length !== row_roots.length)
    throw new FormatError('each row of the proof has a proof of its root')
  const rowRoots = row_roots.map((root, at) => {
    const bytes = requireNode(decodeBase64(root))
    const { total, index = '0', leaf_hash, aunts } = proofs[at] ?? requireRow()
    const leaf = hashLeaf(bytes)
    const isIncluded =
      parseCount(total, 'total of a row proof') === size &&
      parseCount(index, 'index of a row proof') === first + at &&
      areBytesEqual(decodeBase64(leaf_hash), leaf) &&
      verifyInclusion({
        index: first + at,
        ...{ size, leaf, root: dataRoot },
        proof: aunts.map(decodeBase64),
      })
    if (!isIncluded) throw new FormatError(`row ${first + at} is not below the data root`)
    return bytes
  })
  return { squareWidth, rowRoots }
}

type Range = { readonly start: number; readonly end: number; readonly nodes: readonly Uint8Array[] }

/** Parses the range of shares in each row: without a gap from one row to the next, and all in the square's own half. */
function parseRanges(proofs: readonly SubtreeRootProof[], squareWidth: number): Range[] {
  return proofs.map(({ start = 0, end, nodes = [] }, at) => {
    const isWhole = (at === 0 || start === 0) && (at === proofs.length - 1 || end === squareWidth)
    if (start >= end || end > squareWidth || !isWhole)
      throw new FormatError('the shares of the proof do not follow each other')
    return { start, end, nodes: nodes.map((node) => requireNode(decodeBase64(node))) }
  })
}

/** Splits a row's range into those below each subtree root, which must be nodes of the row's tree. */
function splitAligned({ start, end }: Range, width: number): number[] {
  const sizes: number[] = []
  for (let at = start; at < end; at += sizes.at(-1) ?? end) {
    let size = width
    while (size > end - at) size /= 2
    if (at % size !== 0) throw new FormatError('the blob does not begin where blobs of its size do')
    sizes.push(size)
  }
  return sizes
}

type Row = Range & {
  readonly squareWidth: number
  readonly sizes: readonly number[]
  readonly roots: readonly Uint8Array[]
}

/**
 * Computes the root of a row of the extended square, of which all but the range is in the proof's nodes, from left to
 * right.
 */
function computeRowRoot({ start, end, nodes, squareWidth, sizes, roots }: Row): Uint8Array {
  const [beside, own, rest] = [[...nodes], [...roots], [...sizes]]
  const take = (from: Uint8Array[]) => {
    const node = from.shift()
    if (node === undefined) throw new FormatError('the proof has too few nodes')
    return node
  }
  const compute = (from: number, size: number): Uint8Array => {
    if (from + size <= start || from >= end) return take(beside)
    // The range is cut along the nodes of the tree, so the next piece begins here.
    if (from >= start && size === rest[0]) {
      rest.shift()
      return take(own)
    }
    if (size === 1) throw new FormatError('the range of the proof is not one of nodes')
    return hashNodes(compute(from, size / 2), compute(from + size / 2, size / 2))
  }
  const root = compute(0, 2 * squareWidth)
  if (beside.length > 0) throw new FormatError('the proof has too many nodes')
  return root
}

function requireRow(): never {
  throw new FormatError('each row of the proof has a proof of its root')
}

function requireTextsUpTo(fields: Fields, name: string, max: number): readonly string[] {
  const texts = requireTexts(fields, name)
  if (texts.length > max) throw new FormatError(`"${name}" has more than ${max} items`)
  return texts
}

function requireObjects(fields: Fields, name: string): readonly Fields[] {
  const value = findField(fields, name)
  if (!Array.isArray(value) || !value.every(isFields))
    throw new FormatError(`"${name}" must be a list of objects`)
  if (value.length > squareWidthMax)
    throw new FormatError(`"${name}" has more than ${squareWidthMax} items`)
  return value
}

function requireSmallCount(fields: Fields, name: string): number {
  const value = findField(fields, name)
  if (!isCount(value) || value > 0xffff) throw new FormatError(`"${name}" must be a small number`)
  return value
}

function takeCount<T extends string>(fields: Fields, name: T): { readonly [_ in T]?: number } {
  const value = findField(fields, name)
  if (value === undefined) return {}
  const taken: { [_ in T]?: number } = {}
  Object.assign(taken, { [name]: requireSmallCount(fields, name) })
  return taken
}
