import { countSteps } from '../steps.ts'

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
  let sum = fixed
  for (const names of fields.values()) sum += countFieldBytes(names)
  return sum
}

/** The bytes in all of the fields of a record, which are asked for wherever a value is read. */
const counted = new WeakMap<ReadonlyMap<string, number>, number>()

/** A byte of a record counts in the field that it is in, and in each that this field is a part of. */
function countFieldBytes(names: ReadonlyMap<string, number>): number {
  const known = counted.get(names)
  if (known !== undefined) return known
  countSteps(names.size)
  let most = 0
  for (const name of names.keys()) {
    let sum = 0
    for (let end = 0; end !== -1; ) {
      end = name.indexOf(pathSign, end + 1)
      sum += names.get(end === -1 ? name : name.slice(0, end)) ?? 0
    }
    most = Math.max(most, sum)
  }
  counted.set(names, most)
  return most
}

export function sumBytes(parts: readonly Bytes[]): Bytes {
  const fixed = parts.reduce((sum, part) => sum + part.fixed, 0)
  return joinBytes(parts, { fixed, join: (a, b) => a + b })
}

/** The most fields of a value that are told apart, so that no statement takes long to measure. */
const fieldsMax = 64

type Joining = {
  readonly fixed: number
  readonly join: (size: number, other: number) => number
}

function joinBytes(parts: readonly Bytes[], { fixed, join }: Joining): Bytes {
  const fields = new Map<number | string, Map<string, number>>()
  let count = 0
  for (const part of parts) {
    for (const [relation, names] of part.fields) {
      const joined = fields.get(relation) ?? new Map<string, number>()
      const before = joined.size
      countSteps(names.size)
      for (const [name, size] of names) joined.set(name, join(joined.get(name) ?? 0, size))
      fields.set(relation, joined)
      count += joined.size - before
    }
  }
  return count <= fieldsMax ? { fixed, fields } : makeBytes(countBytes({ fixed, fields }))
}

/** Returns the bytes of a value that is so many times as long. Nothing times what is not known is nothing. */
export function expandBytes({ fixed, fields }: Bytes, times: number): Bytes {
  const expand = (size: number) => (size === 0 ? 0 : size * times)
  if (times === 0) return makeBytes(0)
  const expanded = [...fields].map(([relation, names]) => {
    countSteps(names.size)
    return [relation, new Map([...names].map(([name, size]) => [name, expand(size)]))] as const
  })
  return { fixed: expand(fixed), fields: new Map(expanded) }
}

/** Returns the same bytes as those of another row: its fields are none of the records that the others are of. */
export function renameFields({ fixed, fields }: Bytes, row: number): Bytes {
  const renamed = [...fields].map(([relation, names]) => [`${row}/${relation}`, names] as const)
  return { fixed, fields: new Map(renamed) }
}

/** The records of one side of a UNION, in an order, and a name for the side. */
export type Side = { readonly records: readonly (number | string)[]; readonly name: string }

/**
 * Returns the same bytes as those of a row of the whole UNION, which is of one side alone: of each side the first
 * record is a part of one record, the second of another one, and so on.
 */
export function joinSide({ fixed, fields }: Bytes, { records, name }: Side): Bytes {
  const joined = [...fields].map(([record, names]) => {
    countSteps(names.size)
    const own = [...names].map(([path, size]) => [`${name}/${path}`, size] as const)
    return [`side ${records.indexOf(record)}`, new Map(own)] as const
  })
  return { fixed, fields: new Map(joined) }
}

/** Returns the bytes of a value that is no longer than that. */
export function limitBytes(bytes: Bytes, most: number): Bytes {
  return countBytes(bytes) <= most ? bytes : makeBytes(most)
}

/**
 * Returns the bytes of a value that is one of several. Their fields stay apart, unless they count more together than
 * the largest of the values: some may be of other records, or stand for what is fixed of another one.
 */
export function takeLargest(all: readonly Bytes[]): Bytes {
  const most = Math.max(0, ...all.map(countBytes))
  const fixed = Math.max(0, ...all.map((each) => each.fixed))
  const joined = joinBytes(all, { fixed, join: Math.max })
  return countBytes(joined) <= most * 1.25 ? joined : makeBytes(most)
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

/** Characters that are looked at in a step. */
const textCharsPerStep = 64

/**
 * Returns the bytes of a text in whichever case it is longest, so that `upper` and `lower` change nothing: some letters
 * of two bytes are of three in the other case, and none grows otherwise.
 */
export function countTextBytes(text: string, { print }: Measure): number {
  countSteps(text.length / textCharsPerStep)
  const printed = print(text)
  const grown = printed.match(/[\u0080-\u07ff]/g)?.length ?? 0
  return Buffer.byteLength(printed) + grown
}

/** Returns the most bytes of one of the text's characters. */
export function countLargestChar(text: string, measure: Measure): number {
  return Math.max(0, ...[...text].map((char) => countTextBytes(char, measure)))
}
