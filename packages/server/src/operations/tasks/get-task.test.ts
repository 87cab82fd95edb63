import { createData, listIds } from '@tollbase/testing/data'
import { describePerEngine } from '@tollbase/testing/per-engine'
import { expect, test } from 'vitest'

describePerEngine('getTask', (service) => {
  test('an unknown task, and one that was tampered with, is 404', async () => {
    const app = await createData(service())
    const { ticket_id } = (await app.store('notes', [{ id: 'a' }])).body
    const other = ticket_id.slice(0, -1) + (ticket_id.endsWith('0') ? '1' : '0')
    for (const id of ['x', 'task_', `task_${'0'.repeat(32)}`, other, ticket_id.toUpperCase()]) {
      expect(await service().request('GET', `/task/${id}`)).toMatchObject({
        status: 404,
        body: { code: 'TASK_NOT_FOUND' },
      })
    }
  })

  test('a ticket tells of its task after a restart too', async () => {
    const app = await createData(service())
    const { ticket_id } = (await app.queue('notes', [{ id: 'a' }])).body
    await service().restart()
    const { body } = await service().request('GET', `/task/${ticket_id}`)
    expect(body.status).toBe('Completed')
    expect(listIds(await app.list('notes'))).toEqual(['a'])
  })

  test('a task whose definition another one has replaced is gone, and never a store of records', async () => {
    const app = await createData(service())
    await app.create({ name: 'large' })
    const data = Array.from({ length: 2_100 }, (_, n) => ({ id: `${n}`, city: 'Graz' }))
    await app.store('large', data)
    const declare = (field: string) =>
      app.call('PUT', '/collections/large', {
        schema_definition: { properties: { [field]: { type: 'string' } } },
      })
    expect((await declare('city')).status).toBe(200)
    const [task] = (await app.call('GET', '/tasks')).body.tasks
    expect(task.operation_type).toBe('fill_columns')
    expect((await declare('street')).status).toBe(200)
    expect(await service().request('GET', `/task/${task.ticket_id}`)).toMatchObject({
      status: 404,
      body: { code: 'TASK_NOT_FOUND' },
    })
  })
})
