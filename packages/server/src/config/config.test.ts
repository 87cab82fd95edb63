import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { readConfig } from './config.ts'

const folder = mkdtempSync(join(tmpdir(), 'tollbase-config-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function makeConfig(file: object) {
  const config = join(folder, 'config.json')
  writeFileSync(config, JSON.stringify(file))
  return readConfig({ config }, {})
}

test('rate limits are on with their defaults, each may be changed, and all may be off', () => {
  const { rateLimits } = makeConfig({})
  expect(rateLimits).toMatchObject({ address: 12_000, key: 300_000, anonymous_in_flight: 256 })
  expect(makeConfig({ rate_limits: { address: 5 } }).rateLimits).toEqual({
    ...rateLimits,
    address: 5,
  })
  expect(makeConfig({ rate_limits: 'off' }).rateLimits).toEqual({})
})

test('answers of predefined queries have 32 MiB of memory, another amount, or none', () => {
  const getCacheBytes = (file: object) => makeConfig(file).resultCacheBytes
  expect([
    getCacheBytes({}),
    getCacheBytes({ kept_answers_mb: 1 }),
    getCacheBytes({ kept_answers_mb: 0 }),
  ]).toEqual([32 * 2 ** 20, 2 ** 20, 0])
})

test('the operator alone registers applications, except on a devnet, or where the file says otherwise', () => {
  expect(makeConfig({}).registration).toBe('operator')
  expect(readConfig({ devnet: true }, {}).registration).toBe('open')
  expect(makeConfig({ registration: 'open' }).registration).toBe('open')
})

test('each application has a quota, another one, or none', () => {
  const getQuota = (file: object) => makeConfig(file).quota
  expect(getQuota({})).toEqual({ bytes: 10 * 2 ** 30, records: 20_000_000 })
  expect(getQuota({ quota: { megabytes: 1 } })).toEqual({ bytes: 2 ** 20, records: 20_000_000 })
  expect(getQuota({ quota: 'off' })).toEqual({ bytes: null, records: null })
})

test('no proxy is believed unless it is named', () => {
  expect(makeConfig({}).trustProxy).toEqual([])
  const proxies = ['loopback', '10.0.0.0/8', '192.0.2.1', '2001:db8::/32']
  expect(makeConfig({ trust_proxy: proxies }).trustProxy).toEqual(proxies)
})

test('payment networks are named as x402 does or by their CAIP-2 ids; a chain without known USDC needs a token of six decimals', () => {
  const payTo = { pay_to: `0x${'a1'.repeat(20)}` }
  const asset = { address: `0x${'c1'.repeat(20)}`, name: 'USD Coin', version: '2', decimals: 6 }
  const networks = [
    { network: 'base', ...payTo },
    { network: 'eip155:84532', ...payTo },
    { network: 'polygon', ...payTo, asset },
    { network: 'sepolia', ...payTo, asset },
  ]
  expect(makeConfig({}).networks).toEqual([])
  expect(makeConfig({ networks }).networks).toEqual(networks)
  for (const decimals of [0, 5, 7, 18, 36]) {
    const wrong = { ...networks[0], asset: { ...asset, decimals } }
    expect(() => makeConfig({ networks: [wrong] })).toThrow(`decimals must be 6, not ${decimals}`)
  }
})

const set = { name: 'geo', kind: 'ip_country', file: './countries.csv' }

test('data sets are named files', () => {
  expect(makeConfig({}).dataSets).toEqual([])
  expect(makeConfig({ data_sets: [set] }).dataSets).toEqual([set])
})

test.each([
  [{ rate_limits: { adress: 1 } }, 'there is no field rate_limits.adress; did you mean "address"?'],
  [{ rate_limits: { address: 0 } }, 'rate_limits.address must be >= 1'],
  [{ rate_limits: 'on' }, 'rate_limits must be "off" or an object'],
  [{ trust_proxy: ['everyone'] }, 'trust_proxy[0] must be an address, a network such as'],
  [{ trust_proxy: ['10.0.0.0/33'] }, 'trust_proxy[0]'],
  [{ trust_proxy: ['::/129'] }, 'trust_proxy[0]'],
  [{ trust_proxy: 2 }, 'trust_proxy must be a list: […]'],
  [{ drain_seconds: 0 }, 'drain_seconds must be >= 1'],
  [{ kept_answers_mb: -1 }, 'kept_answers_mb must be >= 0'],
  [{ registration: 'wallets' }, 'registration must be one of open, operator'],
  [{ quota: { bytes: 1 } }, 'there is no field quota.bytes; known are megabytes, records'],
  [{ access_log: 'yes' }, 'access_log must be true or false'],
  [{ data_sets: [{ ...set, kind: 'ranges' }] }, 'data_sets[0].kind must be one of values, cidr'],
  [{ data_sets: [set, set] }, 'data_sets[1].name is that of another data set, geo'],
  [{ data_sets: [set, { ...set, name: 'b' }] }, 'data_sets[1].kind: there may be one'],
])('the mistake in %j is named', (file, problem) => {
  expect(() => makeConfig(file)).toThrow(problem)
})

test('storage is charged only where the file says so with a price, and the free bytes have a bound', () => {
  const price = { retention_price_per_gb_month: '250000' }
  const getFees = (storage_fees: object) => makeConfig({ ...price, storage_fees }).storageFees
  expect(makeConfig(price).storageFees).toBeUndefined()
  expect(getFees({})).toEqual({ price: 250_000n, freeBytes: 2n ** 30n })
  expect(getFees({ free_bytes: 2 ** 50 })).toEqual({ price: 250_000n, freeBytes: 2n ** 50n })
  expect(() => getFees({ free_bytes: 2 ** 50 + 1 })).toThrow('free_bytes')
  expect(() => makeConfig({ storage_fees: {} })).toThrow('retention_price_per_gb_month')
})

test.each([
  [{ operatorKey: 'short' }, 'at least 16 characters'],
  [{ operatorKey: 'a key with spaces in it' }, 'a space would end it'],
  [{ operatorKey: 'schlüssel-schlüssel' }, 'of ASCII'],
  [{ publicUrl: 'shop.example' }, 'such as https://shop.example'],
  [{ publicUrl: 'https://shop.example/a/?x=1' }, 'paths are added to it: https://shop.example/a'],
  [{ publicUrl: 'https://shop.example#x' }, 'must end before ? and #'],
])(
  'a key that no header carries, and a public URL that nothing can be added to, are refused: %j',
  (flags, said) => {
    expect(() => readConfig(flags, {})).toThrow(said)
  },
)
