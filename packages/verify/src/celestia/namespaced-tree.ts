import { sha256 } from '@noble/hashes/sha2.js'
import { areBytesEqual, concat, FormatError } from '../bytes.ts'
import { compareNamespaces, namespaceBytes, parityNamespace } from './namespace.ts'

/*
 * The namespaced Merkle tree of a row of a Celestia block: each node is the smallest namespace below it, the largest
 * one, and SHA-256 (https://github.com/celestiaorg/nmt, docs/spec/nmt.md). A right child of parity does not raise the
 * largest namespace.
 */

/** Bytes of a node: smallest namespace, largest namespace, hash. */
export const nodeBytes: number = 2 * namespaceBytes + 32

const leafPrefix = Uint8Array.of(0)
const innerPrefix = Uint8Array.of(1)

/** Hashes a share into a leaf of the tree. */
export function hashShare(namespace: Uint8Array, share: Uint8Array): Uint8Array {
  return concat(namespace, namespace, sha256(concat(leafPrefix, namespace, share)))
}

/** Returns the smallest namespace below a node. */
export function getNamespaceMin(node: Uint8Array): Uint8Array {
  return node.subarray(0, namespaceBytes)
}

/** Returns the largest namespace below a node. */
export function getNamespaceMax(node: Uint8Array): Uint8Array {
  return node.subarray(namespaceBytes, 2 * namespaceBytes)
}

/** Requires the form of a node; throws a FormatError. */
export function requireNode(node: Uint8Array): Uint8Array {
  const isNode =
    node.length === nodeBytes &&
    compareNamespaces(getNamespaceMin(node), getNamespaceMax(node)) <= 0
  if (!isNode)
    throw new FormatError(`a node has ${nodeBytes} bytes, and two namespaces in their order`)
  return node
}

/**
 * Hashes two nodes of the form of `requireNode` into the one above; throws a FormatError where their namespaces
 * overlap.
 */
export function hashNodes(left: Uint8Array, right: Uint8Array): Uint8Array {
  if (compareNamespaces(getNamespaceMin(right), getNamespaceMax(left)) < 0)
    throw new FormatError('the namespaces of two nodes are not in their order')
  const isParity = areBytesEqual(getNamespaceMin(right), parityNamespace)
  const max = isParity ? getNamespaceMax(left) : getNamespaceMax(right)
  return concat(getNamespaceMin(left), max, sha256(concat(innerPrefix, left, right)))
}

/** Computes the root over leaves whose number is a power of two. */
export function computeSubtreeRoot(leaves: readonly Uint8Array[]): Uint8Array {
  let level = leaves
  while (level.length > 1) {
    const below = level
    level = Array.from({ length: below.length / 2 }, (_, at) => {
      const [left, right] = [below[2 * at], below[2 * at + 1]]
      if (left === undefined || right === undefined)
        throw new FormatError('the number of leaves is not a power of two')
      return hashNodes(left, right)
    })
  }
  const [root] = level
  if (root === undefined) throw new FormatError('a tree has leaves')
  return root
}
