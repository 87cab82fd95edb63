import { createHmac } from 'node:crypto'
import { type Static, Type } from 'typebox'
import { Compile } from 'typebox/compile'
import { nonceBytes, open, seal } from './aes-gcm.ts'

// The envelope of a sealed record: JSON, so that it is kept, hashed and shown like any other record's text.
// docs/encryption.md has the format.

export const envelopeAlgorithm = 'AES-256-GCM'

/** The place of a record, which its ciphertext is bound to: moved elsewhere, it cannot be opened. */
export type SealedPlace = {
  readonly app: string
  /** Id of the collection. */
  readonly collection: string
  /** The name of the record in the log: a token of its key. */
  readonly token: string
}

export type DataKey = { readonly epoch: number; readonly key: Buffer }

const Envelope = Type.Object({
  v: Type.Literal(1),
  alg: Type.Literal(envelopeAlgorithm),
  epoch: Type.Integer({ minimum: 1 }),
  nonce: Type.String(),
  ciphertext: Type.String(),
  /** Tokens of the values of fields that equality finds; see field-token.ts. */
  tokens: Type.Optional(Type.Array(Type.String())),
})
const envelopes = Compile(Envelope)

/** Seals a text under a data key with a nonce that was never used before: 12 random bytes. */
export function sealText(
  { key, epoch }: DataKey,
  text: string,
  {
    place,
    nonce,
    tokens = [],
  }: {
    readonly place: SealedPlace
    readonly nonce: Buffer
    readonly tokens?: readonly string[]
  },
): string {
  const ciphertext = seal(text, { key, nonce, bound: formatBinding(place, epoch) })
  const envelope: Static<typeof Envelope> = {
    v: 1,
    alg: envelopeAlgorithm,
    epoch,
    nonce: nonce.toString('base64url'),
    ciphertext: ciphertext.toString('base64url'),
    ...(tokens.length > 0 && { tokens: [...tokens] }),
  }
  return JSON.stringify(envelope)
}

/** Opens an envelope; throws where it is none, where it was changed, or where it belongs to another place. */
export function openText(
  findKey: (epoch: number) => Buffer | undefined,
  envelope: string,
  place: SealedPlace,
): string {
  const parsed: unknown = JSON.parse(envelope)
  if (!envelopes.Check(parsed)) throw new Error('a sealed record is no envelope')
  const key = findKey(parsed.epoch)
  if (key === undefined) throw new Error(`the data key of epoch ${parsed.epoch} is gone`)
  const nonce = Buffer.from(parsed.nonce, 'base64url')
  const bound = formatBinding(place, parsed.epoch)
  return open(Buffer.from(parsed.ciphertext, 'base64url'), { key, nonce, bound }).toString()
}

export function makeNonce(randomBytes: (count: number) => Buffer): Buffer {
  return randomBytes(nonceBytes)
}

/** Derives the name that a record has in the log and the tables, which tells nothing of its key. */
export function deriveKeyToken(tokenKey: Buffer, recordKey: string): string {
  return createHmac('sha256', tokenKey)
    .update(JSON.stringify(['key', recordKey]))
    .digest('base64url')
}

/** JSON, so that no two places have the same bytes. */
function formatBinding({ app, collection, token }: SealedPlace, epoch: number): string {
  return JSON.stringify(['tollbase record', 1, app, collection, epoch, token])
}
