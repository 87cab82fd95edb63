import { concat, decodeHex, encodeHex, encodeUtf8, FormatError } from '../bytes.ts'
import { type Fields, findField, requireCount, requireObject, requireText } from '../fields.ts'
import { hashBytes } from '../tree.ts'
import { computeRoot } from './commitment.ts'

/** The header of a Celestia block, in a node's own JSON: numbers as digits, hashes as upper-case hexadecimal. */
export type CelestiaHeader = {
  readonly version: { readonly block?: string; readonly app?: string }
  readonly chain_id: string
  readonly height: string
  /** RFC 3339, up to nanoseconds, UTC. */
  readonly time: string
  readonly last_block_id: {
    readonly hash: string
    readonly parts: { readonly total: number; readonly hash: string }
  }
  readonly last_commit_hash: string
  /** The data root. */
  readonly data_hash: string
  readonly validators_hash: string
  readonly next_validators_hash: string
  readonly consensus_hash: string
  readonly app_hash: string
  readonly last_results_hash: string
  readonly evidence_hash: string
  readonly proposer_address: string
}

const textCharsMax = 128
const hashNames = [
  'last_commit_hash',
  'data_hash',
  'validators_hash',
  'next_validators_hash',
  'consensus_hash',
  'app_hash',
  'last_results_hash',
  'evidence_hash',
  'proposer_address',
] as const

/** Parses a header; throws a FormatError that names the member. Members that are not known here are dropped. */
export function parseHeader(fields: Fields): CelestiaHeader {
  const version = requireObject(fields, 'version')
  const last = requireObject(fields, 'last_block_id')
  const parts = requireObject(last, 'parts')
  const text = (of: Fields, name: string) => {
    const value = requireText(of, name)
    if (value.length > textCharsMax) throw new FormatError(`"${name}" is too long`)
    return value
  }
  const number = (name: 'block' | 'app') =>
    findField(version, name) === undefined ? {} : { [name]: text(version, name) }
  return {
    version: { ...number('block'), ...number('app') },
    chain_id: text(fields, 'chain_id'),
    height: text(fields, 'height'),
    time: text(fields, 'time'),
    last_block_id: {
      hash: text(last, 'hash'),
      parts: { total: requireCount(parts, 'total'), hash: text(parts, 'hash') },
    },
    last_commit_hash: text(fields, 'last_commit_hash'),
    data_hash: text(fields, 'data_hash'),
    validators_hash: text(fields, 'validators_hash'),
    next_validators_hash: text(fields, 'next_validators_hash'),
    consensus_hash: text(fields, 'consensus_hash'),
    app_hash: text(fields, 'app_hash'),
    last_results_hash: text(fields, 'last_results_hash'),
    evidence_hash: text(fields, 'evidence_hash'),
    proposer_address: text(fields, 'proposer_address'),
  }
}

/**
 * Hashes a header as CometBFT does: the RFC 6962 root over its fields in the encoding of Protocol Buffers. This is the
 * hash of the block, which the validators sign. Throws a FormatError where a field is not in its one form.
 */
export function hashHeader(header: CelestiaHeader): Uint8Array {
  const { version, chain_id, height, time, last_block_id: last } = header
  const parts = concat(
    encodeNumber(1, BigInt(last.parts.total)),
    encodeBytes(2, decodeUpperHex(last.parts.hash)),
  )
  return computeRoot([
    concat(
      encodeNumber(1, parseDigits(version.block ?? '0')),
      encodeNumber(2, parseDigits(version.app ?? '0')),
    ),
    encodeBytes(1, encodeUtf8(chain_id)),
    encodeNumber(1, parseDigits(height)),
    encodeTime(time),
    // The parts are never left out, also where they are empty.
    concat(encodeBytes(1, decodeUpperHex(last.hash)), encodeMember(2, parts)),
    ...hashNames.map((name) => encodeBytes(1, decodeUpperHex(header[name]))),
  ])
}

/** Returns the root of the block's data; throws a FormatError. */
export function getDataRoot({ data_hash }: CelestiaHeader): Uint8Array {
  const root = decodeUpperHex(data_hash)
  if (root.length !== hashBytes) throw new FormatError('"data_hash" must have 32 bytes')
  return root
}

/** Formats the hash of a block as nodes write it. */
export function formatBlockHash(hash: Uint8Array): string {
  return encodeHex(hash).toUpperCase()
}

/** Parses the time of a header into ISO 8601 with milliseconds; throws a FormatError. */
export function parseHeaderTime({ time }: Pick<CelestiaHeader, 'time'>): string {
  return new Date(
    Number(parseTime(time).seconds) * 1000 + Math.floor(parseTime(time).nanos / 1e6),
  ).toISOString()
}

function encodeTime(time: string): Uint8Array {
  const { seconds, nanos } = parseTime(time)
  return concat(encodeNumber(1, seconds), encodeNumber(2, BigInt(nanos)))
}

function parseTime(time: string): { readonly seconds: bigint; readonly nanos: number } {
  const [, whole, fraction = ''] =
    /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{0,8}[1-9]))?Z$/.exec(time) ?? []
  const ms = whole === undefined ? Number.NaN : Date.parse(`${whole}Z`)
  const isExact = !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(`${whole}.`)
  if (!isExact || ms < 0) throw new FormatError('"time" must be RFC 3339 in UTC, since 1970')
  return { seconds: BigInt(ms / 1000), nanos: Number(fraction.padEnd(9, '0')) }
}

function parseDigits(text: string): bigint {
  if (!/^(0|[1-9][0-9]{0,18})$/.test(text)) throw new FormatError('a number of the header is wrong')
  return BigInt(text)
}

function decodeUpperHex(text: string): Uint8Array {
  if (/[a-z]/.test(text) || text.length % 2 !== 0)
    throw new FormatError('a hash of the header must be upper-case hexadecimal')
  return decodeHex(text.toLowerCase(), text.length / 2)
}

/** Encodes a member of Protocol Buffers that is a number; one of zero is left out. */
function encodeNumber(field: number, value: bigint): Uint8Array {
  return value === 0n ? new Uint8Array(0) : concat(Uint8Array.of(field * 8), encodeVarint(value))
}

/** Encodes a member of Protocol Buffers that is bytes; an empty one is left out. */
function encodeBytes(field: number, bytes: Uint8Array): Uint8Array {
  return bytes.length === 0 ? bytes : encodeMember(field, bytes)
}

function encodeMember(field: number, bytes: Uint8Array): Uint8Array {
  return concat(Uint8Array.of(field * 8 + 2), encodeVarint(BigInt(bytes.length)), bytes)
}

function encodeVarint(value: bigint): Uint8Array {
  const bytes: number[] = []
  let rest = value
  for (; rest >= 128n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128)
  return Uint8Array.of(...bytes, Number(rest))
}
