import { describe, expect, test } from 'vitest'
import { type Asked, createFundedBuyer, list } from '../support/buyer.ts'
import { createData } from '../support/data.ts'
import { meterLoop } from '../support/loop-meter.ts'
import { withService } from '../support/per-engine.ts'

describe('a proof that a receipt fetches', () =>
  withService(
    (service) => {
      /** A seller of names, who offers nobody the salaries, and an application of who wants to know them. */
      async function openScene(offered?: object) {
        const [owner, thief] = [await createData(service()), await createData(service())]
        await owner.create({
          name: 'people',
          access_policy: { read: 'public', price: { per_row: '100' }, ...(offered && { offered }) },
        })
        await owner.store('people', [
          { id: 'a', name: 'Anna', salary: 5003 },
          { id: 'b', name: 'Bert', salary: 4001 },
        ])
        const prove = async (receipt: string | null, key: string, collection = 'people') => {
          const path = `/api/apps/${owner.appId}/collections/${collection}/records/${key}/proof?receipt_id=${receipt}`
          return service().request('GET', path)
        }
        const buyer = await createFundedBuyer(service())
        const buy = async (asked: Asked) => {
          const reply = await buyer.buy(service(), asked)
          expect(reply.status, reply.text).toBe(200)
          return reply
        }
        return { owner, thief, prove, buy }
      }
      const hidden = { select: ['id', 'name'], filter: ['id', 'name'], sort: ['id'] }

      test('is of no record that its buyer has guessed in another application, and joined', async () => {
        const { owner, thief, prove, buy } = await openScene()
        const guesses = Array.from({ length: 200 }, (_, n) => ({
          ...{ id: 'b', name: 'Bert', salary: 3900 + n },
        }))
        const policy = { primary_column: 'salary', access_policy: 'public' }
        await thief.create({ name: 'guesses', ...policy })
        const stored = await thief.store('guesses', guesses)
        expect(stored.status, stored.text).toBe(200)
        const joined = { model: `${thief.appId}::guesses`, resolve: { find: {} } }
        const root = `${owner.appId}::people`
        const reply = await buy(list({ root, find: { id: 'a', joined }, limit: 1 }))
        expect(reply.text).toContain(JSON.stringify(guesses[101]))
        expect((await prove(reply.headers.get('x-receipt-id'), 'b')).status).toBe(404)
      })

      test('is of no record that a statement has made', async () => {
        const { owner, prove, buy } = await openScene(hidden)
        const sql = `SELECT 'a' AS id, 'Anna' AS name, 5003 AS salary FROM "${owner.appId}"::people LIMIT 1`
        const reply = await buy({
          method: 'POST',
          path: '/query/sql',
          raw: JSON.stringify({ sql }),
        })
        const proof = await prove(reply.headers.get('x-receipt-id'), 'a')
        expect(proof.status).toBe(404)
      })

      test('of a record with many versions that are not in a long answer holds nobody up, and reads no more than it needs', async () => {
        const { owner, prove, buy } = await openScene()
        await owner.create({
          name: 'long',
          access_policy: { read: 'public', price: { per_row: '1' } },
        })
        const pad = 'x'.repeat(1_000)
        await owner.store(
          'long',
          Array.from({ length: 4_000 }, (_, n) => ({ id: `${n}`, pad })),
        )
        const root = `${owner.appId}::long`
        const reply = await buy(list({ root, find: {}, limit: 4_000 }))
        const versions = Array.from({ length: 2_000 }, (_, n) => ({ id: 'often', n }))
        expect((await owner.store('long', versions)).status).toBe(200)
        const meter = meterLoop()
        const proof = await prove(reply.headers.get('x-receipt-id'), 'often', 'long')
        const heldMs = meter.stop()
        expect(proof.status).toBe(404)
        expect(heldMs).toBeLessThan(300)
        // A version that was bought is proved, though the record was changed since.
        await owner.store('long', [{ id: '7', pad: 'another' }])
        const found = await prove(reply.headers.get('x-receipt-id'), '7', 'long')
        expect(found.status, found.text).toBe(200)
      }, 60_000)

      test('is of a record that SQL gave whole', async () => {
        const { owner, prove, buy } = await openScene()
        const sql = `SELECT * FROM "${owner.appId}"::people WHERE id = 'a' LIMIT 1`
        const reply = await buy({
          method: 'POST',
          path: '/query/sql',
          raw: JSON.stringify({ sql }),
        })
        const proof = await prove(reply.headers.get('x-receipt-id'), 'a')
        expect(proof.status).toBe(200)
      })
    },
    { devnet: true },
  ))
