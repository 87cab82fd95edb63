import { createData } from '@tollbase/testing/data'
import { describePerEngine } from '@tollbase/testing/per-engine'
import { expect, test } from 'vitest'

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
})
