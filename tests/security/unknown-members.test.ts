import { tollbase } from '@tollbase/contract/contract'
import { buildOpenApi } from '@tollbase/contract/openapi'
import type { Route } from '@tollbase/contract/route'
import { tolerated } from '@tollbase/contract/tolerated-members'
import { beforeAll, describe, expect, test } from 'vitest'
import { toKnownMembers } from '../../packages/server/src/base/known-members.ts'
import { isBodyJudged } from '../../packages/server/src/http/implement.ts'
import { allowedUpstreams, makeExample, openScene, type Scene } from '../access/scene.ts'
import { routes } from '../support/contract-replies.ts'
import { createData, type Data, makeData } from '../support/data.ts'
import { withService } from '../support/per-engine.ts'
import type { TestService } from '../support/service.ts'
import { askSigned } from '../support/wallet.ts'

const nobodys = 'zz_nobody_knows'
const takesAnyQuery = ({ query }: Route) =>
  query !== undefined && toKnownMembers(query) === undefined

async function makeThere(service: TestService, { app }: Scene) {
  const { appId: grantee } = await service.createApp()
  const make = async (path: string, body: object) => {
    const made = await makeData(service, app).call('POST', path, body)
    if (made.status !== 201) throw new Error(made.text)
    return made.body
  }
  const grant = await make('/grants', { grantee, collection: 'free', per_access: '1' })
  const relation = await make('/relations', {
    parent_collection: 'free',
    parent_field: 'n',
    child_collection: 'priced',
    child_field: 'n',
  })
  const authorization = await make('/authorizations', { grantee, spend_limit: '1' })
  await make('/datasets', { name: 'by_n', kind: 'values', entries: [1] })
  await make('/queries', { name: 'by_n', source_collection: 'free' })
  const form = new FormData()
  form.append('blob', 'x')
  const at = `${service.url}/api/apps/${app.appId}/blobs/files?wait=true`
  const sent = await fetch(at, { method: 'POST', body: form, headers: app.headers })
  const { blob_id: blobId } = JSON.parse(await sent.text())
  const blob = ['free/blob_of_this_id_is_not_there', `files/${blobId}`] as const
  const begun = await service.request('POST', `/api/apps/${app.appId}/blobs/files/uploads`, {
    headers: { ...app.headers, 'upload-length': '10' },
  })
  const openId = `files/uploads/${begun.body.upload_id}`
  const open = ['free/uploads/upload_of_this_id_is_not_there', openId] as const
  const absent = 'nothing_of_this_id'
  const key = ['0'.repeat(64), app.keyHash] as const
  return {
    getBlob: blob,
    deleteBlob: blob,
    getUpload: open,
    continueUpload: open,
    finishUpload: open,
    cancelUpload: open,
    rotateKey: key,
    revokeKey: key,
    revokeGrant: [absent, grant.id],
    deleteGrant: [absent, grant.id],
    revokeAuthorization: [absent, authorization.id],
    deleteRelation: [absent, relation.id],
    deleteIndex: [absent, 'free_n_index'],
    deleteCollectionIndex: ['not_there', 'by_n'],
  } as const
}

describe('members that are not known', () =>
  withService(
    (service) => {
      let scene: Scene
      let data: Data
      /** The things that the scene's examples name and that are absent, which would be told first. */
      let there: Readonly<Record<string, readonly [absent: string, present: string]>>
      beforeAll(async () => {
        scene = await openScene(service())
        there = await makeThere(service(), scene)
        data = await createData(service())
        await data.store('c', [{ id: 'a', n: 1 }])
      })
      const makeRequest = ([operation, route]: readonly [string, Route]) => {
        const [request] = makeExample([operation, route], { scene, kind: 'free' }).requests
        if (request === undefined) throw new Error('no example')
        const [absent, present] = there[operation] ?? ['', '']
        return { ...request, path: request.path.replace(absent, present) }
      }
      /** Asks as a caller who may; of a wallet that is its owner alone, not the operator. */
      const askAs = (
        [operation, { access }]: readonly [string, Route],
        request: { readonly method: string; readonly path: string; readonly body?: object },
      ) => {
        if (operation === 'withdrawFromWallet') return askSigned(service(), scene.owner, request)
        const isForOwners = ['operator', 'owner', 'registrar'].includes(access)
        const headers = isForOwners ? service().operator : scene.app.headers
        const { method, path, body } = request
        return service().request(method, path, { headers, ...(body && { body }) })
      }

      // A payout is told to be absent first, and there is none where nothing was earned.
      const isThere = ([operation]: (typeof routes)[number]) => operation !== 'cancelPayout'
      test.each(routes.filter((one) => !takesAnyQuery(one[1]) && isThere(one)))(
        'an unknown member in the query string of %s is refused and named',
        async (operation, route) => {
          const request = makeRequest([operation, route])
          const mark = request.path.includes('?') ? '&' : '?'
          const reply = await askAs([operation, route], {
            method: request.method,
            path: `${request.path}${mark}${nobodys}=1`,
            ...(route.body !== undefined && { body: {} }),
          })
          expect(reply, reply.text).toMatchObject({
            status: 400,
            body: { code: 'UNKNOWN_MEMBER', details: { field: `/query/${nobodys}` } },
          })
        },
      )

      const takesAnyBody = ({ body }: Route) =>
        body !== undefined && toKnownMembers(body) === undefined
      const isJudged = ([, route]: (typeof routes)[number]) =>
        isBodyJudged(route) && !takesAnyBody(route)
      test.each(routes.filter((one) => isJudged(one) && isThere(one)))(
        'an unknown member in the body of %s is refused and named',
        async (operation, route) => {
          const request = makeRequest([operation, route])
          const { method, path } = request
          const reply = await askAs([operation, route], { method, path, body: { [nobodys]: 1 } })
          expect(reply, reply.text).toMatchObject({
            status: 400,
            body: { code: 'UNKNOWN_MEMBER', details: { field: `/${nobodys}` } },
          })
        },
      )

      test.each<readonly [string, string, string, object, string, string | undefined]>([
        ['a list', 'POST', '/list', { root: 'APP::c', where: { n: 1 } }, '/where', 'find'],
        ['a list', 'POST', '/list', { root: 'APP::c', limt: 1 }, '/limt', 'limit'],
        ['SQL', 'POST', '/query/sql', { query: 'SELECT 1' }, '/query', 'sql'],
        [
          'a schema beside another name',
          'POST',
          'COLLECTIONS',
          { name: 'x', schema: { fields: {} } },
          '/schema',
          'schema_definition',
        ],
        [
          'a field of a schema',
          'POST',
          'COLLECTIONS',
          { name: 'x', schema_definition: { fields: { n: { typ: 'number' } } } },
          '/schema_definition/fields/n/typ',
          'type',
        ],
        [
          'a validation',
          'POST',
          'COLLECTIONS',
          { name: 'x', schema_definition: { fields: { n: { validation: { minimum: 1 } } } } },
          '/schema_definition/fields/n/validation/minimum',
          undefined,
        ],
        [
          'a keyword of JSON Schema',
          'POST',
          'COLLECTIONS',
          { name: 'x', schema_definition: { properties: { n: { minimun: 1 } } } },
          '/schema_definition/properties/n/minimun',
          'minimum',
        ],
        [
          'a schema_definition with another word for fields',
          'POST',
          'COLLECTIONS',
          { name: 'x', schema_definition: { field: { n: { type: 'number' } } } },
          '/schema_definition/field',
          'fields',
        ],
        [
          'a migration',
          'POST',
          'COLLECTIONS/c/migrate',
          { schema: { fields: {} }, dry_run: true },
          '/dry_run',
          'dryRun',
        ],
        [
          'a price in an access policy',
          'PUT',
          'COLLECTIONS/c',
          { access_policy: { read: 'public', price: { per_acces: '1' } } },
          '/access_policy/price/per_acces',
          'per_access',
        ],
        [
          'a rule of prices',
          'PUT',
          'APPS/pricing',
          {
            rules: [
              { target: { colection: 'c' }, operation: 'read', model: 'per_row', amount: '1' },
            ],
          },
          '/rules/0/target/colection',
          'collection',
        ],
        [
          'a step of a batch',
          'POST',
          'APPS/batch',
          { operations: [{ operation: 'create', collection: 'c', dat: {} }] },
          '/operations/0/dat',
          'data',
        ],
        [
          'a quote',
          'POST',
          '/api/pricing/quote',
          { app_id: 'APP', collection: 'c', operation_type: 'read', size_kbs: 1 },
          '/size_kbs',
          'size_kb',
        ],
        ['a key', 'POST', 'APPS/keys', { permission: ['Read'] }, '/permission', 'permissions'],
        [
          'limits of a paying key',
          'POST',
          'APPS/keys',
          { permissions: ['Pay'], pay_limits: { daily_alowance: '1' } },
          '/pay_limits/daily_alowance',
          'daily_allowance',
        ],
        [
          'a view',
          'POST',
          'APPS/views',
          { name: 'v', source_collections: ['c'], query: {}, refreshmode: 'live' },
          '/refreshmode',
          'refresh_mode',
        ],
        [
          'a predefined query',
          'POST',
          'APPS/queries',
          { name: 'q', source_collection: 'c', base_query: { finds: {} } },
          '/base_query/finds',
          'find',
        ],
        [
          'an index',
          'POST',
          'COLLECTIONS/c/indexes',
          { field: 'n', options: { uniqe: true } },
          '/options/uniqe',
          'unique',
        ],
      ])(
        '%s with an unknown member is refused, and the member is named: %s %s %j',
        async (...row) => {
          const [, method, path, body, field, meant] = row
          const at = `/api/apps/${data.appId}`
          const filled = path.replace('COLLECTIONS', `${at}/collections`).replace('APPS', at)
          const raw = JSON.stringify(body).replaceAll('APP', data.appId)
          const reply = await service().request(method, filled, { raw, headers: data.headers })
          expect(reply, reply.text).toMatchObject({
            status: 400,
            body: { code: 'UNKNOWN_MEMBER', details: { field } },
          })
          expect(reply.body.details.did_you_mean).toBe(meant)
          if (meant !== undefined) expect(reply.body.error).toContain(`did you mean "${meant}"`)
        },
      )

      test.each<[string, object, readonly [string, string]]>([
        [
          'the type of a field',
          { schema_definition: { fields: { n: { type: 'integr' } } } },
          ['/schema_definition/fields/n/type', '"integer"'],
        ],
        [
          'a type of JSON Schema',
          { schema_definition: { properties: { n: { type: 'integr' } } } },
          ['/schema_definition/properties/n/type', '"integer"'],
        ],
        [
          'a format of JSON Schema',
          { schema_definition: { properties: { n: { format: 'emial' } } } },
          ['/schema_definition/properties/n/format', 'format'],
        ],
        [
          'the kind of collection',
          { collection_type: 'documnt' },
          ['/collection_type', '"document"'],
        ],
      ])('a word that is none is refused and named: %s', async (_, more, [field, words]) => {
        const reply = await data.create({ name: 'typed', ...more })
        expect(reply.status, reply.text).toBe(400)
        expect(reply.body.details.field).toBe(field)
        expect(reply.body.error).toContain(words)
      })

      test.each([
        ['a name', { access_policy: 'key' }, '/name'],
        [
          'the rows of a preview',
          { name: 'x', access_policy: { preview: {} } },
          '/access_policy/preview/rows',
        ],
      ])('a missing member is named by its pointer: %s', async (_, body, field) => {
        const reply = await data.create(body)
        expect(reply.body).toMatchObject({ code: 'VALIDATION_FAILED', details: { field } })
      })

      test('members that public clients send beyond the contract are taken, and each line of that list has a reason', async () => {
        for (const { operations, reason, members } of tolerated) {
          expect(reason.length).toBeGreaterThan(20)
          expect(members.length).toBeGreaterThan(0)
          if (operations !== 'all')
            for (const one of operations) expect(Object.keys(tollbase)).toContain(one)
        }
        const app = makeData(service(), await service().createApp())
        const made = await app.call('POST', '/collections/c/indexes', {
          app_id: app.appId,
          collection_name: 'c',
          field_name: 'n',
          store_values: true,
          index_config: { index_type: 'Secondary', performance_tuning: { memory_limit_mb: 1 } },
          options: { background: true },
        })
        expect(made.status, made.text).toBe(200)
        const put = { options: { validate: true, migrate: false } }
        expect((await app.call('PUT', '/collections/c', put)).status).toBe(200)
        const wrong = await app.call('PUT', '/collections/c', { options: { validat: true } })
        expect(wrong.body.details).toMatchObject({
          field: '/options/validat',
          did_you_mean: 'validate',
        })
      })

      test('the interface description names each member of access_policy and schema_definition', () => {
        const { schemas } = buildOpenApi(tollbase, { version: '1' }).components
        const text = (name: string) => JSON.stringify(schemas[name])
        for (const name of ['read', 'price', 'preview', 'derive', 'offered', 'empty_answer'])
          expect(text('AccessPolicy')).toContain(`"${name}"`)
        expect(text('SchemaDefinition')).toContain('SchemaField')
        for (const name of ['type', 'required', 'unique', 'index', 'default', 'validation'])
          expect(text('SchemaField')).toContain(`"${name}"`)
      })
    },
    { config: { allowedUpstreams } },
  ))
