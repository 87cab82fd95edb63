import { describe, expect, it } from 'vitest'
import { formatAddress, readNetwork, readSpan } from './address-range.ts'

describe('ranges of addresses', () => {
  it.each([
    ['10.0.0.0/8', '10.0.0.0', '10.255.255.255'],
    ['10.1.2.3/8', '10.0.0.0', '10.255.255.255'],
    ['1.2.3.4', '1.2.3.4', '1.2.3.4'],
    ['0.0.0.0/0', '0.0.0.0', '255.255.255.255'],
    ['255.255.255.255/32', '255.255.255.255', '255.255.255.255'],
    ['::1', '0:0:0:0:0:0:0:1', '0:0:0:0:0:0:0:1'],
    ['::/0', '0:0:0:0:0:0:0:0', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
    ['2001:db8::/127', '2001:db8:0:0:0:0:0:0', '2001:db8:0:0:0:0:0:1'],
    ['fe80:0:0::1:2', 'fe80:0:0:0:0:0:1:2', 'fe80:0:0:0:0:0:1:2'],
    ['::ffff:1.2.3.4', '0:0:0:0:0:ffff:102:304', '0:0:0:0:0:ffff:102:304'],
    ['1::', '1:0:0:0:0:0:0:0', '1:0:0:0:0:0:0:0'],
  ])('the range of the network %s goes from its first to its last address', (text, first, last) => {
    const range = readNetwork(text)
    if (range === undefined) throw new Error('no range')
    expect(formatAddress(range.first, range.bits)).toBe(first)
    expect(formatAddress(range.last, range.bits)).toBe(last)
  })

  it.each([
    '',
    '1.2.3',
    '1.2.3.4/33',
    '1.2.3.4/08',
    '::/129',
    '1.2.3.4/8/8',
    'x',
    '::1::',
    '1.2.3.4/',
  ])('no range is read from what is no network: %j', (text) => {
    expect(readNetwork(text)).toBeUndefined()
  })

  it('a range between two addresses has one version and a direction', () => {
    expect(readSpan('1.0.0.0', '1.0.0.255')).toEqual({
      bits: 32,
      first: 1n << 24n,
      last: (1n << 24n) + 255n,
    })
    expect(readSpan('1.0.0.1', '1.0.0.0')).toBeUndefined()
    expect(readSpan('1.0.0.1', '::2')).toBeUndefined()
  })
})
