import { awaitTurn } from './await-turn.ts'

/** Bytes that are copied without a pause. */
const bytesAtOnce = 256 * 1024

/**
 * Returns all bytes in one Buffer, as `Buffer.concat` does, and yields to other requests in between: memory that is
 * touched for the first time can be so slow that copying 5 MB takes 20 ms.
 */
export async function concatInTurns(parts: readonly Buffer[]): Promise<Buffer> {
  const whole = Buffer.allocUnsafe(parts.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  let pauseAt = bytesAtOnce
  for (const part of parts) {
    for (let from = 0; from < part.length; from += bytesAtOnce) {
      at += part.copy(whole, at, from, from + bytesAtOnce)
      if (at < pauseAt) continue
      pauseAt = at + bytesAtOnce
      await awaitTurn()
    }
  }
  return whole
}
