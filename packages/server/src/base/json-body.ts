import { isAscii } from 'node:buffer'
import { limits } from '@tollbase/contract/limits'
import { awaitTurn } from './await-turn.ts'
import { BoundedScanner } from './bounded-scanner.ts'
import { Fault, makeInvalidFault } from './fault.ts'
import { findBreak } from './json-break.ts'
import { parseInSlices } from './json-slices.ts'

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const bounds = {
  depthMax: limits.bodyDepthMax,
  membersMax: limits.objectMembersMax,
  itemsMax: limits.bodyListItemsMax,
  valuesMax: limits.bodyValuesMax,
  textCharsMax: limits.bodyTextCharsMax,
}

/** A parsed body. The value of an empty body is undefined. */
export type JsonBody = { readonly text: string; readonly value: unknown }

/** Parses a body at once; throws a 400 that says what is wrong. */
export function parseJsonBytes(bytes: Buffer): JsonBody {
  if (bytes.length === 0) return { text: '', value: undefined }
  const text = decodeText(bytes)
  refuseShape(text)
  try {
    return { text, value: JSON.parse(text) }
  } catch (error) {
    throw notJson(text, error)
  }
}

/** Parses a body of any length and yields to other requests in between. */
export async function parseLongJson(bytes: Buffer): Promise<JsonBody> {
  const text = await decodeLongText(bytes)
  try {
    const charsMax = limits.bodyBytesAtOnce / 2
    return { text, value: await parseInSlices(text, { ...bounds, charsMax, pause: awaitTurn }) }
  } catch (error) {
    throw error instanceof Fault ? error : notJson(text, error)
  }
}

function decodeText(bytes: Buffer): string {
  try {
    return decoder.decode(bytes)
  } catch {
    throw makeInvalidFault('', 'is not valid UTF-8')
  }
}

async function decodeLongText(bytes: Buffer): Promise<string> {
  if (isAscii(bytes)) {
    const text = bytes.toString('latin1')
    await awaitTurn()
    return text
  }
  const ownDecoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  const parts: string[] = []
  const step = limits.bodyBytesAtOnce * 8
  try {
    for (let at = 0; at < bytes.length; at += step) {
      parts.push(ownDecoder.decode(bytes.subarray(at, at + step), { stream: true }))
      await awaitTurn()
    }
    parts.push(ownDecoder.decode())
  } catch {
    throw makeInvalidFault('', 'is not valid UTF-8')
  }
  const text = parts.join('')
  await awaitTurn()
  return text
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
