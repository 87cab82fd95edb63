import { limits } from '@tollbase/contract/limits'
import { createData, type Data } from '@tollbase/testing/data'
import { withService } from '@tollbase/testing/per-engine'
import { beforeEach, describe, expect, test } from 'vitest'

/** The one host that the operator allows here. Nobody asks it. */
const url = 'http://localhost:9'

/** Hosts that are not public, in every form that a URL can have. */
const inside = [
  'http://127.0.0.1/',
  'http://127.1/',
  'http://2130706433/',
  'http://0x7f000001/',
  'http://0177.0.0.1/',
  'http://0/',
  'http://１２７.0.0.1/',
  'http://10.0.0.1/',
  'http://100.64.0.1/',
  'http://169.254.169.254/latest/meta-data/',
  'http://168.63.129.16/',
  'http://172.16.0.1/',
  'http://192.168.0.1/',
  'http://192.0.2.1/',
  'http://198.18.0.1/',
  'http://224.0.0.1/',
  'http://255.255.255.255/',
  'http://[::]/',
  'http://[::1]/',
  'http://[::ffff:127.0.0.1]/',
  'http://[::ffff:8.8.8.8]/',
  'http://[::127.0.0.1]/',
  'http://[64:ff9b::7f00:1]/',
  'http://[64:ff9b:1::7f00:1]/',
  'http://[2002:7f00:1::]/',
  'http://[2001:0:7f00:1::]/',
  'http://[fe80::1]/',
  'http://[fc00::1]/',
  'http://[fd00:ec2::254]/',
  'http://[fec0::1]/',
  'http://[ff02::1]/',
  'http://[2001:db8::1]/',
  'http://[4000::1]/',
]

const malformed = [
  ['ftp://api.example.com/', 'http or https'],
  ['file:///etc/passwd', 'http or https'],
  ['gopher://api.example.com/', 'http or https'],
  ['//api.example.com/', 'must be a URL'],
  ['https://user:word@api.example.com/', 'no user'],
  ['https://@api.example.com/', 'no user'],
  ['https:me:hush@api.example.com/', 'no user'],
  ['https:/me:hush@api.example.com/', 'no user'],
  ['https://api.example.com\\@127.0.0.1/', 'backslashes'],
  ['https://api.example.com/a b', 'spaces'],
  ['https://api.example.com/\u0000', 'U+0000'],
  ['https://api.example.com/\r\nHost: x', 'control characters'],
  ['https://api.example.com/#a', 'fragment'],
  ['https://api.example.com/?q={city}', 'path alone'],
  ['https://api.example.com/{nothing}', 'none of the parameters'],
  ['https://api.example.com:25/', 'ports'],
  ['https://api.example.com:6379/', 'ports'],
  ['https://{city}.example.com/', ''],
] as const

describe('createApiCollection', () =>
  withService(
    (service) => {
      let seller: Data
      beforeEach(async () => {
        seller = await createData(service())
      })

      const define = (more: object, to = `${url}/a/{city}`) =>
        seller.call('POST', '/api-collections', {
          name: 'weather',
          upstream: { url: to },
          parameters: [{ name: 'city' }, { name: 'n', type: 'integer' }],
          ...more,
        })

      test('a URL into the own network is refused in every form, and so is all that is not a plain URL of HTTP', async () => {
        for (const one of inside) {
          const { status, body } = await define({ parameters: [] }, one)
          expect([status, body.details?.field], one).toEqual([400, '/upstream/url'])
          expect(body.error, one).toContain('public internet')
        }
        for (const [one, problem] of malformed) {
          const { status, body } = await define({ parameters: [{ name: 'city' }] }, one)
          expect(status, one).toBe(400)
          expect(body.error, one).toContain(problem)
        }
        expect((await seller.call('GET', '/collections')).body).toEqual([])
      })

      test('what is wrong with a parameter or a header is named by pointer', async () => {
        const p = (more: object, first: object = {}) => ({
          parameters: [
            { name: 'city', ...first },
            { name: 'n', ...more },
          ],
        })
        const refused: readonly (readonly [object, string])[] = [
          [p({ in: 'path' }), '/parameters/1/in'],
          [p({ in: 'body' }), '/parameters/1/in'],
          [p({ in: 'header' }), '/parameters/1/in'],
          [p({ field_path: 'n' }), '/parameters/1/field_path'],
          [p({ name: 'max_kb' }), '/parameters/1/name'],
          [p({ name: 'city' }), '/parameters/1'],
          [p({ as: 'units' }), '/parameters/1'],
          [p({}, { in: 'query' }), '/parameters/0/in'],
          [p({}, { as: 'x' }), '/parameters/0/as'],
          [p({}, { type: 'list', items: 'string' }), '/parameters/0/type'],
          [p({}, { required: false }), '/parameters/0/required'],
          [p({}, { default: '..' }), '/query/city'],
          [p({ default: '\ud800' }), ''],
          [{ cache_seconds: limits.upstreamCacheSecondsMax + 1 }, '/cache_seconds'],
          [{ price: { per_access: '1000000000000001' } }, '/price/per_access'],
          [{ price: { per_call: '1' } }, '/price/per_call'],
        ]
        const metric = `${url}/a/{city}?units=metric`
        for (const [more, pointer] of refused) {
          const { status, body } = await define(more, metric)
          expect([status, body.details?.field], JSON.stringify(more)).toEqual([400, pointer])
        }
        const headers: readonly (readonly [Record<string, string>, string])[] = [
          [{ Host: 'localhost' }, '/Host'],
          [{ 'Transfer-Encoding': 'chunked' }, '/Transfer-Encoding'],
          [{ 'a b': 'x' }, '/a b'],
          [{ 'x-a': 'a\r\nhost: b' }, '/x-a'],
          [{ 'x-a': 'ä' }, '/x-a'],
          [{ 'x-a': '1', 'X-A': '2' }, '/X-A'],
          [Object.fromEntries(Array.from({ length: 21 }, (_, at) => [`x-${at}`, 'v'])), ''],
        ]
        for (const [sent, pointer] of headers) {
          const { status, body } = await define({ upstream: { url: metric, headers: sent } })
          expect([status, body.details?.field], JSON.stringify(sent)).toEqual([
            400,
            `/upstream/headers${pointer}`,
          ])
        }
      })
    },
    { config: { allowedUpstreams: [{ host: 'localhost', port: undefined }] } },
  ))
