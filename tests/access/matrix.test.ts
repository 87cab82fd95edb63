import type { Route } from '@tollbase/contract/route'
import { beforeAll, describe, expect, test } from 'vitest'
import { takeShare } from '../support/by-commit.ts'
import { routes } from '../support/contract-replies.ts'
import { withService } from '../support/per-engine.ts'
import type { TestReply, TestService } from '../support/service.ts'
import type { Credential, Request } from './credentials.ts'
import { findExpected, type Kind } from './oracle.ts'
import {
  addressedByBody,
  allowedUpstreams,
  isRepeatable,
  listKinds,
  makeExample,
  openScene,
  type Scene,
  unreadable,
} from './scene.ts'

/** Nobody pays here, so the network need not exist. */
const network = {
  network: 'base-sepolia',
  pay_to: `0x${'22'.repeat(20)}`,
  minimum_payment: 1,
  facilitator_url: 'http://127.0.0.1:9',
}

describe('rights by the contract', () =>
  withService(
    (service) => {
      let scene: Scene
      beforeAll(async () => {
        scene = await openScene(service())
      })

      test.each(takeShare(routes.filter(isRepeatable), 2))(
        '%s answers to each credential as the interface says, on every path and kind of collection',
        async (operation, route) => {
          for (const kind of listKinds([operation, route])) {
            const { requests, success } = makeExample([operation, route], { scene, kind })
            for (const request of requests) {
              const seen = await outcomes(service(), request, scene.credentials)
              expect(seen, `${request.method} ${request.path} (${kind})`).toEqual(
                wanted([operation, route], { scene, kind, success }),
              )
            }
          }
        },
      )

      test('archiving alone has an effect that cannot be repeated, and it is for Admin, the owner and the operator', async () => {
        const once = routes.filter((one) => !isRepeatable(one)).map(([operation]) => operation)
        expect(once).toEqual(['archiveApplication'])
        const route = routes.find(([operation]) => operation === 'archiveApplication')
        if (route === undefined) throw new Error('archiveApplication is missing')
        for (const allowed of ['Admin', 'operator', 'owner'] as const) {
          const fresh = await openScene(service())
          const { requests, success } = makeExample(route, { scene: fresh, kind: 'free' })
          const refused = fresh.credentials.filter(
            ({ standing }) =>
              findExpected({ operation: 'archiveApplication', ...route[1] }, standing, 'free') !==
              'in',
          )
          const most = wanted(route, {
            scene: { ...fresh, credentials: refused },
            kind: 'free',
            success,
          })
          for (const request of requests)
            expect(await outcomes(service(), request, refused)).toEqual(most)
          const may = fresh.credentials.filter(({ standing }) => standing === allowed)
          const [first] = requests
          if (first === undefined) throw new Error('no path')
          expect(Object.values(await outcomes(service(), first, may))).toEqual(['200'])
          expect(Object.values(await outcomes(service(), first, may))).toEqual([
            allowed === 'owner' ? '404 APPLICATION_NOT_FOUND' : expect.stringMatching(/^40[14] /),
          ])
        }
      })

      test.each(routes.filter(([, route]) => route.path.includes(':app')))(
        '%s of an application that is not there is 404 to every good credential',
        async (operation, route) => {
          const nowhere = { ...scene, app: { ...scene.app, appId: 'not-there' } }
          const { requests } = makeExample([operation, route], { scene: nowhere, kind: 'free' })
          for (const request of requests) {
            const seen = await outcomes(service(), request, scene.credentials)
            for (const { name, standing } of scene.credentials) {
              const gone = standing === 'dead' ? '401 UNAUTHORIZED' : '404 APPLICATION_NOT_FOUND'
              expect(seen[name], `${request.path} by ${name}`).toBe(gone)
            }
          }
        },
      )

      test.each(addressedByBody)(
        '%s judges the credential before the body, and the body before what it addresses',
        async (operation) => {
          const route = routes.find(([name]) => name === operation)
          if (route === undefined) throw new Error(`${operation} is missing`)
          const { requests } = makeExample(route, { scene, kind: 'private' })
          for (const request of requests) {
            const seen = await outcomes(
              service(),
              { ...request, raw: unreadable },
              scene.credentials,
            )
            for (const { name, standing } of scene.credentials) {
              const needsKey = operation === 'storeRecords' && standing === 'nobody'
              const isRefused = standing === 'dead' || needsKey
              expect(seen[name], name).toBe(
                isRefused ? '401 UNAUTHORIZED' : '400 VALIDATION_FAILED',
              )
            }
          }
        },
      )

      test('an endpoint that is judged by policy and that nobody has written down fails this file', () => {
        const unwritten = {
          operation: 'sellTheMoon',
          access: 'by-policy',
          shows: 'accounts',
        } as const
        expect(findExpected(unwritten, 'nobody', 'free')).toBeUndefined()
        for (const [operation, route] of routes)
          expect(findExpected({ operation, ...route }, 'nobody', 'free'), operation).toBeDefined()
      })
    },
    { config: { networks: [network], registration: 'open', allowedUpstreams } },
  ))

/** Status and code by the name of the credential. */
async function outcomes(
  service: TestService,
  request: Request,
  credentials: readonly Credential[],
): Promise<Record<string, string>> {
  const seen: Record<string, string> = {}
  for (const { name, headers } of credentials) {
    const { method, path, raw } = request
    const reply = await service.request(method, path, {
      headers: await headers(request),
      ...(raw !== undefined && { raw }),
    })
    seen[name] = toOutcome(reply)
  }
  return seen
}

function toOutcome({ status, body }: TestReply): string {
  if (status < 300) return String(status)
  // The 402 has the form of x402, and no code.
  if (status === 402 && Array.isArray(body.accepts)) return '402 PAYMENT_REQUIRED'
  expect(Object.keys(body)).not.toContain('records')
  return `${status} ${body.code}`
}

function wanted(
  [operation, route]: readonly [string, Route],
  { scene, kind, success }: { scene: Scene; kind: Kind; success: string },
): Record<string, string> {
  const entries = scene.credentials.map(({ name, standing }): [string, string] => {
    const outcome = findExpected({ operation, ...route }, standing, kind)
    if (outcome === undefined) throw new Error(`${operation}: write down who may call it`)
    return [name, outcome === 'in' ? success : outcome]
  })
  return Object.fromEntries(entries)
}
