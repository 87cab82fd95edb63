import { describe, expect, it } from 'vitest'
import type { DataSetKind } from '../../query/data-set.ts'
import { parseEntries } from './parse-entries.ts'

function read(kind: DataSetKind, entries: readonly unknown[]) {
  return parseEntries(kind, { values: entries, locate: (at) => `/entries/${at}` })
}

describe('the entries of a data set', () => {
  it('the entries of a set of values are kept once each, and types apart', async () => {
    expect(await read('values', ['a', 'a', 1, '1', -0, 0, true, false])).toEqual([
      'a',
      1,
      '1',
      0,
      true,
      false,
    ])
  })

  it('the entries of a set of networks are made into ordered ranges that do not overlap or touch', async () => {
    const sent = [
      '10.0.1.0/24',
      '::2',
      '10.0.0.0/24',
      '10.0.0.128,10.0.2.0',
      '"9.0.0.0/8"',
      '::1',
      '::4',
    ]
    expect(await read('cidr', sent)).toEqual([
      ['9.0.0.0', '10.0.2.0', null],
      ['0:0:0:0:0:0:0:1', '0:0:0:0:0:0:0:2', null],
      ['0:0:0:0:0:0:0:4', '0:0:0:0:0:0:0:4', null],
    ])
  })

  it('the entries of a set of countries are read as public databases write them', async () => {
    const sent = [
      '"1.0.0.0","1.0.0.255","AU"',
      '1.0.1.0/24,cn',
      '1.0.2.0,1.0.2.255,CN',
      '2001:200::/32, JP',
    ]
    expect(await read('ip_country', sent)).toEqual([
      ['1.0.0.0', '1.0.0.255', 'AU'],
      ['1.0.1.0', '1.0.2.255', 'CN'],
      ['2001:200:0:0:0:0:0:0', '2001:200:ffff:ffff:ffff:ffff:ffff:ffff', 'JP'],
    ])
  })

  it.each<[DataSetKind, readonly unknown[], string, string]>([
    ['values', ['a', null], '/entries/1', 'must be a string'],
    ['values', ['x'.repeat(128)], '/entries/0', 'at most 127 characters'],
    ['cidr', ['10.0.0.0/8', '10.0.0.0/33'], '/entries/1', '"network" or "first,last"'],
    ['cidr', ['1:'.repeat(1_000_000)], '/entries/0', '"network"'],
    ['cidr', [7], '/entries/0', '"network"'],
    ['cidr', ['10.0.0.0/8,DE'], '/entries/0', '"network"'],
    ['ip_country', ['10.0.0.0/8'], '/entries/0', '"network,country"'],
    ['ip_country', ['10.0.0.0/8,Germany'], '/entries/0', 'two letters'],
    [
      'ip_country',
      ['10.0.0.0/8,DE', '10.1.0.0/16,AT'],
      '/entries/1',
      '/entries/0 assigns to another country',
    ],
    [
      'ip_country',
      ['10.1.0.0/16,AT', '10.0.0.0/8,DE', '10.1.0.0/16,AT'],
      '/entries/0',
      'to another country',
    ],
  ])(
    'the entries of a set of %s %j are refused, naming the entry',
    async (kind, entries, ...told) => {
      const [pointer, problem] = told
      await expect(read(kind, entries)).rejects.toThrow(
        expect.objectContaining({
          code: 'VALIDATION_FAILED',
          message: expect.stringMatching(new RegExp(`^${pointer} .*`)),
        }),
      )
      await expect(read(kind, entries)).rejects.toThrow(problem)
    },
  )
})
