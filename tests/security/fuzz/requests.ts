import type { Route } from '@tollbase/contract/route'
import { isRecord } from '../../../packages/server/src/base/is-record.ts'
import { listPaths } from '../../../packages/server/src/http/implement.ts'
import { routes } from '../../support/contract-replies.ts'
import { makeFromSchema, makeNearly, type Schema } from './from-schema.ts'
import { makeRandom, type Random } from './random.ts'
import {
  collections,
  makeIndexRequest,
  makeOdd,
  pickOddText,
  recordKeys,
  type Value,
} from './values.ts'

/**
 * One request as data. `{{name}}` in path, headers and body stands for what the fixture made (ids, keys,
 * payments), so that a request can be kept and sent again to another service.
 */
export type FuzzRequest = {
  readonly operation: string
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  /** Bytes that are no text, in base64; instead of `body`. */
  readonly bytes?: string
}

/**
 * The operations that take the fixture away from the requests after them; most are aimed at an application of their
 * own.
 */
const destructive = new Set([
  'archiveApplication',
  'deleteCollection',
  'revokeKey',
  'regenerateKey',
  'rotateKey',
  'updateApplication',
  'setPricing',
  'deleteView',
  'deleteQuery',
  'deleteBlob',
  'cancelUpload',
  'updateEncryption',
])

/** Makes the request of a position in a campaign: the same for the same seed, whatever ran before. */
export function makeRequest(seed: string, at: number): FuzzRequest {
  const random = makeRandom(`${seed}:${at}`)
  const [operation, route] = random.pick(routes)
  const app = destructive.has(operation) && random.chance(0.97) ? '{{spare}}' : '{{app}}'
  const body = makeRequestBody(operation, route, random)
  return {
    operation,
    method: random.chance(0.98) ? route.method : random.pick(['HEAD', 'PUT', 'PATCH', 'OPTIONS']),
    path: makePath(route, random, app),
    headers: { ...makeHeaders(random, app), ...makeOwnHeaders(operation, random) },
    ...(body !== undefined && encoded(body, random, app)),
  }
}

function makePath(route: Route, random: Random, app: string): string {
  const path = random
    .pick(listPaths(route))
    .replace(/:(\w+)/g, (_, name: string) => segment(name, random, app))
  const whole = path + makeQueryString(route, random)
  if (random.chance(0.04)) return mangled(whole, random)
  if (random.chance(0.96)) return whole
  return `${whole}${whole.includes('?') ? '&' : '?'}${unknownMember}=1`
}

function segment(name: string, random: Random, app: string): string {
  if (random.chance(0.06)) return random.pick(oddSegments)
  if (random.chance(0.04)) return encodeURIComponent(pickOddText(random).toWellFormed())
  const known: Readonly<Record<string, readonly string[]>> = {
    app: [...Array.from({ length: 12 }, () => app), '{{other}}', 'system', 'nobody'],
    collection: [...collections, 'nothing'],
    key: recordKeys.map(encodeURIComponent),
    name: [...indexes, ...['summary', 'asked', 'feed', 'cities'].flatMap((one) => [one, one])],
    id: [...ids, '{{id.relations}}', '{{id.grants}}', '{{id.authorizations}}'],
    blob: ['{{blob}}', '{{blob}}', '0'.repeat(64)],
    upload: ['{{upload}}', '{{upload}}', '{{blob}}'],
    key_hash: ['{{hash.victim}}', '{{hash.read}}', '0'.repeat(64)],
    height: ['1', '2', '0', '999999999', '9007199254740991', '-1', '1.5'],
    address: ['{{payer}}', `0x${'0'.repeat(40)}`],
  }
  return random.pick(known[name] ?? ['nothing'])
}

const indexes = ['plain_name_idx', 'plain_population_index', 'none', 'made_name_idx']
const ids = ['{{ticket}}', '{{payment}}', '{{receipt}}', 'plain_name_idx', 'none']

const oddSegments = [
  '%00',
  '%2f',
  '%2F..%2F',
  '%',
  '%c0%80',
  '%ff',
  '..',
  '%2e%2e',
  '.',
  ';a=b',
  '%20',
  '%0d%0aSet-Cookie:a',
  "'",
  '*',
  '%F0%9F%92%A5',
  '%ED%A0%80',
  '%u0041',
  'x'.repeat(1100),
]

function mangled(path: string, random: Random): string {
  const at = random.below(path.length + 1)
  const inserted = random.pick(['/', '//', '%', '%2f', '/../', '/./', '?', '#', ';', '%00', '\\'])
  const changed = path.slice(0, at) + inserted + path.slice(at)
  if (random.chance(0.2)) return path.toUpperCase()
  // An address begins with a slash, else it never leaves the client.
  return changed.startsWith('/') ? changed : `/${changed}`
}

function makeQueryString(route: Route, random: Random): string {
  const schema: Schema | undefined = route.query
  const pairs = Object.entries(schema?.properties ?? {}).flatMap(([name, inner]) => {
    if (random.chance(0.4)) return []
    const value = random.chance(0.8)
      ? String(makeFromSchema(inner, random, name))
      : random.pick([pickOddText(random), '1e3', '0x10', '007', 'TRUE', '', '99999999999999999999'])
    const text = encodeURIComponent(value.toWellFormed())
    return random.chance(0.04) ? [`${name}=${text}`, `${name}=1`] : [`${name}=${text}`]
  })
  if (random.chance(0.05)) {
    pairs.push(
      random.pick(['api_key={{key.admin}}', '__proto__=1', '=', '&&', 'a[]=1', '%zz=%', '%00=1']),
    )
  }
  return pairs.length === 0 ? '' : `?${pairs.join('&')}`
}

const credentials = [
  ...Array.from({ length: 12 }, () => 'admin' as const),
  'read',
  'write',
  'expired',
  'revoked',
  'foreign',
] as const

function makeHeaders(random: Random, app: string): Record<string, string> {
  const headers: Record<string, string> = {}
  const who = random.pick(credentials)
  const key = app === '{{spare}}' && who === 'admin' ? '{{key.spare}}' : `{{key.${who}}}`
  const carrier = random.below(12)
  if (carrier < 6) headers['x-app-key'] = key
  else if (carrier < 8) headers.authorization = `Bearer ${key}`
  else if (carrier < 9) headers.authorization = 'Bearer {{operator}}'
  else if (carrier < 10) headers['x-agent-key'] = key
  if (random.chance(0.03)) headers['x-api-key'] = random.pick(['', 'x', '{{key.read}}'])
  if (random.chance(0.03)) Object.assign(headers, walletHeaders(random))
  if (random.chance(0.1)) headers[random.pick(['x-payment', 'payment-signature'])] = payment(random)
  if (random.chance(0.03)) headers['x-http-method-override'] = 'DELETE'
  headers['content-type'] = random.chance(0.9) ? 'application/json' : random.pick(oddTypes)
  return headers
}

/** The headers that say what some operations do, and those that change how any is answered. */
function makeOwnHeaders(operation: string, random: Random): Record<string, string> {
  const headers: Record<string, string> = {}
  if (random.chance(0.05)) headers['idempotency-key'] = random.pick(['one', 'two', '', ' ', 'ä'])
  if (random.chance(0.03)) headers['if-match'] = random.pick(['"x"', '*', '', 'W/"x"'])
  if (random.chance(0.03)) headers.range = random.pick(['bytes=0-1', 'bytes=9-', 'bytes=-0', 'x=1'])
  if (random.chance(0.05)) headers.accept = random.pick(['text/csv', '*/*;q=x', 'image/*', ''])
  if (!operation.endsWith('Upload')) return headers
  const number = () => random.pick(['0', '5', '10', '-1', '1e3', '99999999999999999999', ''])
  if (random.chance(0.9)) headers['tus-resumable'] = random.chance(0.9) ? '1.0.0' : '0.2.2'
  if (random.chance(0.8)) headers['upload-length'] = number()
  if (random.chance(0.8)) headers['upload-offset'] = number()
  if (random.chance(0.5))
    headers['upload-metadata'] = random.pick(['filename Zm9v', 'a b c', ', ,', 'metadata e30='])
  if (operation === 'continueUpload' && random.chance(0.9))
    headers['content-type'] = 'application/offset+octet-stream'
  return headers
}

const oddTypes = [
  'application/json; charset=utf-16',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x',
  'text/plain',
  'x',
  ';',
  'application/json;;charset',
]

function walletHeaders(random: Random): Record<string, string> {
  const digits = (count: number) => random.list(count, () => random.below(16).toString(16)).join('')
  return {
    'x-wallet-address': random.pick(['{{payer}}', 'nobody', '', `0x${digits(40)}`]),
    'x-timestamp': random.pick(['{{seconds}}', '{{seconds}}', '0', '-1', '1e3', '99999999999999']),
    'x-signature': random.pick([
      `0x${digits(128)}1b`,
      `0x${'0'.repeat(128)}1c`,
      `0x${'f'.repeat(130)}`,
      `0x${digits(130)}`,
      'AAAA',
      '',
    ]),
  }
}

/** Picks a payment that was made for something, one with a part changed, or a text that only looks like one. */
function payment(random: Random): string {
  const made = random.pick(['{{v1.1}}', '{{v2.1}}', '{{v1.2}}', '{{v2.2}}'])
  if (random.chance(0.4)) return made
  const texts = ['', '{}', '[]', 'null', '{"x402Version":1}', '{"x402Version":2,"x402Version":1}']
  return random.pick([
    Buffer.from(random.pick(texts)).toString('base64'),
    Buffer.from(JSON.stringify(makeOdd(random)))
      .toString('base64')
      .slice(0, 4000),
    `${made}=`,
    made.toLowerCase(),
    'e30_',
    'not base64',
    'A'.repeat(7000),
  ])
}

/** A member that no endpoint knows: an endpoint that accepts it in silence would accept a misspelling too. */
export const unknownMember = 'zz_nobody_knows'

function makeRequestBody(operation: string, route: Route, random: Random): Value {
  if (route.body === undefined) return random.chance(0.03) ? makeOdd(random) : undefined
  if (route.bodyOptional === true && random.chance(0.4)) return undefined
  const schema: Schema = route.body
  const isIndex = operation === 'createIndex' || operation === 'createCollectionIndex'
  const valid = isIndex ? makeIndexRequest(random) : makeFromSchema(schema, random)
  if (isRecord(valid) && random.chance(0.05)) return { ...valid, [unknownMember]: 1 }
  const kind = random.below(10)
  if (kind < 6) return valid
  return kind < 9 ? makeNearly(valid, random) : makeOdd(random)
}

/** Prints the JSON text of the value, now and then changed in a way that no value can express. */
function encoded(value: Value, random: Random, app: string): { body?: string; bytes?: string } {
  const text = (JSON.stringify(value) ?? '').replaceAll('{{app}}', app)
  if (random.chance(0.93)) return { body: text }
  const at = random.below(text.length + 1)
  const [before, after] = [text.slice(0, at), text.slice(at)]
  switch (random.below(8)) {
    case 0:
      return { body: before }
    case 1:
      return { body: `\ufeff${text}` }
    case 2:
      return {
        body: text.replace(/\d+/, random.pick(['1e400', '9007199254740993', '01', '1E-500'])),
      }
    case 3:
      return { body: text.replace(/"(\w+)":/, '"$1":1,"$1":') }
    case 4:
      return { body: text.replace('"', '"\\u0000') }
    case 5:
      return { body: text.replace(/:("\w*"|\d+)/, `:${'['.repeat(50_000)}${']'.repeat(50_000)}`) }
    case 6:
      return {
        bytes: Buffer.concat([Buffer.from(before), Buffer.of(0xff), Buffer.from(after)]).toString(
          'base64',
        ),
      }
    default:
      return { body: before + random.pick(['"', '}', ']', '\\', ',', '\u0000', '/**/']) + after }
  }
}
