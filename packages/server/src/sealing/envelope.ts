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
  /** The name of the record in the log: a token of its key, or the id of a blob. */
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
  /** The key of a blob's bytes, sealed. */
  file: Type.Optional(Type.Object({ nonce: Type.String(), key: Type.String() })),
})
const envelopes = Compile(Envelope)

/** The key of a file, and the nonce that seals it: 12 other random bytes. */
export type EnclosedKey = { readonly key: Buffer; readonly nonce: Buffer }

/** Seals a text under a data key with a nonce that was never used before: 12 random bytes. */
export function sealText(
  { key, epoch }: DataKey,
  text: string,
  {
    place,
    nonce,
    tokens = [],
    file,
  }: {
    readonly place: SealedPlace
    readonly nonce: Buffer
    readonly tokens?: readonly string[]
    readonly file?: EnclosedKey | undefined
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
    ...(file && { file: sealFileKey({ key, epoch }, file, place) }),
  }
  return JSON.stringify(envelope)
}

/** Opens an envelope; throws where it is none, where it was changed, or where it belongs to another place. */
export function openText(
  findKey: (epoch: number) => Buffer | undefined,
  envelope: string,
  place: SealedPlace,
): string {
  const { parsed, key } = parseEnvelope(findKey, envelope)
  const nonce = Buffer.from(parsed.nonce, 'base64url')
  const bound = formatBinding(place, parsed.epoch)
  return open(Buffer.from(parsed.ciphertext, 'base64url'), { key, nonce, bound }).toString()
}

/** Opens the key of the file that an envelope's record stands for; throws as `openText` does, and where it has none. */
export function openFileKey(
  findKey: (epoch: number) => Buffer | undefined,
  envelope: string,
  place: SealedPlace,
): Buffer {
  const { parsed, key } = parseEnvelope(findKey, envelope)
  if (parsed.file === undefined) throw new Error('a sealed record has no key of a file')
  const nonce = Buffer.from(parsed.file.nonce, 'base64url')
  const bound = formatFileBinding(place, parsed.epoch)
  return open(Buffer.from(parsed.file.key, 'base64url'), { key, nonce, bound })
}

/** Says whether the record of an envelope stands for a file; throws where it is none. */
export function hasFileKey(envelope: string): boolean {
  return parse(envelope).file !== undefined
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

function sealFileKey(
  { key, epoch }: DataKey,
  file: EnclosedKey,
  place: SealedPlace,
): NonNullable<Static<typeof Envelope>['file']> {
  const bound = formatFileBinding(place, epoch)
  const sealed = seal(file.key, { key, nonce: file.nonce, bound })
  return { nonce: file.nonce.toString('base64url'), key: sealed.toString('base64url') }
}

function parseEnvelope(
  findKey: (epoch: number) => Buffer | undefined,
  envelope: string,
): { readonly parsed: Static<typeof Envelope>; readonly key: Buffer } {
  const parsed = parse(envelope)
  const key = findKey(parsed.epoch)
  if (key === undefined) throw new Error(`the data key of epoch ${parsed.epoch} is gone`)
  return { parsed, key }
}

function parse(envelope: string): Static<typeof Envelope> {
  const parsed: unknown = JSON.parse(envelope)
  if (!envelopes.Check(parsed)) throw new Error('a sealed record is no envelope')
  return parsed
}

/** JSON, so that no two places have the same bytes. */
function formatBinding({ app, collection, token }: SealedPlace, epoch: number): string {
  return JSON.stringify(['tollbase record', 1, app, collection, epoch, token])
}

function formatFileBinding({ app, collection, token }: SealedPlace, epoch: number): string {
  return JSON.stringify(['tollbase blob key', 1, app, collection, epoch, token])
}
