import { isAscii, isUtf8 } from 'node:buffer'
import { limits } from '@tollbase/contract/limits'
import { awaitTurn } from './await-turn.ts'
import { BoundedScanner } from './bounded-scanner.ts'
import { Fault, makeInvalidFault } from './fault.ts'
import { findBreak } from './json-break.ts'
import { parseInSlices } from './json-slices.ts'
import { type JsonSource, toJsonSource } from './json-source.ts'

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const bounds = {
  depthMax: limits.bodyDepthMax,
  membersMax: limits.objectMembersMax,
  itemsMax: limits.bodyListItemsMax,
  valuesMax: limits.bodyValuesMax,
  textCharsMax: limits.bodyTextCharsMax,
  blanksMax: limits.bodyBlanksMax,
}

/** A parsed body, and its text. The value of an empty body is undefined. */
export type JsonBody = { readonly source: JsonSource; readonly value: unknown }

/** Parses a body at once; throws a 400 that says what is wrong. */
export function parseJsonBytes(bytes: Buffer): JsonBody {
  if (bytes.length === 0) return { source: toJsonSource(''), value: undefined }
  const text = decodeText(bytes)
  refuseShape(text)
  try {
    return { source: toJsonSource(text), value: JSON.parse(text) }
  } catch (error) {
    throw notJson(text, error)
  }
}

/** Parses a body of any length and yields to other requests in between. */
export async function parseLongJson(bytes: Buffer): Promise<JsonBody> {
  const source = readLongText(bytes)
  await awaitTurn()
  try {
    const charsMax = limits.bodyBytesAtOnce / 2
    return { source, value: await parseInSlices(source, { ...bounds, charsMax, pause: awaitTurn }) }
  } catch (error) {
    if (error instanceof Fault) throw error
    throw notJson(new TextDecoder().decode(bytes.subarray(0, brokenBytesMax)), error)
  }
}

/** Bytes of a broken body that its break is looked for in. */
const brokenBytesMax = 256 * 1024

/** Bytes of an ASCII body that is made one string: a batch of ordinary records is, and takes a twentieth less time. */
const wholeBytesMax = 1024 * 1024
/** Bytes of a longer one that are scanned as one string. */
const partBytes = 256 * 1024

function readLongText(bytes: Buffer): JsonSource {
  const encoding = isAscii(bytes) ? 'latin1' : 'utf8'
  if (encoding === 'latin1' && bytes.length <= wholeBytesMax)
    return toJsonSource(bytes.toString('latin1'))
  if (encoding === 'utf8' && !isUtf8(bytes)) throw makeInvalidFault('', 'is not valid UTF-8')
  return {
    length: bytes.length,
    read: (from, to) => bytes.toString('latin1', from, to),
    partMax: partBytes,
    tokenMax: bounds.textCharsMax,
    spaceMax: bounds.blanksMax,
    cut: (from, to) => bytes.toString(encoding, from, to),
    isScannedAsIs: encoding === 'latin1',
  }
}

function decodeText(bytes: Buffer): string {
  try {
    return decoder.decode(bytes)
  } catch {
    throw makeInvalidFault('', 'is not valid UTF-8')
  }
}

/** JSON.parse says what is wrong with a text that is broken. */
function refuseShape(text: string): void {
  const scanner = new BoundedScanner(text, bounds)
  let token = scanner.next()
  while (token !== 'end' && token !== 'broken') token = scanner.next()
}

function notJson(text: string, error: unknown): Fault {
  const place = findBreak(text)
  const where =
    place === undefined ? '' : `: it breaks at line ${place.line}, column ${place.column}`
  return new Fault('VALIDATION_FAILED', {
    message: `The body is not valid JSON${where}`,
    details: { field: '', problem: 'is not valid JSON', ...place },
    internal: String(error),
  })
}
