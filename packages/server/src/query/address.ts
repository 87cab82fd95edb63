import { makeInvalidFault } from '../base/fault.ts'
import { parseText } from './operand.ts'

const octet = '(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])'
const v4 = `${octet}(\\.${octet}){3}`
const group = '[0-9A-Fa-f]{1,4}'
const v6 = [
  `(${group}:){7}${group}`,
  `(${group}:){1,7}:`,
  ...[1, 2, 3, 4, 5, 6].map((tail) => `(${group}:){1,${7 - tail}}(:${group}){1,${tail}}`),
  `:((:${group}){1,7}|:)`,
  `::[Ff]{4}:${v4}`,
].join('|')

/**
 * The strings that count as IP addresses, as a pattern that JavaScript and PostgreSQL read alike. All of them
 * cast to inet, so a cast behind this test cannot fail.
 */
export const addressPattern = `^(${v4}|${v6})$`

/**
 * Private networks: RFC 1918, loopback, link-local (RFC 3927, 4291), unique local (RFC 4193), carrier-grade
 * NAT (RFC 6598), "this network" (RFC 1122), and IPv4-mapped forms of them.
 */
export const localBlocks: readonly string[] = addMappedBlocks([
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.168.0.0/16',
]).concat('::/128', '::1/128', 'fc00::/7', 'fe80::/10')

/** A block such as 10.0.0.0/8 or fe80::/10, or one address. */
export function parseBlock(operand: unknown, pointer: string): string {
  const text = parseText(operand, pointer)
  const [address = '', bits, ...rest] = text.split('/')
  const bitsMax = address.includes(':') ? 128 : 32
  const bitsAreRight =
    bits === undefined || (/^(0|[1-9][0-9]{0,2})$/.test(bits) && Number(bits) <= bitsMax)
  if (!new RegExp(addressPattern).test(address) || !bitsAreRight || rest.length > 0) {
    throw makeInvalidFault(
      pointer,
      'must be a range of IP addresses such as 10.0.0.0/8 or fe80::/10',
    )
  }
  return text
}

function addMappedBlocks(blocks: readonly string[]): readonly string[] {
  const mapped = blocks.map((block) => {
    const [address = '', bits = ''] = block.split('/')
    return `::ffff:${address}/${96 + Number(bits)}`
  })
  return [...blocks, ...mapped]
}
