import { createHash } from 'node:crypto'
import { verifyDocument } from '@tollbase/verify/verify'
import { describe, expect, test } from 'vitest'
import { createFundedBuyer, list } from '../support/buyer.ts'
import { createData, type Data } from '../support/data.ts'
import { withService } from '../support/per-engine.ts'
import type { Json, TestReply } from '../support/service.ts'

const word = 'Hochsicherheit'
const records = [
  { id: 'a', word, big: 1 },
  { id: 'b', word: 'other', big: 2 },
]

describe('proofs', () =>
  withService(
    (service) => {
      async function seller(access_policy: unknown): Promise<Data> {
        const app = await createData(service())
        await app.create({ name: 'things', access_policy })
        await app.store('things', records)
        return app
      }
      const ask = (path: string, headers: Readonly<Record<string, string>> = {}) =>
        service().request('GET', path, { headers })
      /** Lists the two paths to the proof of a record. */
      const listProofPaths = (app: Data, key: string, query = '') => [
        `/api/apps/${app.appId}/chain/proof?collection=things&key=${key}${query.replace('?', '&')}`,
        `/api/apps/${app.appId}/collections/things/records/${key}/proof${query}`,
      ]
      const readReceiptKey = async () =>
        (await ask('/.well-known/tollbase')).body.receipt_public_key.split('+').at(-1)
      const expectProof = async (reply: TestReply, app: Data): Promise<Json> => {
        expect(reply.status, reply.text).toBe(200)
        const { body: head } = await ask(`/api/apps/${app.appId}/chain/checkpoint`, app.headers)
        expect(head.key.split('+').at(-1)).toBe(await readReceiptKey())
        const verdict = verifyDocument(reply.text, { trustedKey: head.key })
        expect(verdict.checks.filter(({ ok }) => !ok)).toEqual([])
        expect(verdict.ok).toBe(true)
        return reply.body
      }

      test('a free collection gives anyone the hashes of its proofs, and a key with Read the bytes', async () => {
        const app = await seller('public')
        for (const path of listProofPaths(app, 'a')) {
          const proof = await expectProof(await ask(path), app)
          expect(Object.keys(proof)).not.toContain('entry')
          expect(Object.keys(proof)).not.toContain('entry_header')
          expect(JSON.stringify(proof)).not.toContain(
            Buffer.from(word).toString('base64').slice(2, 12),
          )
          const own = await expectProof(await ask(path, app.headers), app)
          const bytes = Buffer.from(own.entry, 'base64')
          expect(bytes.toString()).toContain(word)
          const leaf = createHash('sha256').update(Buffer.of(0)).update(bytes).digest('hex')
          expect(leaf).toBe(proof.leaf_hash)
          const at = `/api/apps/${app.appId}/chain/proof?height=${proof.height}&sequence=${proof.sequence}`
          const placed = await expectProof(await ask(at), app)
          expect(placed.leaf_hash).toBe(proof.leaf_hash)
        }
        for (const path of listProofPaths(app, 'none'))
          expect(await ask(path)).toMatchObject({ status: 404, body: { code: 'RECORD_NOT_FOUND' } })
        await app.store('things', [{ id: 'b', deleted: true }])
        for (const path of listProofPaths(app, 'b')) expect((await ask(path)).status).toBe(404)
      })

      test('a closed collection gives no proofs to others, and none by the place in the log', async () => {
        const cases = [
          ['key', 401],
          ['private', 404],
        ] as const
        for (const [policy, status] of cases) {
          const app = await seller(policy)
          await app.create({ name: 'open', access_policy: 'public' })
          const stored = await app.store('open', [{ id: 'o' }])
          const own = (await ask(listProofPaths(app, 'a')[0] ?? '', app.headers)).body
          const at = (place: Json) =>
            `/api/apps/${app.appId}/chain/proof?height=${place.height}&sequence=${place.sequence}`
          for (const path of listProofPaths(app, 'a'))
            expect((await ask(path)).status, path).toBe(status)
          // There is no proof of definitions either.
          for (const place of [own, { height: 1, sequence: 0 }])
            expect(await ask(at(place))).toMatchObject({
              status: 404,
              body: { code: 'NO_CHAIN_ENTRY' },
            })
          expect((await ask(at(own), app.headers)).status).toBe(200)
          const { block_height: height, sequence } = stored.body.results[0]
          expect((await ask(at({ height, sequence }))).status).toBe(200)
        }
      })

      test('a sold collection gives a proof to the buyer of the record, by his receipt, and fetches no content', async () => {
        const app = await seller({ read: 'public', price: { per_row: '100' } })
        for (const key of ['a', 'none'])
          for (const path of listProofPaths(app, key))
            expect((await ask(path)).status, path).toBe(401)
        const buyer = await createFundedBuyer(service())
        const root = `${app.appId}::things`
        const bought = await buyer.buy(service(), list({ root, find: { id: 'a' }, limit: 1 }))
        const receipt = bought.headers.get('x-receipt-id')
        // Newer versions were not bought.
        await app.store('things', [{ id: 'a', word: 'newer', big: 3 }])
        const [text = ''] = /\{"id":"a".*?\}/.exec(bought.text) ?? []
        for (const path of listProofPaths(app, 'a', `?receipt_id=${receipt}`)) {
          const proof = await expectProof(await ask(path), app)
          expect(Object.keys(proof)).not.toContain('entry')
          expect(JSON.stringify(proof)).not.toContain(word)
          const leaf = createHash('sha256')
            .update(Buffer.of(0))
            .update(`${proof.entry_header}\n${text}`)
            .digest('hex')
          expect(leaf).toBe(proof.leaf_hash)
        }
        const refused: [string, string, string][] = [
          ['b', String(receipt), 'RECORD_NOT_FOUND'],
          ['none', String(receipt), 'RECORD_NOT_FOUND'],
          ['a', `rcpt_${'0'.repeat(32)}`, 'RECEIPT_NOT_FOUND'],
          ['a', 'x', 'RECEIPT_NOT_FOUND'],
        ]
        for (const [key, id, code] of refused)
          for (const path of listProofPaths(app, key, `?receipt_id=${id}`))
            expect(await ask(path), path).toMatchObject({ status: 404, body: { code } })
        const part = await buyer.buy(service(), list({ root, select: { word: true }, limit: 2 }))
        const partly = part.headers.get('x-receipt-id')
        for (const path of listProofPaths(app, 'b', `?receipt_id=${partly}`))
          expect((await ask(path)).status).toBe(404)
        // A receipt of another application opens nothing here.
        const other = await seller({ read: 'public', price: { per_row: '100' } })
        for (const path of listProofPaths(other, 'a', `?receipt_id=${receipt}`))
          expect((await ask(path)).body.code).toBe('RECEIPT_NOT_FOUND')
      })

      test('an entry is named by height and sequence or by collection and key, and half a name is refused', async () => {
        const app = await seller('public')
        const at = `/api/apps/${app.appId}/chain/proof`
        const cases = [
          ['', 'collection'],
          ['?height=1', 'sequence'],
          ['?sequence=0', 'height'],
          ['?collection=things', 'key'],
          ['?key=a', 'collection'],
        ]
        for (const [query, field] of cases)
          expect(await ask(at + query), query).toMatchObject({
            status: 400,
            body: { code: 'VALIDATION_FAILED', details: { field: `/query/${field}` } },
          })
      })
    },
    { devnet: true },
  ))
