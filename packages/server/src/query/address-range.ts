import ipaddr from 'ipaddr.js'
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
  const digits = value.toString(16).padStart(bits / 4, '0')
  return ipaddr.fromByteArray([...Buffer.from(digits, 'hex')]).toNormalizedString()
}

/** The library takes more forms than there are in the database, such as 127.1. */
function readAddress(text: string): { bits: 32 | 128; value: bigint } | undefined {
  if (!isAddress.test(text)) return undefined
  const address = ipaddr.parse(text)
  const digits = Buffer.from(address.toByteArray()).toString('hex')
  return { bits: address.kind() === 'ipv4' ? 32 : 128, value: BigInt(`0x${digits}`) }
}
