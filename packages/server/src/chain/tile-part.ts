import { hashBytes, hashNode, type Tile, tileWidth } from './merkle.ts'

/** The rows of a crown begin here: below are groups of 2^3 hashes, which are read and joined when they are needed. */
const crownRow = 3
const crownRows = 8
/** Hashes of a group. */
export const groupWidth = 2 ** crownRow

/** Gives the nodes of a tile: the whole tile does, and so do its crown and one group. */
export type TileNodes = Pick<Tile, 'get'>

/** Copies the upper nodes of a full tile: those of rows 3 to 7, less than 2 KiB of its 16. */
export function makeCrown(tile: Tile): Buffer {
  const nodes: Buffer[] = []
  for (let row = crownRow; row < crownRows; row++)
    for (let place = 0; place < tileWidth >> row; place++) nodes.push(tile.get(row, place))
  return Buffer.concat(nodes)
}

/** The group whose hashes are needed for a node; undefined where the crown has the node. */
export function findGroup(row: number, place: number): number | undefined {
  return row >= crownRow ? undefined : place >> (crownRow - row)
}

/** Joins a crown and the hashes of group number `at`, if one is needed at all. */
export function joinParts(
  crown: Buffer,
  group: { readonly at: number; readonly hashes: Buffer } | undefined,
): TileNodes {
  const slice = (from: Buffer, index: number) =>
    from.subarray(index * hashBytes, (index + 1) * hashBytes)
  const get = (row: number, place: number): Buffer => {
    if (row >= crownRow) return slice(crown, countAbove(row) + place)
    if (row === 0 && group !== undefined) return slice(group.hashes, place - group.at * groupWidth)
    return hashNode(get(row - 1, 2 * place), get(row - 1, 2 * place + 1))
  }
  return { get }
}

/** The nodes of the crown in the rows below this one. */
function countAbove(row: number): number {
  const width = tileWidth >> crownRow
  return 2 * width - ((2 * width) >> (row - crownRow))
}
