import type { Access, Shows } from '@tollbase/contract/route'
import { beforeAll, describe, expect, test } from 'vitest'
import { takeShare } from '../support/by-commit.ts'
import { routes } from '../support/contract-replies.ts'
import { withService } from '../support/per-engine.ts'
import type { TestReply, TestService } from '../support/service.ts'
import type { Credential, Request } from './credentials.ts'
import { kinds, type Standing } from './oracle.ts'
import { allowedUpstreams, makeExample, openScene, type Scene } from './scene.ts'

/** The number of records of the sold and the private collections: no other number here is the same. */
const count = 1237

/** The secrets that must not be told, and the texts by which each is known. */
const secrets = {
  record: /sealed-record/,
  key: /sealed-key/,
  sold: /sold-record/,
  schema: /sealed_field/,
  view: /sealed-view/,
  query: /sealed-query/,
  count: new RegExp(`[: \\["]${count}[,}\\] ]`),
} as const
type Secret = keyof typeof secrets

/** The standings that may be told each secret; all others are told nothing of it. */
const mayKnow: Readonly<Record<Secret, readonly Standing[]>> = {
  record: ['Read', 'Admin', 'owner'],
  key: ['Read', 'Admin', 'owner'],
  // Sold data is not private, and the operator may do what Admin may.
  sold: ['Read', 'Admin', 'owner', 'operator'],
  schema: ['Read', 'Admin', 'owner', 'operator'],
  view: ['Read', 'Admin', 'owner', 'operator'],
  query: ['Read', 'Admin', 'owner', 'operator'],
  count: ['Read', 'Admin', 'owner', 'operator'],
}

/** Bodies that an endpoint accepts, beside those of the matrix. */
const bodies: Readonly<Record<string, (kind: string) => readonly object[]>> = {
  createCollection: () => [{ name: 'private' }, { name: 'another' }],
  createIndex: (kind) => [{ collection: kind, field: 'other' }],
  createCollectionIndex: () => [{ field: 'n' }],
  createRelation: (kind) => [
    {
      parent_collection: kind,
      parent_field: 'id',
      child_collection: 'free',
      child_field: `of_${kind}`,
    },
  ],
  validateRecord: () => [{ data: { id: 'v' } }],
  executeBatch: (kind) => [
    { operations: [{ operation: 'create', collection: kind, data: { id: 'b' } }] },
    {
      operations: [{ operation: 'update', collection: kind, data: { n: 2 }, conditions: { n: 1 } }],
    },
  ],
  refreshView: () => [{}],
  explainQuery: () => [{ query: { find: { n: 1 } } }, { query: { find: {} } }],
  dryRunQuery: () => [{}],
  updateCollection: () => [{}],
  setSharding: () => [{ keys: [] }],
  migrateCollection: () => [{ schema: {}, dryRun: true }],
  createView: (kind) => [{ name: 'more', source_collections: [kind], query: {}, or_replace: true }],
  createQuery: (kind) => [{ name: `more_${kind}`, source_collection: kind }],
}

const quotes = (app_id: string, collection: string) =>
  ['read', 'write'].map((operation_type) => ({
    app_id,
    collection,
    operation_type,
    size_kb: 1,
    rows: 1,
  }))

const outsiders = ['nobody', 'stranger', 'wallet', 'dead', 'Write', 'Pay', 'operator'] as const

describe('facts that endpoints tell, by the contract', () =>
  withService(
    (service) => {
      let scene: Scene
      beforeAll(async () => {
        scene = await openScene(service())
        await seal(service(), scene)
      })
      const by = (standing: Standing): Credential => {
        const found = scene.credentials.find((one) => one.standing === standing)
        if (found === undefined) throw new Error(`nobody is ${standing}`)
        return found
      }

      test.each(takeShare(outsiders, 2))(
        'no endpoint tells %s a record, a schema, a text or a count that is not for him',
        async (standing) => {
          for (const [what, request] of listRequests(scene)) {
            const { text } = await ask(service(), request, by(standing))
            for (const [secret, form] of Object.entries(secrets))
              if (!mayKnow[secret as Secret].includes(standing))
                expect(text, `${what} by ${standing}`).not.toMatch(form)
          }
        },
      )

      test.each(['Read', 'Admin', 'owner'] as const)(
        '%s is told all of it, so that the test above looks for facts that exist',
        async (standing) => {
          const told = new Set<string>()
          for (const [, request] of listRequests(scene)) {
            if (request.method !== 'GET') continue
            const { text } = await ask(service(), request, by(standing))
            for (const [secret, form] of Object.entries(secrets))
              if (form.test(text)) told.add(secret)
          }
          expect([...told].sort()).toEqual(Object.keys(secrets).sort())
        },
      )

      test('a key that may only write can do all that writing needs', async () => {
        const { appId } = scene.app
        const write = by('Write')
        const send = async (path: string, body: object, status: number) => {
          const raw = JSON.stringify(body)
          const reply = await ask(service(), { method: 'POST', path, raw }, write)
          expect(reply.status, `${path}: ${reply.text}`).toBe(status)
          return reply.body
        }
        const at = `/api/apps/${appId}`
        const made = await send(`${at}/collections`, { name: 'written' }, 201)
        expect(made.name).toBe('written')
        await send(`${at}/indexes`, { collection: 'written', field: 'n' }, 200)
        await send(`${at}/collections/private/indexes`, { field: 'm' }, 200)
        await send(`${at}/collections/private/validate`, { data: { id: 'x' } }, 200)
        const root = `${appId}::private`
        const stored = await send('/store?wait=true', { root, data: [{ id: 'w' }] }, 200)
        const task = await ask(
          service(),
          { method: 'GET', path: `/task/${stored.ticket_id}` },
          by('Write'),
        )
        expect(task.body.status).toBe('Completed')
        const quote = { app_id: appId, collection: 'private', operation_type: 'write', size_kb: 1 }
        const quoted = await send('/api/pricing/quote', quote, 200)
        expect(quoted.indexed_fields_count).toBeGreaterThan(0)
        const refreshed = await send(`${at}/views/view_private/refresh`, {}, 200)
        expect(Object.keys(refreshed).sort()).toEqual(['message', 'success', 'ticket_id'])
        for (const path of [`${at}/tasks`, `${at}/collections`])
          expect((await ask(service(), { method: 'GET', path }, write)).status).toBe(200)
      })

      test('a key that may only write is told the key of no record that has the same value', async () => {
        const { appId, headers } = scene.app
        const send = async (path: string, body: object, asked = by('Write')) => {
          const request = { method: 'POST', path, raw: JSON.stringify(body) }
          return ask(service(), request, asked)
        }
        const known = [{ id: 'sealed-key-of-one', mail: 'one@example.org' }]
        const root = `${appId}::private`
        await service().request('POST', '/store?wait=true', {
          body: { root, data: known },
          headers,
        })
        const index = { field: 'mail', unique: true }
        const at = `/api/apps/${appId}`
        expect((await send(`${at}/collections/private/indexes`, index)).status).toBe(200)
        const data = { id: 'mine', mail: 'one@example.org' }
        const operations = [{ operation: 'create', collection: 'private', data }]
        const tries: readonly (readonly [string, object])[] = [
          ['/store', { root, data: [data], strict: true }],
          [`${at}/batch`, { operations, strict: true }],
        ]
        for (const [path, body] of tries) {
          const told = await send(path, body)
          expect(told).toMatchObject({ status: 409, body: { code: 'RECORD_EXISTS' } })
          expect(told.text).not.toMatch(secrets.key)
          expect((await send(path, body, by('Admin'))).text).toMatch(secrets.key)
        }
      })

      test('each endpoint asks for what its answer needs', () => {
        const needs: Readonly<Record<Shows, readonly Access[]>> = {
          service: ['public'],
          outcome: ['public', 'by-policy', 'Write', 'Admin', 'registrar'],
          // A public list shows strangers what is open to them; tests above cover that.
          definitions: ['public', 'by-policy', 'Read', 'Admin', 'owner', 'operator'],
          records: ['by-policy', 'Read'],
          hashes: ['by-policy'],
          named: ['public', 'Read or Write'],
          // Each endpoint that is judged by policy has a row of its own in the oracle.
          accounts: ['Admin', 'owner', 'operator', 'by-policy'],
        }
        for (const [operation, { access, shows }] of routes) {
          // The balance of a wallet is told to everyone who knows its address, as on a chain.
          if (operation !== 'getWallet') expect(needs[shows], operation).toContain(access)
        }
      })
    },
    { config: { allowedUpstreams } },
  ))

/** Stores the secrets at the places from which they must not be told. */
async function seal(service: TestService, { app }: Scene): Promise<void> {
  const at = `/api/apps/${app.appId}`
  const send = async (method: string, path: string, body: object) => {
    const reply = await service.request(method, path, { body, headers: app.headers })
    if (reply.status >= 300) throw new Error(`${path}: ${reply.status} ${reply.text}`)
  }
  const schema = { fields: { sealed_field: { type: 'string' } } }
  for (const kind of ['key', 'private'])
    await send('PUT', `${at}/collections/${kind}`, { schema_definition: schema })
  for (const kind of ['priced', 'key', 'private']) {
    const data = Array.from({ length: count }, (_, n) => ({
      id: n === 0 ? 'a' : `${kind === 'priced' ? 'r' : 'sealed-key'}${n}`,
      n: 1,
      text: kind === 'priced' ? 'sold-record' : 'sealed-record',
    }))
    await send('POST', '/store?wait=true', { root: `${app.appId}::${kind}`, data })
  }
  for (const kind of ['key', 'private']) {
    await send('POST', `${at}/views`, {
      name: `sealed_${kind}`,
      source_collections: [kind],
      query: { find: { text: { $ne: 'sealed-view' } } },
      refresh_mode: 'live',
    })
    await send('POST', `${at}/queries`, {
      name: `sealed_${kind}`,
      sql: `SELECT id FROM "${app.appId}"::${kind} WHERE text <> 'sealed-query'`,
    })
  }
}

/** Lists every endpoint, for each kind of collection, with bodies that it accepts and with the one of the matrix. */
function listRequests(scene: Scene): (readonly [string, Request])[] {
  const asked: (readonly [string, Request])[] = []
  const { appId } = scene.app
  for (const route of routes) {
    const [operation, { path }] = route
    if (operation === 'archiveApplication') continue
    for (const kind of kinds) {
      const [request] = makeExample(route, { scene, kind }).requests
      if (request === undefined) throw new Error(`${operation} has no path`)
      const named = /:name/.test(path) && /view|quer/.test(path)
      const own = bodies[operation]?.(kind) ?? []
      const all = [
        request,
        ...[...own, ...(operation === 'quotePrice' ? quotes(appId, kind) : [])].map((body) => ({
          ...request,
          raw: JSON.stringify(body),
        })),
      ]
      const paths = [
        (text: string) => text,
        ...(named
          ? [(text: string) => text.replace(/(view|query)_(key|private)/, 'sealed_$2')]
          : []),
      ]
      for (const one of all)
        for (const change of paths)
          asked.push([`${operation} (${kind})`, { ...one, path: change(one.path) }])
    }
  }
  return asked
}

async function ask(
  service: TestService,
  request: Request,
  credential: Credential,
): Promise<TestReply> {
  const { method, path, raw } = request
  return service.request(method, path, {
    headers: await credential.headers(request),
    ...(raw !== undefined && { raw }),
  })
}
