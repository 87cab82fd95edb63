import { isAscii } from 'node:buffer'
import { limits } from '@tollbase/contract/limits'
import { awaitTurn } from './await-turn.ts'
import { parseInSlices } from './json-slices.ts'
import { toJsonSource } from './json-source.ts'

/** Bytes that are scanned as one string. */
const partBytes = 256 * 1024
const none = Number.POSITIVE_INFINITY
/** Nothing but the depth is bounded: a deeper value overflows the stack of whoever walks it. */
const inTurns = {
  ...{ depthMax: 128, membersMax: none, itemsMax: none, valuesMax: none },
  ...{ textCharsMax: none, blanksMax: none },
  ...{ charsMax: limits.bodyBytesAtOnce / 2, pause: awaitTurn },
}

/** Parses a text that the service itself has made; a long one in turns with other requests. */
export async function parseTextInTurns(text: string): Promise<unknown> {
  if (text.length <= limits.bodyBytesAtOnce) return JSON.parse(text)
  return parseInSlices(toJsonSource(text), inTurns)
}

/**
 * Parses the JSON text of a peer and yields to other requests in between; throws where it is none. The caller bounds
 * the bytes: a peer is not told how to write its answers.
 */
export function parseJsonInTurns(bytes: Buffer): Promise<unknown> {
  const encoding = isAscii(bytes) ? 'latin1' : 'utf8'
  const { length } = bytes
  return parseInSlices(
    {
      length,
      read: (from, to) => bytes.toString('latin1', from, to),
      partMax: partBytes,
      tokenMax: length,
      spaceMax: length,
      cut: (from, to) => bytes.toString(encoding, from, to),
      isScannedAsIs: encoding === 'latin1',
    },
    inTurns,
  )
}
