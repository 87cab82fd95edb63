import { limits } from '@tollbase/contract/limits'
import { createData } from '@tollbase/testing/data'
import { describePerEngine } from '@tollbase/testing/per-engine'
import type { Json } from '@tollbase/testing/service'
import { expect, test } from 'vitest'
import { iterateNewestGroups } from './newest-groups.ts'

describePerEngine('listTasks', (service) => {
  test('tasks are listed newest first, at most the number that is asked for', async () => {
    const app = await createData(service())
    const tickets: string[] = []
    for (const id of ['a', 'b', 'c'])
      tickets.unshift((await app.store('notes', [{ id }])).body.ticket_id)
    const { body } = await app.call('GET', '/tasks')
    expect(body.tasks.map(({ ticket_id }: { ticket_id: string }) => ticket_id)).toEqual(tickets)
    expect((await app.call('GET', '/tasks?limit=1')).body.tasks).toHaveLength(1)
    expect((await app.call('GET', '/tasks?limit=0')).status).toBe(400)
  })
  test('a caller without Read is told the state of each task, and nothing of its records', async () => {
    const app = await createData(service())
    await app.create({ name: 'closed', access_policy: 'private' })
    const stored = await app.store('closed', [{ id: 'hidden-1' }, { id: 'hidden-2' }])
    const view = { name: 'v', source_collections: ['closed'], query: {} }
    await app.call('POST', '/views', view)
    const { body: key } = await app.call('POST', '/keys', { permissions: ['Write'] })
    const path = `/api/apps/${app.appId}/tasks`
    for (const headers of [{ 'x-app-key': String(key.key) }, service().operator]) {
      const { body } = await service().request('GET', path, { headers })
      const [filling, storing] = body.tasks
      expect(filling).toMatchObject({ operation_type: 'create_view', progress_log: [] })
      expect(storing).toMatchObject({
        status: 'Completed',
        operation_type: 'write',
        block_height: stored.body.results[0].block_height,
        transaction_hash: null,
        progress_log: [],
      })
      for (const task of body.tasks) {
        expect(task).not.toHaveProperty('result')
        // The id opens no more than the list does.
        expect((await service().request('GET', `/task/${task.ticket_id}`)).body).toEqual(task)
      }
    }
    const { ticket_id } = (await app.call('GET', '/tasks')).body.tasks[1]
    expect(ticket_id).toBe(stored.body.ticket_id)
    const whole = await service().request('GET', `/task/${ticket_id}`)
    expect(whole.body.result.results.map(({ id }: { id: string }) => id)).toEqual([
      'hidden-1',
      'hidden-2',
    ])
  })

  test('a list names so many records and no more, and other stores by their states', async () => {
    const app = await createData(service())
    const makeData = (from: number) =>
      Array.from({ length: limits.taskRecordsListedMax / 2 }, (_, n) => ({ id: `${from + n}` }))
    const stored: Json[] = []
    for (const from of [0, 10_000, 20_000])
      stored.unshift((await app.store('many', makeData(from))).body)
    const { tasks } = (await app.call('GET', '/tasks?limit=1000')).body
    const counts = tasks.map(({ result }: Json) => result?.results.length)
    expect(counts).toEqual([5_000, 5_000, undefined])
    expect(tasks[2]).toMatchObject({ status: 'Completed', ticket_id: stored[2].ticket_id })
    const { body } = await service().request('GET', `/task/${tasks[2].ticket_id}`)
    expect(body.result.results).toHaveLength(5_000)
  })

  test('a list looks through so many blocks, and bytes of them, and no further', async () => {
    const app = await createData(service())
    for (const id of ['a', 'b', 'c']) await app.store('notes', [{ id }])
    const tenant = await service().running.service.tenants.load(app.appId)
    const { height } = tenant.chain.head()
    const listHeights = async (bounds: { blocksMax: number; bytesMax: number }) => {
      const heights: number[] = []
      for await (const { block } of iterateNewestGroups(tenant, bounds)) heights.push(block.height)
      return heights
    }
    const bytesMax = limits.taskBlockBytesMax
    expect(await listHeights({ blocksMax: 2, bytesMax })).toEqual([height, height - 1])
    expect(await listHeights({ blocksMax: height, bytesMax })).toHaveLength(height)
    const { bodyBytes = 0 } = (await tenant.chain.readBlock(height)) ?? {}
    expect(await listHeights({ blocksMax: height, bytesMax: bodyBytes })).toEqual([height])
    expect(await listHeights({ blocksMax: height, bytesMax: bodyBytes + 1 })).toEqual([
      height,
      height - 1,
    ])
  })
})
