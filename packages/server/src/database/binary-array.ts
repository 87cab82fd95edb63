/** Numbers by which PostgreSQL names the types of elements (pg_type.oid). */
const elementTypes = { bytea: 17, text: 25 } as const

/** Dimensions, presence of nulls, type of elements, length, first index. */
const headBytes = 20
const lengthBytes = 4

/**
 * Encodes the elements of a `bytea[]` as PostgreSQL reads an array in its binary form (array_recv). As text, each byte
 * would be two digits, which both sides take apart: twenty answers of 5 KB cost the server 1.5 ms more.
 */
export function encodeBytesArray(elements: readonly Buffer[]): Buffer {
  return encodeArray(elementTypes.bytea, elements)
}

/** The same of a `text[]`, for texts that are long, or full of characters that the text form has to escape. */
export function encodeTextArray(elements: readonly string[]): Buffer {
  return encodeArray(
    elementTypes.text,
    elements.map((text) => Buffer.from(text)),
  )
}

function encodeArray(type: number, elements: readonly Buffer[]): Buffer {
  const bytes = elements.reduce((sum, { length }) => sum + lengthBytes + length, headBytes)
  const encoded = Buffer.allocUnsafe(bytes)
  const head = [1, 0, type, elements.length, 1]
  let at = head.reduce((place, value) => encoded.writeInt32BE(value, place), 0)
  for (const element of elements) {
    at = encoded.writeInt32BE(element.length, at)
    at += element.copy(encoded, at)
  }
  return encoded
}
