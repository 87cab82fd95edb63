import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pino from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type RunningService, startService } from '../../packages/server/src/app.ts'
import { readConfig } from '../../packages/server/src/config/config.ts'
import { sql } from '../../packages/server/src/database/sql.ts'
import { scrubMarked } from '../../packages/server/src/services/retention/scrub-files.ts'
import { sweepRetention } from '../../packages/server/src/services/retention/sweep-retention.ts'
import { makeData } from '../support/data.ts'
import { send, type TestReply } from '../support/service.ts'
import { makeTestWorld } from '../support/test-world.ts'

// The service runs on a PostgreSQL of its own, whose files, write-ahead log included, are searched at the end.

const folder = mkdtempSync(join(tmpdir(), 'tollbase-private-'))
/** Short texts that PostgreSQL does not compress, each planted in one place of the records. */
const secrets = ['kq7Zw2Xv9Lm4', 'Rt5Yb8Nc3Hj6', 'Gp1Fd0Se7Wa2', 'Uv4Mx6Kz8Qj3', 'Bn2Cs9Tf5Ly7']
const [inKey = '', inText = '', inNested = '', inOld = '', inGone = ''] = secrets
/** The same in a collection that is encrypted once it is full of them: keys, texts, old and deleted versions. */
const sealed = ['Zc4Wd8Qy1Mt5', 'Ek9Hs3Vb7Xn2', 'Jf6Ld2Pg8Rz4']
const [sealedKey = '', sealedText = '', sealedOld = ''] = sealed
/** The same in blobs: their bytes, names, types and metadata. */
const inBlobs = ['Mq3Xk7Dz5Rv1', 'Wn8Jc2Ly6Ht4', 'xq9bg4zf0pk2', 'Td5Vr1Sm7Gc3']
const [blobText = '', blobName = '', blobType = '', blobMetadata = ''] = inBlobs
/** The same in records that expire. */
const expired = 'Sy6Nc1Uk9Bt4'
/** The same in a collection that is not encrypted: the search must find it. */
const planted = 'Hx3Jr6Vd1Pw8'

const world = makeTestWorld()
const dayMs = 24 * 3600 * 1000
let running: RunningService
let logged = ''
const answers: TestReply[] = []
type Anyone = Readonly<Record<string, string>>

function noteLine(line: string): void {
  logged += line
}

beforeAll(async () => {
  const flags = { port: '0', dataDir: folder, logLevel: 'trace', logFormat: 'json' } as const
  const config = { ...readConfig(flags, {}), rateLimits: {}, encryptionUpdatePrice: 0n }
  const log = pino({ level: 'trace' }, { write: noteLine })
  running = await startService({ config, world, log })
}, 120_000)

afterAll(async () => {
  await running?.close()
  rmSync(folder, { recursive: true, force: true })
})

function ask(headers: Anyone, ...[method, path, body]: readonly [string, string, unknown?]) {
  return send(running.url, { method, path, headers, ...(body !== undefined && { body }) })
}

test('nothing of an encrypted collection is in any file, log line or answer to others, whatever is asked', async () => {
  const operator = { authorization: `Bearer ${running.operatorKey.key}` }
  const app = await createApp(operator, 'shop')
  const other = await createApp(operator, 'other')
  await app.create({ name: 'plain' })
  await app.store('plain', [{ id: 'a', text: planted }])
  await app.create({ name: 'vault' })
  const set = await app.call('POST', '/encryption', { action: 'add', collections: ['vault'] })
  expect(set.status, set.text).toBe(200)
  // Values of `text` have tokens, by which they are found.
  const fields = { n: { type: 'number' }, text: { index: true } }
  const declared = await app.call('PUT', '/collections/vault', { schema_definition: { fields } })
  expect(declared.status, declared.text).toBe(200)

  const first = { id: inKey, n: 1, text: inOld, more: { deep: [inNested] } }
  await app.store('vault', [first, { id: 'g', text: inGone }])
  const stored = await app.store('vault', [{ ...first, text: inText }])
  await app.store('vault', [{ id: 'g', deleted: true }])
  expect((await app.store('vault', [{ id: inText, n: 'no number' }])).status).toBe(422)
  expect((await app.store('vault', [{ id: inKey }], { strict: true })).status).toBe(409)
  const root = 'shop::vault'
  expect((await app.list('vault', { find: { text: { is: inText } } })).body.total).toBe(1)
  expect(
    (await app.list('vault', { find: { text: { startsWith: inOld } }, sortBy: 'text' })).body.total,
  ).toBe(0)
  expect((await app.list('vault', { include_history: true })).body.total).toBe(4)
  expect((await app.record('vault', inKey)).body.record.text).toBe(inText)
  expect((await app.record('vault', inKey, '/history')).body.versions).toHaveLength(2)
  expect((await app.call('GET', '/collections/vault/changes')).body.changes).toHaveLength(4)

  // A collection that was read, indexed and analyzed in the clear, and is encrypted then.
  await app.create({ name: 'late' })
  for (let at = 0; at < 20; at++)
    await app.store(
      'late',
      Array.from({ length: 100 }, (_, n) => ({
        id: `${sealedKey}-${at}-${n % 90}`,
        text: sealedOld,
      })),
    )
  await app.store('late', [
    { id: `${sealedKey}-0-0`, text: sealedText, long: sealedText.repeat(500) },
  ])
  await app.store('late', [{ id: `${sealedKey}-0-1`, deleted: true }])
  await running.service.database.query(sql`ANALYZE`)
  const late = await app.call('POST', '/encryption', { action: 'add', collections: ['late'] })
  expect(late.status, late.text).toBe(200)
  for (const { task_id } of late.body.tasks ?? []) {
    const read = async () => (await ask({}, 'GET', `/task/${task_id}`)).body.status
    await expect.poll(read, { timeout: 60_000 }).toBe('Completed')
  }
  expect((await app.list('late', { find: { text: { is: sealedText } } })).body.total).toBe(1)

  await expireVisits(app)
  const blob = await uploadBlob(app)

  // Requests that would need plaintext in the database say so, and name the field where there is one.
  const refused: readonly [string, string, unknown][] = [
    ['POST', '/query/sql', { sql: `SELECT text FROM shop::vault WHERE text = '${inText}'` }],
    ['POST', '/list', { root, aggregate: { many: { $count: '*' } }, find: { text: inText } }],
    ['POST', '/list', { root, find: { other: { model: 'plain', resolve: {} } } }],
    [
      'POST',
      '/api/apps/shop/collections/vault/indexes',
      { field_name: 'text', index_type: 'string' },
    ],
    [
      'POST',
      '/api/apps/shop/views',
      { name: 'v', source_collections: ['vault'], query: { find: { text: inText } } },
    ],
    [
      'POST',
      '/apps/shop/views/sql',
      { sql: 'CREATE MATERIALIZED VIEW shop::w AS SELECT text FROM shop::vault' },
    ],
    ['POST', '/api/apps/shop/queries', { name: 'q', sql: 'SELECT text FROM shop::vault' }],
    ['POST', '/api/apps/shop/grants', { grantee: 'other', collection: 'vault' }],
    [
      'PUT',
      '/api/apps/shop/pricing',
      {
        rules: [
          { target: { collection: 'vault' }, operation: 'read', model: 'per_row', amount: '1' },
        ],
      },
    ],
    ['PUT', '/api/apps/shop/collections/vault', { access_policy: 'public' }],
    [
      'PATCH',
      '/api/apps/shop/collections/vault/sharding',
      { keys: [{ field: 'text', type: 'discrete' }] },
    ],
    [
      'POST',
      '/api/apps/shop/collections/vault/migrate',
      { schema: { fields: { n: { type: 'number', default: 1 } } }, dryRun: true },
    ],
    ['POST', '/api/apps/shop/collections/vault/explain', { query: { find: { text: inText } } }],
    ['GET', '/api/apps/shop/collections/vault/preview', undefined],
    [
      'POST',
      '/api/apps/shop/relations',
      {
        parent_collection: 'plain',
        parent_field: 'id',
        child_collection: 'vault',
        child_field: 'text',
      },
    ],
    [
      'POST',
      '/api/apps/shop/batch',
      {
        operations: [
          {
            operation: 'update',
            collection: 'vault',
            data: { n: 2 },
            conditions: { text: inText },
          },
        ],
      },
    ],
  ]
  const wrong: string[] = []
  for (const [method, path, body] of refused) {
    const reply = await ask(app.headers, method, path, body)
    if (reply.status !== 409 || reply.body.code !== 'NOT_ON_PRIVATE')
      wrong.push(`${method} ${path}: ${reply.status} ${reply.text}`)
  }
  expect(wrong).toEqual([])
  const refusedSql = await ask(app.headers, 'POST', '/query/sql', {
    sql: `SELECT n FROM shop::vault WHERE text = 'x'`,
  })
  expect(refusedSql.body.details).toEqual({ collection: 'vault', fields: ['text'] })

  // Others, the operator among them, are told nothing.
  const ticket = stored.body.ticket_id
  const record = `/collections/vault/records/${inKey}`
  const [head] = (await app.record('vault', inKey, '/history')).body.versions
  for (const headers of [{}, other.headers, operator]) {
    for (const prefix of ['/api/apps/shop', '/apps/shop']) {
      answers.push(
        await ask(headers, 'GET', `${prefix}${record}`),
        await ask(headers, 'GET', `${prefix}${record}/history`),
        await ask(headers, 'GET', `${prefix}${record}/proof`),
        await ask(headers, 'GET', `${prefix}/collections/vault`),
        await ask(headers, 'GET', `${prefix}/collections/vault/preview`),
        await ask(headers, 'GET', `${prefix}/collections/vault/changes`),
        await ask(headers, 'GET', `${prefix}/collections/vault/stats`),
        await ask(headers, 'POST', `${prefix}/collections/vault/optimize`),
        await ask(headers, 'POST', `${prefix}/collections/vault/explain`, { query: { find: {} } }),
        await ask(headers, 'GET', `${prefix}/chain/proof?collection=vault&key=g`),
        await ask(headers, 'GET', `${prefix}/chain/proof?height=${head.block_height}&sequence=0`),
        await ask(headers, 'GET', `${prefix}/chain/blocks/${head.block_height}`),
        await ask(headers, 'GET', `${prefix}/tasks`),
        await ask(headers, 'GET', `${prefix}/blobs/files/${blob.id}`),
        await ask(headers, 'HEAD', `${prefix}/blobs/files/${blob.id}`),
        await ask(headers, 'GET', `${prefix}/collections/files/records/${blob.id}`),
        await ask(headers, 'GET', `${prefix}/chain/blocks/${blob.height}`),
        await ask(headers, 'GET', `${prefix}/chain/proof?height=${blob.height}&sequence=0`),
      )
    }
    answers.push(
      await ask(headers, 'GET', `/task/${ticket}`),
      await ask(headers, 'POST', '/list', { root }),
      await ask(headers, 'POST', '/list', { root, find: { text: { startsWith: '' } } }),
      await ask(headers, 'POST', '/query/sql', { sql: 'SELECT text FROM shop::vault' }),
      await ask(headers, 'POST', '/api/pricing/quote', {
        app_id: 'shop',
        collection: 'vault',
        operation_type: 'read',
        query: { find: {} },
      }),
      await ask(headers, 'GET', '/metrics'),
    )
  }
  const lists = answers.filter(({ body }) => body?.records !== undefined)
  expect(lists).toEqual([])
  const own = await app.record('vault', inKey, '/proof')
  const entry = Buffer.from(own.body.entry, 'base64').toString()
  for (const secret of secrets) expect(entry).not.toContain(secret)
  expect(entry).toContain('"sealed":true')
  expect(entry).toContain('"tokens":[')
  const told = answers.map(({ text, headers }) => text + JSON.stringify([...headers]))
  for (const secret of [...secrets, ...sealed, ...inBlobs]) {
    // An address that was asked for may come back as "there is no record ..." to who asked.
    const found = told.filter((text) => text.includes(secret) && secret !== inKey)
    expect(found, secret).toEqual([])
    expect(logged.includes(secret), `${secret} in the log`).toBe(false)
  }

  await running.close()
  const files = listFiles(folder)
  const holders = (text: string) => files.filter((file) => holds(file, text))
  expect(holders(planted).length).toBeGreaterThan(1)
  expect([...secrets, ...sealed, ...inBlobs, expired].flatMap(holders)).toEqual([])
}, 180_000)

/** A blob of an encrypted collection, longer than a segment, and an upload that its client has left half sent. */
async function uploadBlob(app: Awaited<ReturnType<typeof createApp>>) {
  await app.create({ name: 'files', collection_type: 'blob' })
  const set = await app.call('POST', '/encryption', { action: 'add', collections: ['files'] })
  expect(set.status, set.text).toBe(200)
  const url = `${running.url}/api/apps/shop/blobs/files?wait=true`
  const bytes = blobText.repeat(20_000)
  const left = new AbortController()
  const half = new ReadableStream({
    start: (stream) => {
      const head = '--x\r\nContent-Disposition: form-data; name="blob"\r\n\r\n'
      stream.enqueue(Buffer.from(head + bytes))
    },
  })
  const type = { 'content-type': 'multipart/form-data; boundary=x' }
  const broken = fetch(url, {
    ...{ method: 'POST', body: half, duplex: 'half', signal: left.signal },
    headers: { ...app.headers, ...type },
  })
  const incoming = join(folder, 'blobs', 'incoming')
  const hasArrived = () => readdirSync(incoming).some((name) => statSync(join(incoming, name)).size)
  await expect.poll(hasArrived, { timeout: 20_000 }).toBe(true)
  for (const name of readdirSync(incoming))
    expect(holds(join(incoming, name), blobText)).toBe(false)
  left.abort()
  await expect(broken).rejects.toThrow()
  const form = new FormData()
  const file = new Blob([bytes], { type: `application/${blobType}` })
  form.append('blob', file, `${blobName}.txt`)
  form.append('metadata', JSON.stringify({ title: blobMetadata }))
  const sent = await fetch(url, { method: 'POST', body: form, headers: app.headers })
  const { blob_id: id, results } = JSON.parse(await sent.text())
  const read = await ask(app.headers, 'GET', `/api/apps/shop/blobs/files/${id}?format=raw`)
  expect([read.status, read.text]).toEqual([200, bytes])
  expect(read.headers.get('content-disposition')).toContain(blobName)
  expect(read.headers.get('content-type')).toContain(blobType)
  return { id: String(id), height: Number(results[0].block_height) }
}

/** Records that expire leave the files of the database a day later. */
async function expireVisits(app: Awaited<ReturnType<typeof createApp>>): Promise<void> {
  await app.store('visits', [
    { id: expired, text: expired.repeat(300) },
    { id: 'v', text: expired },
  ])
  world.advance(3 * dayMs)
  await app.call('POST', '/collections/visits/retention', { retention_days: 1 })
  world.advance(3600 * 1000)
  const { service } = running
  await sweepRetention(service, await service.tenants.load('shop'))
  expect((await app.list('visits')).body.total).toBe(0)
  world.advance(dayMs + 1)
  await scrubMarked(service, () => false)
  expect(await service.database.query(sql`SELECT chain FROM operations.scrub`)).toEqual([])
}

async function createApp(operator: Anyone, app_id: string) {
  const { status, body } = await ask(operator, 'POST', '/api/apps', { name: app_id, app_id })
  expect(status).toBe(201)
  const headers = { 'x-app-key': body.app_key }
  const request = (method: string, path: string, options: object = {}) =>
    send(running.url, { method, path, ...options })
  const named = { appId: app_id, key: body.app_key, keyHash: body.key_hash, headers }
  return makeData({ request } as Parameters<typeof makeData>[0], named)
}

function listFiles(path: string): string[] {
  return readdirSync(path, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
}

function holds(file: string, text: string): boolean {
  const bytes = readFileSync(file)
  return [text, Buffer.from(text).toString('base64').replace(/=+$/, '').slice(0, -2)].some((form) =>
    bytes.includes(form),
  )
}
