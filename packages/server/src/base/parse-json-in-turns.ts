import { isAscii } from 'node:buffer'
import { awaitTurn } from './await-turn.ts'
import { parseInSlices } from './json-slices.ts'

/** Bytes that are scanned as one string, and characters that are parsed without a pause. */
const partBytes = 256 * 1024
const charsAtOnce = 32 * 1024
/** Deepest nesting: a deeper value overflows the stack of whoever walks it. */
const depthMax = 128

/**
 * Parses the JSON text of a peer and yields to other requests in between; throws where it is none. The caller bounds
 * the bytes, and nothing else is bounded: a peer is not told how to write its answers.
 */
export function parseJsonInTurns(bytes: Buffer): Promise<unknown> {
  const encoding = isAscii(bytes) ? 'latin1' : 'utf8'
  const { length } = bytes
  const none = Number.POSITIVE_INFINITY
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
    {
      ...{ depthMax, membersMax: none, itemsMax: none, valuesMax: none },
      ...{ textCharsMax: none, blanksMax: none },
      ...{ charsMax: charsAtOnce, pause: awaitTurn },
    },
  )
}
