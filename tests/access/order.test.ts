import type { Route } from '@tollbase/contract/route'
import { beforeAll, describe, expect, test } from 'vitest'
import { isRecord } from '../../packages/server/src/base/is-record.ts'
import { toKnownInput } from '../../packages/server/src/http/known-input.ts'
import { compileCheck } from '../../packages/server/src/http/validate.ts'
import { routes } from '../support/contract-replies.ts'
import { idleNetwork } from '../support/idle-network.ts'
import { withService } from '../support/per-engine.ts'
import type { TestReply, TestService } from '../support/service.ts'
import type { Credential, Request } from './credentials.ts'
import { findExpected, type Kind, type Outcome, type Standing } from './oracle.ts'
import {
  addressedByBody,
  allowedUpstreams,
  type Example,
  listKinds,
  makeExample,
  openScene,
  type Scene,
  unreadable,
} from './scene.ts'

/**
 * Every request here is wrong in at least two ways: in its sender or its target, and in its form, its payment or
 * both. The requests are made from the contract's entry for each endpoint, and the one order decides which refusal
 * is told.
 */

/** One flaw of a request beside others. */
type Flaw = {
  readonly name: string
  readonly of: (request: Request) => Request
  readonly headers?: Readonly<Record<string, string>>
  /** `shape`: 400 to all; `payment`: 400 to those who would be asked to pay; `illegible`: a shape that names nothing. */
  readonly kind: 'shape' | 'payment' | 'illegible'
}

const badPayment = { 'x-payment': 'no payment' }

/** The members of a body that name its target: they stay, so that rights can be judged. */
const naming = ['root', 'sql', 'app_id', 'app', 'collection', 'query', 'operation_type']

function listFlaws(operation: string, route: Route): Flaw[] {
  const found: Flaw[] = [
    { name: 'an unknown parameter', of: withText('unheard', '1'), kind: 'shape' },
  ]
  const typed = Object.entries(route.query?.properties ?? {}).find(
    ([, schema]) => 'type' in schema && schema.type !== 'string',
  )
  if (typed) found.push({ name: `a bad ${typed[0]}`, of: withText(typed[0], 'ill'), kind: 'shape' })
  if (route.body) {
    if (toKnownInput(operation, route).body !== undefined)
      found.push({ name: 'an unknown member', of: withMember('unheard', 1), kind: 'shape' })
    const bad = badMember(route)
    if (bad) found.push({ name: `a bad ${bad[0]}`, of: withMember(...bad), kind: 'shape' })
    const deep = operationsOwn[operation]
    if (deep) found.push({ name: 'what cannot be asked', of: withMembers(deep), kind: 'shape' })
    found.push({ name: 'no JSON', of: (one) => ({ ...one, raw: unreadable }), kind: 'illegible' })
  }
  if (route.paid === true) {
    const headers = badPayment
    found.push({ name: 'a bad payment', of: (one) => one, headers, kind: 'payment' })
    const both = withText('unheard', '1')
    found.push({ name: 'a bad payment and parameter', of: both, headers, kind: 'shape' })
  }
  return found
}

function withText(name: string, text: string) {
  return (request: Request): Request => {
    const mark = request.path.includes('?') ? '&' : '?'
    return { ...request, path: `${request.path}${mark}${name}=${text}` }
  }
}

function withMember(name: string, value: unknown) {
  return withMembers(() => ({ [name]: value }))
}

function withMembers(change: (body: Readonly<Record<string, unknown>>) => object) {
  return (request: Request): Request => {
    const { raw = '' } = request
    const sent: unknown = raw === '' || raw === unreadable ? {} : JSON.parse(raw)
    const body = isRecord(sent) ? sent : {}
    return { ...request, raw: JSON.stringify({ ...body, ...change(body) }) }
  }
}

/** Changes that the schema of a body accepts, and its operation does not. */
const operationsOwn: Readonly<Record<string, Parameters<typeof withMembers>[0]>> = {
  listRecords: () => ({ find: { n: { nonsense: 1 } } }),
  querySql: ({ sql }) => ({ sql: `${sql} OFFSET nonsense(1)` }),
  storeRecords: () => ({ data: ['no record'] }),
}

/** A member that the schema knows, with a value that it refuses. */
function badMember({ body }: Route): [string, unknown] | undefined {
  const members = body && 'properties' in body && isRecord(body.properties) ? body.properties : {}
  for (const [name, schema] of Object.entries(members)) {
    if (naming.includes(name) || !isRecord(schema)) continue
    const check = compileCheck(schema)
    const value = [7, 'ill', [[]], true].find((one) => isRefused(() => check(one, '')))
    if (value !== undefined) return [name, value]
  }
  return undefined
}

function isRefused(check: () => void): boolean {
  try {
    check()
    return false
  } catch {
    return true
  }
}

describe('the order of refusals', () =>
  withService(
    (service) => {
      let scene: Scene
      let everybody: readonly Credential[]
      /** The pairs of refusals: the one that was told, and the one in whose place it was told. */
      const judged = new Set<string>()
      beforeAll(async () => {
        scene = await openScene(service())
        const one = new Map(scene.credentials.toReversed().map((each) => [each.standing, each]))
        everybody = [...one.values()]
      })

      test.each(routes)('%s judges rights, then shape, then price', async (operation, route) => {
        for (const kind of listKinds([operation, route])) {
          const example = makeExample([operation, route], { scene, kind })
          const by = everybody.filter(({ standing }) => isCheap(standing) || isTelling(kind))
          for (const flaw of listFlaws(operation, route)) {
            // It names no kind.
            if (flaw.kind === 'illegible' && kind !== 'free') continue
            const request = flawed(example, flaw)
            const seen = await outcomes(service(), { request, flaw, by })
            const wanted = by.map(({ name, standing }) => {
              const right = findExpected({ operation, ...route }, standing, kind)
              if (right === undefined) throw new Error(`${operation}: write down who may call it`)
              const first = findFirst([operation, route], { right, flaw, standing, example })
              if (flaw.kind === 'shape') judged.add(formatPair(right, first))
              return [name, first]
            })
            const what = `${request.method} ${request.path} with ${flaw.name} (${kind})`
            expect(seen, what).toEqual(Object.fromEntries(wanted))
          }
        }
      })

      test('a batch by conditions needs Read, whatever else is wrong with it', async () => {
        const steps = [{ operation: 'update', collection: 'free', conditions: { n: 1 } }, 7]
        const raw = JSON.stringify({ operations: steps, unheard: 1 })
        const request = { method: 'POST', path: `/api/apps/${scene.app.appId}/batch`, raw }
        const by = everybody.filter(({ name }) => ['Write', 'Admin'].includes(name))
        expect(await outcomes(service(), { request, by })).toEqual({
          Write: '403 FORBIDDEN',
          Admin: '400',
        })
      })

      test('every two kinds of refusal have met in this file', () => {
        expect([...judged].sort()).toEqual([
          '400 before 402',
          '400 before success',
          '401 before 400',
          '403 before 400',
          '404 before 400',
        ])
      })

      test.each(routes.filter(([, route]) => listNames(route).length > 0))(
        '%s reports what does not exist before what is wrong',
        async (operation, route) => {
          const admin = everybody.filter(({ standing }) => standing === 'Admin')
          const example = makeExample([operation, route], { scene, kind: 'free' })
          for (const name of listNames(route)) {
            // The first index makes its collection, and so does the first blob.
            const makes = ['createCollectionIndex', 'uploadBlob', 'createUpload'].includes(
              operation,
            )
            if (makes && name === 'collection') continue
            for (const flaw of listFlaws(operation, route)) {
              if (flaw.kind === 'payment') continue
              const request = renamed(flawed(example, flaw), route, name)
              const seen = await outcomes(service(), { request, flaw, by: admin })
              const what = `${request.method} ${request.path} with ${flaw.name}`
              expect(Object.values(seen), what).toEqual([
                name === 'app'
                  ? '404 APPLICATION_NOT_FOUND'
                  : expect.stringMatching(/^404 .*_NOT_FOUND$/),
              ])
            }
          }
        },
      )
    },
    { config: { networks: [idleNetwork], registration: 'open', allowedUpstreams } },
  ))

/** A signature takes more work than all else of a request. */
function isCheap(standing: Standing): boolean {
  return standing !== 'wallet' && standing !== 'owner'
}

/** Kinds of collection that between them have every answer to a signature. */
function isTelling(kind: Kind): boolean {
  return kind === 'sold' || kind === 'private' || kind === 'free'
}

function flawed({ requests }: Example, flaw: Flaw): Request {
  const [canonical] = requests
  if (canonical === undefined) throw new Error('no path')
  return flaw.of(canonical)
}

/** The refusal of the highest rank, or what answers to those who may ask. */
function findFirst(
  [operation, route]: readonly [string, Route],
  wrong: {
    readonly right: Outcome
    readonly standing: Standing
    readonly flaw: Flaw
    readonly example: Example
  },
): string {
  const { right, standing, flaw, example } = wrong
  if (flaw.kind === 'illegible' && addressedByBody.includes(operation)) {
    const needsKey = operation === 'storeRecords' && standing === 'nobody'
    return standing === 'dead' || needsKey ? '401 UNAUTHORIZED' : '400'
  }
  const isBuyer = right.startsWith('402')
  if (right !== 'in' && !isBuyer) return right
  // Clients fill in something where nothing is owed.
  if (flaw.kind === 'payment' && !isBuyer) return example.success.replace(/^400 .*/, '400')
  const isAbsent = example.success.startsWith('404') && route.shows !== 'named'
  return isAbsent ? example.success : '400'
}

function formatPair(right: Outcome, first: string): string {
  const [rank = ''] = first.split(' ')
  if (rank !== '400') return `${rank} before 400`
  return right.startsWith('402') ? '400 before 402' : '400 before success'
}

/** Parameters of a path that name what is looked for before the request is read. */
function listNames({ path, shows }: Route): string[] {
  const names = [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => name)
  const late = shows === 'named' ? ['id', 'pass_id'] : []
  return names.filter((name) => !['key', 'height', 'address', 'payment_id', ...late].includes(name))
}

/** Replaces the value of a parameter of the path. */
function renamed(request: Request, route: Route, name: string): Request {
  const at = route.path.split('/').indexOf(`:${name}`)
  const [path = '', query] = request.path.split('?')
  const parts = path.split('/').map((part, place) => (place === at ? 'not_there' : part))
  return { ...request, path: parts.join('/') + (query === undefined ? '' : `?${query}`) }
}

/** Lists the status, and the code where it is no 400, by the name of the credential. */
async function outcomes(
  service: TestService,
  { request, flaw, by }: { request: Request; flaw?: Flaw; by: readonly Credential[] },
): Promise<Record<string, string>> {
  const seen = by.map(async ({ name, headers }): Promise<[string, string]> => {
    const { method, path, raw } = request
    const reply = await service.request(method, path, {
      headers: { ...(await headers(request)), ...flaw?.headers },
      ...(raw !== undefined && { raw }),
    })
    return [name, toOutcome(reply)]
  })
  return Object.fromEntries(await Promise.all(seen))
}

function toOutcome({ status, body }: TestReply): string {
  return status < 300 || status === 400 ? String(status) : `${status} ${body.code}`
}
