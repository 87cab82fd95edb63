import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Asked, ask, createFundedBuyer, list, quote } from '../support/buyer.ts'
import { routes } from '../support/contract-replies.ts'
import { cities, type Market, openMarket, setPrices } from '../support/market.ts'
import { withService } from '../support/per-engine.ts'
import { startUpstream, type TestUpstream } from '../support/upstream.ts'
import { listProblems } from './x402-v1.ts'

const formType = { 'content-type': 'multipart/form-data; boundary=x' }
const makeForm = (text: string) =>
  `--x\r\nContent-Disposition: form-data; name="blob"\r\n\r\n${text}\r\n--x--\r\n`
const helloId = `blob_${createHash('sha256').update('hello').digest('hex')}`

/** An upload whose bytes are there, and wait for their payment. */
let uploadId = ''

/** One request to each endpoint that can cost money, and the status that it has once it is paid. */
const paid: Readonly<
  Record<string, { ask: (market: Market) => Asked; gives: object | string; status: number }>
> = {
  listRecords: {
    ask: ({ root }) => list({ root, limit: 1 }),
    status: 200,
    gives: { records: [cities[0]] },
  },
  querySql: {
    ask: ({ appId, collection }) => ({
      method: 'POST',
      path: '/query/sql',
      raw: JSON.stringify({ sql: `SELECT name FROM "${appId}"::${collection} LIMIT 1` }),
    }),
    status: 200,
    gives: { data: [{ name: cities[0]?.name }], count: 1 },
  },
  getRecord: {
    ask: ({ appId, collection }) => ({
      method: 'GET',
      path: `/api/apps/${appId}/collections/${collection}/records/c1`,
    }),
    status: 200,
    gives: { record: cities[1] },
  },
  queryView: {
    ask: ({ appId }) => ({ method: 'GET', path: `/api/apps/${appId}/views/names/data` }),
    status: 200,
    gives: { data: cities.map(({ name }) => ({ name })), count: 5, view: 'names' },
  },
  executeQuery: {
    ask: ({ appId }) => ({ method: 'GET', path: `/api/queries/${appId}/names/data` }),
    status: 200,
    gives: { data: cities.map(({ name }) => ({ name })), count: 5, query: 'names', version: 1 },
  },
  storeRecords: {
    ask: ({ root, headers }) => ({
      method: 'POST',
      path: '/store',
      raw: JSON.stringify({ root, data: [{ id: 'new' }] }),
      headers,
    }),
    status: 202,
    gives: { ticket_id: expect.any(String) },
  },
  uploadBlob: {
    ask: ({ appId, headers }) => ({
      method: 'POST',
      path: `/api/apps/${appId}/blobs/files`,
      raw: makeForm('new'),
      headers: { ...headers, ...formType },
    }),
    status: 202,
    gives: { blob_id: expect.stringMatching(/^blob_/) },
  },
  finishUpload: {
    ask: ({ appId, headers }) => ({
      method: 'POST',
      path: `/api/apps/${appId}/blobs/files/uploads/${uploadId}/finish`,
      headers,
    }),
    status: 202,
    gives: { blob_id: expect.stringMatching(/^blob_/) },
  },
  getBlob: {
    ask: ({ appId }) => ({ method: 'GET', path: `/api/apps/${appId}/blobs/files/${helloId}` }),
    status: 200,
    gives: Buffer.from('hello').toString('base64'),
  },
  executeBatch: {
    ask: ({ appId, collection, headers }) => ({
      method: 'POST',
      path: `/api/apps/${appId}/batch`,
      raw: JSON.stringify({
        operations: [{ operation: 'create', collection, data: { id: 'new' } }],
      }),
      headers,
    }),
    status: 200,
    gives: [{ success: true, result: { results: [{ id: 'new' }] } }],
  },
  updateEncryption: {
    ask: ({ appId, headers }) => ({
      method: 'POST',
      path: `/api/apps/${appId}/encryption`,
      raw: JSON.stringify({ action: 'add', collections: ['secrets'] }),
      headers: { ...headers, 'content-type': 'application/json' },
    }),
    status: 200,
    gives: { success: true, encrypted_collections: ['secrets'] },
  },
  buyPass: {
    ask: ({ appId }) => ({
      method: 'POST',
      path: `/api/apps/${appId}/passes`,
      raw: JSON.stringify({ target: { collection: 'files' }, hours: 1 }),
    }),
    status: 200,
    gives: { target: { collection: 'files' }, hours: 1 },
  },
  depositToWallet: {
    ask: () => ({
      method: 'POST',
      path: '/api/wallets/0x00000000000000000000000000000000000000aa/deposit',
      raw: JSON.stringify({ amount: '5000' }),
    }),
    status: 200,
    gives: { amount: '5000', entry: { kind: 'deposit' } },
  },
  depositToApplication: {
    ask: ({ appId, headers }) => ({
      method: 'POST',
      path: `/api/apps/${appId}/wallet/deposit`,
      raw: JSON.stringify({ amount: '5000' }),
      headers,
    }),
    status: 200,
    gives: { amount: '5000', entry: { kind: 'deposit' } },
  },
  getApiCollectionData: {
    ask: ({ appId }) => ({
      method: 'GET',
      path: `/api/apps/${appId}/api-collections/weather/data`,
    }),
    status: 200,
    gives: { n: expect.any(Number) },
  },
}

let upstream: TestUpstream
beforeAll(async () => {
  upstream = await startUpstream()
})
afterAll(() => upstream.close())

describe('x402-fetch 1.2.0 in our own words', () =>
  withService(
    (service) => {
      const open = async () => {
        const market = await openMarket(service())
        const sent = await service().request(
          'POST',
          `/api/apps/${market.appId}/blobs/files?wait=true`,
          { raw: makeForm('hello'), headers: { ...market.headers, ...formType } },
        )
        expect(sent.status, sent.text).toBe(200)
        for (const [path, body] of [
          ['collections', { name: 'secrets' }],
          [
            'api-collections',
            {
              name: 'weather',
              upstream: { url: `${upstream.url}/now` },
              price: { per_access: '1000' },
            },
          ],
        ] as const) {
          const made = await service().request('POST', `/api/apps/${market.appId}/${path}`, {
            body,
            headers: market.headers,
          })
          expect(made.status, made.text).toBe(201)
        }
        const target = { collection: 'files' }
        await setPrices(service(), market, [
          { target, operation: 'read', model: 'per_access', amount: '1000' },
          { target, operation: 'read', model: 'time_pass', hours: 1, amount: '5000' },
          { target, operation: 'write', model: 'per_record', amount: '500' },
          { operation: 'read', model: 'per_access', amount: '1000' },
          { operation: 'write', model: 'per_record', amount: '500' },
        ])
        const uploads = `/api/apps/${market.appId}/blobs/files/uploads`
        const begun = await service().request('POST', uploads, {
          headers: { ...market.headers, 'upload-length': '5' },
        })
        uploadId = begun.body.upload_id
        const type = { 'content-type': 'application/offset+octet-stream', 'upload-offset': '0' }
        const put = await service().request('PATCH', `${uploads}/${uploadId}`, {
          ...{ raw: 'bytes', headers: { ...market.headers, ...type } },
        })
        expect(put.status, put.text).toBe(204)
        const view = {
          name: 'names',
          source_collections: [market.collection],
          query: { select: ['name'] },
        }
        const { headers } = market
        const path = `/api/apps/${market.appId}/views`
        expect((await service().request('POST', path, { body: view, headers })).status).toBe(201)
        const query = {
          name: 'names',
          source_collection: market.collection,
          base_query: { select: ['name'] },
        }
        const queries = `/api/apps/${market.appId}/queries`
        const defined = await service().request('POST', queries, { body: query, headers })
        expect(defined.status, defined.text).toBe(201)
        return market
      }
      const paidRoutes = routes.filter(([, route]) => route.paid === true).map(([id]) => id)

      test.each(paidRoutes)(
        '%s asks for money in a form that it reads, and takes its payment',
        async (id) => {
          const example = paid[id]
          if (example === undefined)
            throw new Error(`${id} can cost money: give it an example here`)
          const asked = example.ask(await open())
          const required = await quote(service(), asked)
          expect(listProblems(required.body)).toEqual([])
          const [entry] = required.body.accepts
          expect(entry.resource).toBe(`${service().url}${asked.path}`)
          const buyer = await createFundedBuyer(service())
          const now = Math.floor(Date.now() / 1000)
          // The form of a version 1 payment: no quoteId, valid from ten minutes ago because of clock differences,
          // until the quote's own time.
          const payment = await buyer.payV1(required, {
            authorization: {
              validAfter: String(now - 600),
              validBefore: String(now + entry.maxTimeoutSeconds),
            },
          })
          const reply = await ask(service(), asked, {
            ...payment,
            'access-control-expose-headers': 'X-PAYMENT-RESPONSE',
          })
          expect(reply.status, reply.text).toBe(example.status)
          if (typeof example.gives === 'string') expect(reply.body).toBe(example.gives)
          else expect(reply.body).toMatchObject(example.gives)
          const notice = reply.headers.get('x-payment-response') ?? ''
          expect(JSON.parse(Buffer.from(notice, 'base64').toString())).toMatchObject({
            success: true,
            transaction: expect.stringMatching(/^0x[0-9a-f]{64}$/),
            network: entry.network,
            payer: buyer.address,
          })
          expect(reply.headers.get('access-control-expose-headers')).toContain('X-PAYMENT-RESPONSE')
        },
      )

      test('the checker refuses what the package refuses', async () => {
        const { body } = await quote(service(), paid.listRecords?.ask(await open()) ?? list({}))
        const broken = (change: object) =>
          listProblems({ ...body, accepts: [{ ...body.accepts[0], ...change }] })
        expect(listProblems({ ...body, x402Version: 2 })).toEqual(['x402Version is not 1'])
        expect(listProblems({ ...body, accepts: [] })).toEqual(['accepts is empty'])
        for (const change of [
          { network: 'ethereum' },
          { network: 'eip155:84532' },
          { outputSchema: null },
          { resource: '/list' },
          { mimeType: undefined },
          { description: null },
          { maxAmountRequired: 1000 },
          { maxAmountRequired: '0.5' },
          { scheme: 'upto' },
          { maxTimeoutSeconds: '300' },
          { payTo: '0x12 34' },
          { extra: null },
        ]) {
          expect(broken(change), JSON.stringify(change)).toHaveLength(1)
        }
      })
    },
    { devnet: true, config: { allowedUpstreams: [{ host: '127.0.0.1', port: undefined }] } },
  ))
