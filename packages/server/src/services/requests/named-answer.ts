import { hkdfSync } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { World } from '../../base/world.ts'
import { aesKeyBytes, nonceBytes, open, seal } from '../../sealing/aes-gcm.ts'

/** The answer to a named request as it went over the wire, but for headers that every answer has. */
export type NamedAnswer = {
  readonly status: number
  readonly contentType: string
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
}

/**
 * Derives the key that seals named answers from the file of the service's signing key, which is not in the database:
 * an answer may hold a secret, such as a key that was created.
 */
export function deriveAnswerKey(keyFile: string): Buffer {
  const info = 'tollbase answers of requests with an Idempotency-Key'
  return Buffer.from(hkdfSync('sha256', readFileSync(keyFile), '', info, aesKeyBytes))
}

/** Seals an answer for the request of this id: nonce and ciphertext. */
export function sealAnswer(
  { key, world }: { readonly key: Buffer; readonly world: Pick<World, 'randomBytes'> },
  id: string,
  answer: NamedAnswer,
): Buffer {
  const nonce = world.randomBytes(nonceBytes)
  return Buffer.concat([nonce, seal(JSON.stringify(answer), { key, nonce, bound: id })])
}

/** Opens what `sealAnswer` made; throws where it was changed, or the service has another key by now. */
export function openAnswer(key: Buffer, id: string, sealed: Buffer): NamedAnswer {
  const nonce = sealed.subarray(0, nonceBytes)
  const answer: NamedAnswer = JSON.parse(
    open(sealed.subarray(nonceBytes), { key, nonce, bound: id }).toString(),
  )
  return answer
}
