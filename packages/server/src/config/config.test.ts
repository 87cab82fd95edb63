import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { readConfig } from './config.ts'

const folder = mkdtempSync(join(tmpdir(), 'tollbase-config-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function configOf(file: object) {
  const config = join(folder, 'config.json')
  writeFileSync(config, JSON.stringify(file))
  return readConfig({ config }, {})
}

test('rate limits are on with their defaults, each may be changed, and all may be off', () => {
  const { rateLimits } = configOf({})
  expect(rateLimits).toMatchObject({ address: 12_000, key: 300_000, anonymous_in_flight: 256 })
  expect(configOf({ rate_limits: { address: 5 } }).rateLimits).toEqual({
    ...rateLimits,
    address: 5,
  })
  expect(configOf({ rate_limits: 'off' }).rateLimits).toEqual({})
})

test('answers of predefined queries have 32 MiB of memory, another amount, or none', () => {
  const bytesOf = (file: object) => configOf(file).keptAnswersBytes
  expect([bytesOf({}), bytesOf({ kept_answers_mb: 1 }), bytesOf({ kept_answers_mb: 0 })]).toEqual([
    32 * 2 ** 20,
    2 ** 20,
    0,
  ])
})

test('the operator alone registers applications, except on a devnet, or where the file says otherwise', () => {
  expect(configOf({}).registration).toBe('operator')
  expect(readConfig({ devnet: true }, {}).registration).toBe('open')
  expect(configOf({ registration: 'open' }).registration).toBe('open')
})

test('each application has a quota, another one, or none', () => {
  const quotaOf = (file: object) => configOf(file).quota
  expect(quotaOf({})).toEqual({ bytes: 10 * 2 ** 30, records: 20_000_000 })
  expect(quotaOf({ quota: { megabytes: 1 } })).toEqual({ bytes: 2 ** 20, records: 20_000_000 })
  expect(quotaOf({ quota: 'off' })).toEqual({ bytes: null, records: null })
})

test('no proxy is believed unless it is named', () => {
  expect(configOf({}).trustProxy).toEqual([])
  const proxies = ['loopback', '10.0.0.0/8', '192.0.2.1', '2001:db8::/32']
  expect(configOf({ trust_proxy: proxies }).trustProxy).toEqual(proxies)
})

const set = { name: 'geo', kind: 'ip_country', file: './countries.csv' }

test('data sets are named files', () => {
  expect(configOf({}).dataSets).toEqual([])
  expect(configOf({ data_sets: [set] }).dataSets).toEqual([set])
})

test.each([
  [{ rate_limits: { adress: 1 } }, 'there is no field rate_limits.adress; known are address,'],
  [{ rate_limits: { address: 0 } }, 'rate_limits.address must be >= 1'],
  [{ rate_limits: 'on' }, 'rate_limits must be "off" or an object'],
  [{ trust_proxy: ['everyone'] }, 'trust_proxy[0] must be an address, a network such as'],
  [{ trust_proxy: ['10.0.0.0/33'] }, 'trust_proxy[0]'],
  [{ trust_proxy: ['::/129'] }, 'trust_proxy[0]'],
  [{ trust_proxy: 2 }, 'trust_proxy must be array'],
  [{ drain_seconds: 0 }, 'drain_seconds must be >= 1'],
  [{ kept_answers_mb: -1 }, 'kept_answers_mb must be >= 0'],
  [{ registration: 'wallets' }, 'registration must be one of open, operator'],
  [{ quota: { bytes: 1 } }, 'there is no field quota.bytes; known are megabytes, records'],
  [{ access_log: 'yes' }, 'access_log must be boolean'],
  [{ data_sets: [{ ...set, kind: 'ranges' }] }, 'data_sets[0].kind must be one of values, cidr'],
  [{ data_sets: [set, set] }, 'data_sets[1].name is that of another data set, geo'],
  [{ data_sets: [set, { ...set, name: 'b' }] }, 'data_sets[1].kind: there may be one'],
])('the mistake in %j is named', (file, problem) => {
  expect(() => configOf(file)).toThrow(problem)
})
