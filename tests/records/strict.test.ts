import { expect, test } from 'vitest'
import { createData, listIds } from '../support/data.ts'
import { describePerEngine } from '../support/per-engine.ts'

describePerEngine('strict stores and event collections', (service) => {
  test('a strict store refuses a key that is there and a key that its call has twice, and takes none of the call', async () => {
    const app = await createData(service())
    await app.store('notes', [{ id: 'a' }])
    const refused = await app.store('notes', [{ id: 'b' }, { id: 'a' }], { strict: true })
    expect(refused).toMatchObject({
      status: 409,
      body: { code: 'RECORD_EXISTS', details: { key: 'a' } },
    })
    expect((await app.store('notes', [{ id: 'c' }, { id: 'c' }], { strict: true })).status).toBe(
      409,
    )
    expect(listIds(await app.list('notes'))).toEqual(['a'])
    expect((await app.store('notes', [{ id: 'b' }], { strict: true })).status).toBe(200)
  })

  test('exactly one of fifty strict writers of one key wins', async () => {
    const app = await createData(service())
    const replies = await Promise.all(
      Array.from({ length: 50 }, (_, by) =>
        app.queue('slots', [{ id: 'only', by }], { strict: true }),
      ),
    )
    const won = replies.flatMap(({ status }, by) => (status === 202 ? [by] : []))
    expect(won).toHaveLength(1)
    expect(replies.filter(({ status }) => status === 409)).toHaveLength(49)
    await expect
      .poll(async () => (await app.list('slots')).body.records)
      .toEqual([{ id: 'only', by: won[0] }])
    expect((await app.record('slots', 'only', '/history')).body.versions).toHaveLength(1)
  })

  test('no strict writer of a key comes after another writer', async () => {
    const app = await createData(service())
    await app.create({ name: 'slots' })
    for (let round = 0; round < 5; round++) {
      const id = `slot${round}`
      const replies = await Promise.all(
        Array.from({ length: 20 }, (_, by) =>
          app.store('slots', [{ id, by }], { strict: by % 2 === 0 }),
        ),
      )
      const history = (await app.record('slots', id, '/history')).body.versions
      const strictOnes = history
        .slice(1)
        .filter(({ record }: { record: { by: number } }) => record.by % 2 === 0)
      expect(strictOnes).toEqual([])
      expect(history).toHaveLength(replies.filter(({ status }) => status === 200).length)
    }
  })

  test('an event collection is append only: a store of a repeated key is refused', async () => {
    const app = await createData(service())
    await app.create({ name: 'events', collection_type: 'event' })
    expect((await app.store('events', [{ id: 'a', at: 1 }])).status).toBe(200)
    expect(await app.store('events', [{ id: 'b' }, { id: 'a', at: 2 }])).toMatchObject({
      status: 409,
      body: { code: 'RECORD_EXISTS' },
    })
    expect((await app.list('events')).body.records).toEqual([{ id: 'a', at: 1 }])
  })
})
