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
})
