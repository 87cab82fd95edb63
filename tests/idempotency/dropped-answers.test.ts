import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import {
  dropNamedAnswers,
  findNamedRequest,
  insertNamedRequest,
  keepNamedAnswer,
} from '../../packages/server/src/services/requests/named-request-store.ts'
import { createData } from '../support/data.ts'
import { withService } from '../support/per-engine.ts'

describe('kept answers of an application that erases records', () =>
  withService((service) => {
    test('the answer of a request that was under way meanwhile is not kept; one that begins later, and those of others, are', async () => {
      const { database, world } = service()
      const begin = async (app: string) => {
        const id = createHash('md5').update(world.randomBytes(16)).digest('hex')
        const own = { id, holder: 'this process' }
        const expires_at_ms = BigInt(world.now() + 60_000)
        const request_hash = '0'.repeat(64)
        const row = { ...own, owner: `app:${app}`, app, request_hash, expires_at_ms }
        expect(await insertNamedRequest(database, row)).toBe(true)
        return {
          keep: () => keepNamedAnswer(database, own, Buffer.from('answer')),
          read: async () => (await findNamedRequest(database, id))?.answer?.toString(),
        }
      }
      const [before, underWay, others] = [
        await begin('shop'),
        await begin('shop'),
        await begin('x'),
      ]
      await before.keep()
      await dropNamedAnswers(database, 'shop')
      const later = await begin('shop')
      for (const one of [underWay, others, later]) await one.keep()
      expect(await before.read()).toBe('')
      expect(await underWay.read()).toBeUndefined()
      expect([await others.read(), await later.read()]).toEqual(['answer', 'answer'])
    })

    test('a deletion with an Idempotency-Key keeps its own answer', async () => {
      const data = await createData(service())
      await data.create({ name: 'gone' })
      const remove = () =>
        service().request('DELETE', `/api/apps/${data.appId}/collections/gone`, {
          headers: { ...data.headers, 'idempotency-key': 'remove-it-once' },
        })
      const first = await remove()
      expect(first.status, first.text).toBeLessThan(300)
      const again = await remove()
      expect([again.status, again.text]).toEqual([first.status, first.text])
    })
  }))
