import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type ErrorCode, errors } from '@tollbase/contract/errors'
import { limits } from '@tollbase/contract/limits'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { createData, type Data } from '../support/data.ts'
import { startTestService, type TestReply, type TestService } from '../support/service.ts'
import { exchange, makeRawRequest } from './raw-http.ts'

let service: TestService
let data: Data
beforeAll(async () => {
  const config = { allowedUpstreams: [{ host: '127.0.0.1', port: 9 }] }
  service = await startTestService({ devnet: true, config })
  data = await createData(service)
  await data.create({ name: 'c', schema_definition: { fields: { n: { type: 'number' } } } })
  await data.create({ name: 'priced', access_policy: { price: { per_access: '1000' } } })
  await data.create({ name: 'part', access_policy: { read: 'public', offered: { filter: ['a'] } } })
  await data.create({ name: 'files', collection_type: 'blob' })
  await data.create({ name: 'proxy', collection_type: 'api' })
  // Nothing listens there.
  const upstream = { url: 'http://127.0.0.1:9/' }
  await data.call('POST', '/api-collections', { name: 'dead', upstream })
  await data.store('c', [{ id: 'k', n: 1 }])
})
afterAll(() => service?.close())

type Answer = Pick<TestReply, 'status' | 'text'>

const none = '0'.repeat(64)
const openly = (method: string, path: string, body?: unknown) =>
  service.request(method, path, body === undefined ? {} : { body })

/**
 * The way to provoke each code: a request, or the test that needs more than one (a fault, another process, a
 * clock). A new code without a row does not compile.
 */
const provocations: Readonly<Record<ErrorCode, (() => Promise<Answer>) | { readonly by: string }>> =
  {
    VALIDATION_FAILED: () => data.list('c', { limit: -1 }),
    UNKNOWN_MEMBER: () => data.list('c', { where: {} }),
    PAYMENT_MALFORMED: () =>
      service.request('POST', '/list', {
        body: { root: `${data.appId}::priced` },
        headers: { 'x-payment': 'e30=' },
      }),
    CREDENTIALS_CONFLICT: () =>
      service.request('GET', `/api/apps/${data.appId}/stats`, {
        headers: { ...data.headers, 'x-api-key': 'another' },
      }),
    PAYOUT_NOT_POSSIBLE: () => data.call('POST', '/payout/request', {}),
    PAYMENT_HELD: { by: 'tests/payments/restored.test.ts' },
    SPENDING_LIMIT: { by: 'tests/payments/spending.test.ts' },
    BALANCE_TOO_LOW: { by: 'tests/payments/transfers.test.ts' },
    TRANSFERS_NOT_CONFIGURED: { by: 'tests/payments/transfers.test.ts' },
    DATA_SET_NOT_FOUND: () => data.list('c', { find: { n: { inDataset: 'nothing' } } }),
    VIEW_NOT_FOUND: () => data.call('GET', '/views/nothing'),
    VIEW_EXISTS: async () => {
      const view = { name: 'v', source_collections: ['c'], query: { select: ['id'] } }
      await data.call('POST', '/views', view)
      return data.call('POST', '/views', view)
    },
    VIEW_NOT_READY: { by: 'tests/views/failures.test.ts' },
    QUOTA_EXCEEDED: async () => {
      const full = await createData(service)
      const body = { quota: { records: 0 } }
      await service.request('PATCH', `/api/apps/${full.appId}`, { body, headers: service.operator })
      return full.store('c', [{ id: 'k' }])
    },
    BLOB_NOT_FOUND: () => data.call('GET', '/blobs/files/blob_1'),
    UPLOAD_NOT_FOUND: () => data.call('GET', '/blobs/files/uploads/upload_1'),
    UPLOAD_VERSION: { by: 'packages/server/src/operations/blobs/create-upload.test.ts' },
    BLOB_MOVED: { by: 'tests/encryption/changed-blobs.test.ts' },
    BLOB_GONE: { by: 'packages/server/src/operations/blobs/get-blob.test.ts' },
    RANGE_NOT_SATISFIABLE: async () => {
      const { url } = service
      const at = `/api/apps/${data.appId}/blobs/files`
      const form = new FormData()
      form.append('blob', 'x')
      const sent = await fetch(`${url}${at}?wait=true`, {
        method: 'POST',
        body: form,
        headers: data.headers,
      })
      const { blob_id } = JSON.parse(await sent.text())
      const headers = { ...data.headers, range: 'bytes=1-' }
      return service.request('GET', `${at}/${blob_id}`, { headers })
    },
    AUTHORIZATION_NOT_FOUND: () => data.call('POST', '/authorizations/nothing/revoke', {}),
    GRANT_NOT_FOUND: () => data.call('DELETE', '/grants/nothing'),
    GRANT_NEEDED: async () => {
      const other = await createData(service)
      const source_collections = [`${data.appId}::c`]
      return other.call('POST', '/views', { name: 'v', source_collections, query: {} })
    },
    RELATION_NOT_FOUND: () => data.call('DELETE', '/relations/nothing'),
    NO_CHAIN_ENTRY: () =>
      openly('GET', `/api/apps/${data.appId}/chain/proof?height=1&sequence=99999`),
    UNAUTHORIZED: () => openly('GET', `/api/apps/${data.appId}/stats`),
    PAYMENT_REQUIRED: () => data.listOpenly('priced'),
    FORBIDDEN: async () => {
      const { body } = await data.call('POST', '/keys', { permissions: ['Read'] })
      return service.request('GET', `/api/apps/${data.appId}/keys`, {
        headers: { 'x-app-key': body.key },
      })
    },
    DERIVATION_DENIED: () => data.listOpenly('priced', { group_by: 'n' }),
    QUERY_TOO_EXPENSIVE: { by: 'packages/server/src/services/reading/run-query.test.ts' },
    FIELD_NOT_OFFERED: () => data.listOpenly('part', { find: { hidden: 1 } }),
    ROUTE_NOT_FOUND: () => openly('GET', '/nowhere'),
    APPLICATION_NOT_FOUND: () => openly('GET', '/api/apps/nobody'),
    COLLECTION_NOT_FOUND: () => data.list('nothing'),
    QUERY_NOT_FOUND: () => openly('GET', `/api/queries/${data.appId}/nothing/data`),
    INDEX_NOT_FOUND: () => data.call('DELETE', '/indexes/nothing'),
    RECORD_EXPIRED: { by: 'tests/retention/expiry.test.ts' },
    RECORD_NOT_FOUND: () => data.record('c', 'nobody'),
    KEY_NOT_FOUND: () => data.call('POST', `/keys/${none}/revoke`, {}),
    TASK_NOT_FOUND: () => openly('GET', '/task/none'),
    TRANSACTION_NOT_FOUND: () => openly('GET', '/api/transactions/none'),
    PAYMENT_NOT_FOUND: () => openly('GET', '/api/payments/none'),
    RECEIPT_NOT_FOUND: () => openly('GET', '/api/receipts/none'),
    PASS_NOT_FOUND: () => openly('GET', `/api/apps/${data.appId}/passes/none`),
    BLOCK_NOT_FOUND: () => openly('GET', `/api/apps/${data.appId}/chain/blocks/99999`),
    METHOD_NOT_ALLOWED: () => openly('PUT', '/store', {}),
    REQUEST_TIMEOUT: { by: 'tests/security/slow.test.ts' },
    CONFLICT: () => data.queue('proxy', [{}]),
    APPLICATION_EXISTS: () =>
      service.request('POST', '/api/apps', {
        body: { name: 'again', app_id: data.appId },
        headers: service.operator,
      }),
    COLLECTION_EXISTS: () => data.create({ name: 'c' }),
    RECORD_EXISTS: () => data.store('c', [{ id: 'k' }], { strict: true }),
    LAST_ADMIN_KEY: () => data.call('POST', `/keys/${data.keyHash}/revoke`, {}),
    NOT_ON_PRIVATE: { by: 'packages/server/src/operations/encryption/update-encryption.test.ts' },
    PRICE_REMOVED: { by: 'tests/pricing/changes.test.ts' },
    PRICING_CHANGED: { by: 'packages/server/src/operations/pricing/update-pricing.test.ts' },
    IDEMPOTENCY_KEY_USED: async () => {
      const headers = { ...data.headers, 'idempotency-key': 'one' }
      const at = `/api/apps/${data.appId}/keys`
      await service.request('POST', at, { body: { name: 'one' }, headers })
      return service.request('POST', at, { body: { name: 'two' }, headers })
    },
    REQUEST_IN_PROGRESS: { by: 'tests/idempotency/crashes.test.ts' },
    ANSWER_LOST: { by: 'tests/idempotency/crashes.test.ts' },
    PAYMENT_ALREADY_USED: { by: 'tests/payments/attacks.test.ts' },
    OFFER_CHANGED: { by: 'tests/payments/resolving.test.ts' },
    PAYMENT_REPLY_GONE: { by: 'tests/payments/crash-points.test.ts' },
    PAYLOAD_TOO_LARGE: () => data.store('c', [{ pad: 'x'.repeat(limits.recordBytesMax) }]),
    RESULT_TOO_LARGE: { by: 'packages/server/src/operations/listing/list-records.test.ts' },
    SCHEMA_VIOLATION: () => data.store('c', [{ n: 'text' }]),
    WITHDRAWAL_LIMIT: { by: 'tests/payments/withdrawal-bounds.test.ts' },
    RATE_LIMITED: { by: 'tests/ops/rate-limits.test.ts' },
    HEADERS_TOO_LARGE: async () => {
      const filler = `X-Filler: ${'x'.repeat(limits.headerBytesMax)}`
      const [reply] = await exchange(service.url, makeRawRequest('GET / HTTP/1.1', [filler]))
      return reply ?? { status: 0, text: '{}' }
    },
    INTERNAL: { by: 'tests/ops/logs.test.ts' },
    API_COLLECTION: () => data.list('proxy'),
    UPSTREAM_FAILED: () => data.call('GET', '/api-collections/dead/data'),
    UPSTREAM_TIMEOUT: { by: 'tests/api-collections/selling.test.ts' },
    UNAVAILABLE: { by: 'tests/security/slow.test.ts' },
    STORAGE_FULL: { by: 'tests/faults/disk.test.ts' },
    STORAGE_READ_ONLY: { by: 'tests/faults/disk.test.ts' },
    PAYMENT_NETWORK_UNREACHABLE: { by: 'tests/payments/facilitator.test.ts' },
    PAYMENT_PENDING: { by: 'tests/payments/facilitator.test.ts' },
    QUERY_TIMEOUT: listCancelled,
  }

/**
 * The database cancels a statement that runs out of time; here a lock holds the statement, and the test cancels it
 * the same way.
 */
async function listCancelled(): Promise<Answer> {
  const { schema, data: projection } = await service.running.service.tenants.load(data.appId)
  const table = projection.catalog.byName.get('c')?.table ?? ''
  return service.database.transaction(async (tx) => {
    await tx.execute(sql`LOCK TABLE ${sql.id(schema, table)} IN ACCESS EXCLUSIVE MODE`)
    const listed = data.list('c')
    let isAnswered = false
    const cancelling = (async () => {
      while (!isAnswered) {
        await tx.query(sql`
          SELECT pg_cancel_backend(pid) AS cancelled FROM pg_stat_activity
          WHERE datname = current_database() AND wait_event_type = 'Lock'`)
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
    })()
    try {
      return await listed
    } finally {
      isAnswered = true
      await cancelling
    }
  })
}

describe('codes of the catalogue', () => {
  test.each(Object.entries(provocations))('%s can be provoked', async (name, provocation) => {
    const code = name as ErrorCode
    if (typeof provocation === 'object') {
      const file = join(import.meta.dirname, '../..', provocation.by)
      expect(existsSync(file), provocation.by).toBe(true)
      expect(readFileSync(file, 'utf8')).toContain(`'${code}'`)
      return
    }
    const { status, text } = await provocation()
    expect(status, text).toBe(errors[code].status)
    const body = JSON.parse(text)
    // Payment clients read the 402 in a form of their own.
    if (code === 'PAYMENT_REQUIRED') expect(body.accepts.length).toBeGreaterThan(0)
    else
      expect(body).toMatchObject({
        code,
        error: expect.any(String),
        request_id: expect.any(String),
      })
  })

  test('every code of the catalogue has its row here', () => {
    expect(Object.keys(provocations).sort()).toEqual(Object.keys(errors).sort())
  })
})
