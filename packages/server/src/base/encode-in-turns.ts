import { awaitTurn } from './await-turn.ts'
import { concatInTurns } from './concat-in-turns.ts'

/** Characters that are encoded, or made, without a pause. */
export const charsAtOnce = 64 * 1024
/** Characters of a piece of a longer text: the slowest change of one, such as two quotation marks for each, takes 2 ms. */
export const pieceChars = 16 * 1024

/**
 * Encodes texts, one behind the other, and yields to other requests in between: whenever they are long by now, and
 * where `texts` gives undefined. `note` is told of the bytes by then, and may throw. A short text is given as it is.
 */
export async function encodeInTurns(
  texts: Iterable<string | undefined>,
  note: (bytes: number) => void = () => undefined,
): Promise<string | Buffer> {
  const whole: Buffer[] = []
  let bytes = 0
  let text = ''
  for (const part of texts) {
    if (part !== undefined) {
      text += part
      if (text.length < charsAtOnce) continue
      // The other half of the last character is still to come.
      const end = endsInPair(text) ? text.length - 1 : text.length
      const encoded = Buffer.from(text.slice(0, end))
      text = text.slice(end)
      whole.push(encoded)
      bytes += encoded.length
      note(bytes)
    }
    await awaitTurn()
  }
  if (whole.length === 0) return text
  const rest = Buffer.from(text)
  note(bytes + rest.length)
  return concatInTurns([...whole, rest])
}

/** Returns true where a text ends in the first half of a character. */
function endsInPair(text: string): boolean {
  const code = text.charCodeAt(text.length - 1)
  return code >= 0xd800 && code <= 0xdbff
}

/** Iterates over a text in pieces, each short enough for one turn. */
export function* iteratePieces(text: string): Generator<string, void> {
  for (let from = 0; from < text.length; from += pieceChars)
    yield text.slice(from, from + pieceChars)
}
