import { limits } from '@tollbase/contract/limits'
import { createData, type Data, makeData } from '@tollbase/testing/data'
import { withService } from '@tollbase/testing/per-engine'
import type { Json, TestReply, TestService } from '@tollbase/testing/service'
import { describe, expect, test } from 'vitest'

const changes = (data: Data, query = '', collection = 'c'): Promise<TestReply> =>
  data.call('GET', `/collections/${collection}/changes${query}`)

async function open(service: TestService): Promise<Data> {
  const data = await createData(service)
  await data.create({ name: 'c' })
  return data
}

/** Waits until a request of the application waits for changes. */
async function untilWaiting(service: TestService, data: Data): Promise<void> {
  const { tenants } = service.running.service
  while ((await tenants.load(data.appId)).data.watchers.count === 0)
    await new Promise((resolve) => setTimeout(resolve, 5))
}

describe('listChanges', () =>
  withService((service) => {
    test('the feed gives every version in the order of the chain, deletions too, and where to go on', async () => {
      const data = await open(service())
      await data.store('c', [{ id: 'a', n: 1 }, { id: 'b' }])
      await data.store('c', [{ id: 'a', n: 2 }])
      await data.store('c', [{ id: 'b', deleted: true }])
      const { status, body, text } = await changes(data, '?since=0')
      expect(status, text).toBe(200)
      const [first] = body.changes
      expect(body.changes.map(({ key, deleted, record }: Json) => [key, deleted, record])).toEqual([
        ['a', false, { id: 'a', n: 1 }],
        ['b', false, { id: 'b' }],
        ['a', false, { id: 'a', n: 2 }],
        ['b', true, { id: 'b', deleted: true }],
      ])
      expect(first).toMatchObject({ height: body.as_of.block_height - 2, sequence: 0 })
      expect(body.next).toBe(`${body.as_of.block_height}:${body.as_of.sequence}`)
      expect((await changes(data, `?since=${body.next}`)).body).toEqual({ ...body, changes: [] })
      // A height is the end of its block, a sequence a position in it.
      const comingAfter = (since: string) =>
        changes(data, `?since=${since}`).then((reply) => reply.body.changes)
      expect(await comingAfter(`${first.height}`)).toEqual(body.changes.slice(2))
      expect(await comingAfter(`${first.height}:0`)).toEqual(body.changes.slice(1))
      expect(await comingAfter(`${first.height}:999999999`)).toEqual(body.changes.slice(2))
    })

    test('a page ends where its records have too many bytes, but has one at least', async () => {
      const data = await open(service())
      const text = 'x'.repeat(limits.recordBytesMax - 100)
      const count = Math.floor(limits.changesBytesMax / limits.recordBytesMax) + 2
      for (let at = 0; at < count; at++) await data.store('c', [{ id: `r${at}`, text }])
      const first = (await changes(data)).body
      expect(first.changes).toHaveLength(count - 2)
      expect((await changes(data, `?since=${first.next}`)).body.changes).toHaveLength(2)
    }, 20_000)

    test('limits and waits are taken up to their bounds, and positions that there are', async () => {
      const data = await open(service())
      const { changesMax, changesWaitSecondsMax } = limits
      await data.store('c', [{ id: 'a' }])
      for (const [query, field] of [
        [`limit=${changesMax}`, undefined],
        [`limit=${changesMax + 1}`, '/query/limit'],
        ['limit=0', '/query/limit'],
        [`wait=${changesWaitSecondsMax}`, undefined],
        [`wait=${changesWaitSecondsMax + 1}`, '/query/wait'],
        ['wait=-1', '/query/wait'],
        ['since=1:', '/query/since'],
        ['since=-1', '/query/since'],
        ['since=01', '/query/since'],
        ['since=1:0:0', '/query/since'],
        ['since=999999', '/query/since'],
      ]) {
        const { status, body } = await changes(data, `?${query}`)
        expect([query, status, body.details?.field]).toEqual([query, field ? 400 : 200, field])
      }
    })

    test('the feed is for Read alone, also where the collection is public', async () => {
      const data = await open(service())
      const path = `/api/apps/${data.appId}/collections/c/changes`
      expect((await service().request('GET', path)).status).toBe(401)
      const { body } = await data.call('POST', '/keys', { permissions: ['Write'] })
      const writer = await service().request('GET', path, { headers: { 'x-app-key': body.key } })
      expect(writer.status).toBe(403)
      expect((await changes(data, '', 'none')).body.code).toBe('COLLECTION_NOT_FOUND')
    })

    test('a wait ends as soon as a change comes to the collection, not at one to another', async () => {
      const data = await open(service())
      await data.store('other', [{ id: 'a' }])
      const { next } = (await changes(data)).body
      const waiting = changes(data, `?since=${next}&wait=25`)
      await untilWaiting(service(), data)
      await data.store('other', [{ id: 'b' }])
      await data.store('c', [{ id: 'x' }])
      expect((await waiting).body.changes).toMatchObject([{ key: 'x' }])
    })

    test('a wait is answered without a change once its time is over', async () => {
      const data = await open(service())
      const { status, body } = await changes(data, '?wait=1')
      expect([status, body.changes]).toEqual([200, []])
    })

    test('a wait ends with the key that asked', async () => {
      const data = await open(service())
      const { body } = await data.call('POST', '/keys', { permissions: ['Read'] })
      const reader = makeData(service(), { ...data, headers: { 'x-app-key': body.key } })
      const waiting = changes(reader, '?wait=25')
      await untilWaiting(service(), data)
      await data.call('POST', `/keys/${body.key_hash}/revoke`, {})
      await data.store('c', [{ id: 'x' }])
      expect((await waiting).body.code).toBe('UNAUTHORIZED')
    })

    test('a wait ends with its collection', async () => {
      const data = await open(service())
      const waiting = changes(data, '?wait=25')
      await untilWaiting(service(), data)
      await data.call('DELETE', '/collections/c')
      expect((await waiting).body.code).toBe('COLLECTION_NOT_FOUND')
    })

    test('a wait ends when the service stops', async () => {
      const data = await open(service())
      const waiting = changes(data, '?wait=25')
      await untilWaiting(service(), data)
      await service().restart()
      expect(await waiting).toMatchObject({ status: 200, body: { changes: [] } })
    })

    test('waits hold no connection of the database, and are bounded per application', async () => {
      const data = await open(service())
      const waiting = Array.from({ length: limits.changesWaitingMax }, () =>
        changes(data, '?wait=25'),
      )
      const { watchers } = (await service().running.service.tenants.load(data.appId)).data
      while (watchers.count < limits.changesWaitingMax)
        await new Promise((resolve) => setTimeout(resolve, 5))
      const more = await changes(data, '?wait=25')
      expect([more.status, more.body.code]).toEqual([429, 'RATE_LIMITED'])
      expect((await changes(data)).status).toBe(200)
      await data.store('c', [{ id: 'x' }])
      for (const reply of await Promise.all(waiting)) expect(reply.body.changes).toHaveLength(1)
      expect(watchers.count).toBe(0)
    })
  }))
