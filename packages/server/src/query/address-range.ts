import { addressPattern } from './address.ts'

/** All addresses of one version from `first` to `last`, as numbers of so many bits. */
export type AddressRange = {
  readonly bits: 32 | 128
  readonly first: bigint
  readonly last: bigint
}

const isAddress = new RegExp(addressPattern)

/** Reads the range of a network (10.0.0.0/8, fe80::/10) or of one address; undefined if the text is neither. */
export function readNetwork(text: string): AddressRange | undefined {
  const [start = '', length, more] = text.split('/')
  const address = readAddress(start)
  if (address === undefined || more !== undefined) return undefined
  const { bits, value } = address
  if (length === undefined) return { bits, first: value, last: value }
  if (!/^(0|[1-9][0-9]{0,2})$/.test(length) || Number(length) > bits) return undefined
  const free = BigInt(bits - Number(length))
  const first = (value >> free) << free
  return { bits, first, last: first + (1n << free) - 1n }
}

/** The range between two addresses of one version, both included. */
export function readSpan(first: string, last: string): AddressRange | undefined {
  const [from, to] = [readAddress(first), readAddress(last)]
  if (from === undefined || to === undefined || from.bits !== to.bits) return undefined
  return from.value > to.value ? undefined : { bits: from.bits, first: from.value, last: to.value }
}

/** The address as PostgreSQL reads it. */
export function formatAddress(value: bigint, bits: 32 | 128): string {
  const [count, size] = bits === 32 ? [4, 8n] : [8, 16n]
  const groups = Array.from({ length: count }, (_, at) => {
    return (value >> (size * BigInt(count - 1 - at))) & ((1n << size) - 1n)
  })
  return groups.map((group) => group.toString(bits === 32 ? 10 : 16)).join(bits === 32 ? '.' : ':')
}

function readAddress(text: string): { bits: 32 | 128; value: bigint } | undefined {
  if (!isAddress.test(text)) return undefined
  if (!text.includes(':')) return { bits: 32, value: parseDotted(text) }
  // Only the form ::ffff:1.2.3.4 mixes both notations.
  const tail = /[^:]*\.[^:]*$/.exec(text)?.[0]
  const groups = tail === undefined ? text : text.replace(tail, formatGroups(parseDotted(tail)))
  const [before = '', after] = groups.split('::')
  const head = before === '' ? [] : before.split(':')
  const rest = after === undefined || after === '' ? [] : after.split(':')
  const zeros = Array.from({ length: 8 - head.length - rest.length }, () => '0')
  const all = after === undefined ? head : [...head, ...zeros, ...rest]
  return { bits: 128, value: BigInt(`0x${all.map((group) => group.padStart(4, '0')).join('')}`) }
}

function parseDotted(text: string): bigint {
  return BigInt(text.split('.').reduce((sum, octet) => sum * 256 + Number(octet), 0))
}

function formatGroups(value: bigint): string {
  return `${(value >> 16n).toString(16)}:${(value & 0xffffn).toString(16)}`
}
