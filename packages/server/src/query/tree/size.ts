import {
  asJson,
  type Bytes,
  countBytes,
  expandBytes,
  joinSide,
  makeBytes,
  renameFields,
  sumBytes,
  takeLargest,
} from './bytes.ts'

/** The most bytes of a value in each way in which it may go into another one. */
export type Size = {
  /** The value as a text: of a JSON string its characters, of other JSON values what PostgreSQL prints. */
  readonly text: Bytes
  /** That text inside of a JSON string, without the quotation marks. */
  readonly escaped: Bytes
  /** The value as JSON: a text in its quotation marks, a JSON value as PostgreSQL prints it. */
  readonly json: Bytes
}

/** The size of a value that has neither marks nor control characters, such as a number. */
export function makePlainSize(most: number): Size {
  const bytes = makeBytes(most)
  return { text: bytes, escaped: bytes, json: bytes }
}

/** Each character of a text takes at most six bytes in a JSON string. */
export function makeTextSize(text: Bytes, escaped: Bytes): Size {
  const most = expandBytes(text, asJson.bytesPerChar)
  const least = countBytes(escaped) <= countBytes(most) ? escaped : most
  return { text, escaped: least, json: sumBytes([least, makeBytes(2)]) }
}

/** JSON that is printed has no control characters; marks and backslashes are doubled where it is quoted again. */
export function makeJsonSize(json: Bytes): Size {
  return { text: json, escaped: expandBytes(json, 2), json }
}

/** The size of a value that is one of several. */
export function mergeSizes(sizes: readonly Size[]): Size {
  return {
    text: takeLargest(sizes.map(({ text }) => text)),
    escaped: takeLargest(sizes.map(({ escaped }) => escaped)),
    json: takeLargest(sizes.map(({ json }) => json)),
  }
}

/** The size of a column where a table is read once more: its rows there are others. */
export function renameSize(size: Size, relation: number): Size {
  return mapSize(size, (bytes) => renameFields(bytes, relation))
}

/** The size of a value of some row, whose fields are of other records than those around. */
export function wrapSize(size: Size): Size {
  return mapSize(size, (bytes) => makeBytes(countBytes(bytes)))
}

/** The sizes of the columns of a UNION, by those of its sides. */
export function joinSides(sides: readonly (readonly Size[])[], relation: number): readonly Size[] {
  const joined = sides.map((sizes, at) => {
    const all = sizes.flatMap(({ text, escaped, json }) => [text, escaped, json])
    const records = [...new Set(all.flatMap(({ fields }) => [...fields.keys()]))]
    const side = { records, name: String(at) }
    return sizes.map((size) => mapSize(size, (bytes) => joinSide(bytes, side)))
  })
  const [first = []] = joined
  return first.map((_, at) =>
    renameSize(mergeSizes(joined.flatMap((side) => side[at] ?? [])), relation),
  )
}

function mapSize({ text, escaped, json }: Size, map: (bytes: Bytes) => Bytes): Size {
  return { text: map(text), escaped: map(escaped), json: map(json) }
}
