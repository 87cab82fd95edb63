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
})
