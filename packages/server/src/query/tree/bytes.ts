/** The most bytes of a value: those of fields, by record and path, and all others. */
export type Bytes = {
  readonly fixed: number
  readonly fields: ReadonlyMap<number | string, ReadonlyMap<string, number>>
}

const noFields: Bytes['fields'] = new Map()

export function makeBytes(fixed: number): Bytes {
  return { fixed, fields: noFields }
}

/** A part of a record, or of a JSON value that a row has, which as a whole has at most so many bytes. */
export type Member = {
  readonly record: number | string
  readonly path: readonly string[]
  readonly most: number
}

export function makeFieldBytes({ record, path, most }: Member): Bytes {
  return { fixed: 0, fields: new Map([[record, new Map([[path.join(pathSign), most]])]]) }
}

/** No name has it. */
const pathSign = '\0'

/** Returns the most bytes in all: the fields of one record are together no longer than one of them can be. */
export function countBytes({ fixed, fields }: Bytes): number {
  return [...fields.values()].reduce((sum, names) => sum + countFieldBytes(names), fixed)
}

/** A byte of a record counts in the field that it is in, and in each that this field is a part of. */
function countFieldBytes(names: ReadonlyMap<string, number>): number {
  let most = 0
  for (const name of names.keys()) {
    let sum = 0
    for (let end = 0; end !== -1; ) {
      end = name.indexOf(pathSign, end + 1)
      sum += names.get(end === -1 ? name : name.slice(0, end)) ?? 0
    }
    most = Math.max(most, sum)
  }
  return most
}

export function sumBytes(parts: readonly Bytes[]): Bytes {
  const fields = new Map<number | string, Map<string, number>>()
  let fixed = 0
  for (const part of parts) {
    fixed += part.fixed
    for (const [relation, names] of part.fields) {
      const sums = fields.get(relation) ?? new Map<string, number>()
      for (const [name, size] of names) sums.set(name, (sums.get(name) ?? 0) + size)
      fields.set(relation, sums)
    }
  }
  return { fixed, fields }
}

/** Returns the bytes of a value that is so many times as long. Nothing times what is not known is nothing. */
export function expandBytes(bytes: Bytes, times: number): Bytes {
  const expand = (size: number) => (size === 0 || times === 0 ? 0 : size * times)
  return mapBytes(bytes, { size: expand, relation: (relation) => relation })
}

/** Returns the same bytes as those of another row: its fields are none of the records that the others are of. */
export function renameFields(bytes: Bytes, row: number): Bytes {
  return mapBytes(bytes, { size: (size) => size, relation: (relation) => `${row}/${relation}` })
}

type Mapping = {
  readonly size: (size: number) => number
  readonly relation: (relation: number | string) => number | string
}

function mapBytes({ fixed, fields }: Bytes, map: Mapping): Bytes {
  const mapped = [...fields].map(
    ([relation, names]) =>
      [
        map.relation(relation),
        new Map([...names].map(([name, size]) => [name, map.size(size)])),
      ] as const,
  )
  return { fixed: map.size(fixed), fields: new Map(mapped) }
}

/** Returns the bytes of a value that is no longer than that. */
export function limitBytes(bytes: Bytes, most: number): Bytes {
  return countBytes(bytes) <= most ? bytes : makeBytes(most)
}

/**
 * Returns the bytes of a value that is one of several. The fields of one of them that counts all of the others' stay
 * apart, unless what is fixed of another one would then count beside them in earnest.
 */
export function takeLargest(all: readonly Bytes[]): Bytes {
  const most = Math.max(0, ...all.map(countBytes))
  const widest = all.find((one) => all.every((other) => hasAll(one, other)))
  const fixed = Math.max(0, ...all.map((each) => each.fixed))
  const joined = { fixed, fields: widest?.fields ?? noFields }
  return widest !== undefined && countBytes(joined) <= most * 1.25 ? joined : makeBytes(most)
}

/** Returns true if no field of the other counts more bytes there than here. */
function hasAll({ fields }: Bytes, other: Bytes): boolean {
  return [...other.fields].every(([relation, names]) =>
    [...names].every(([name, size]) => (fields.get(relation)?.get(name) ?? 0) >= size),
  )
}

/** A way in which the characters of a text are counted. */
export type Measure = {
  /** The most bytes of a character. */
  readonly bytesPerChar: number
  readonly print: (text: string) => string
}

/** In UTF-8. */
export const asText: Measure = { bytesPerChar: 4, print: (text) => text }

/** Inside of a JSON string: a control character takes six bytes, a quotation mark or a backslash two. */
export const asJson: Measure = {
  bytesPerChar: 6,
  print: (text) => JSON.stringify(text).slice(1, -1),
}

/**
 * Returns the bytes of a text in whichever case it is longest, so that `upper` and `lower` change nothing: some letters
 * of two bytes are of three in the other case, and none grows otherwise.
 */
export function countTextBytes(text: string, { print }: Measure): number {
  const printed = print(text)
  const grown = printed.match(/[\u0080-\u07ff]/g)?.length ?? 0
  return Buffer.byteLength(printed) + grown
}

/** Returns the most bytes of one of the text's characters. */
export function countLargestChar(text: string, measure: Measure): number {
  return Math.max(0, ...[...text].map((char) => countTextBytes(char, measure)))
}
