import { createData } from '@tollbase/testing/data'
import { people } from '@tollbase/testing/people'
import { describePerEngine } from '@tollbase/testing/per-engine'
import { expect, test } from 'vitest'

describePerEngine('getIndexStatistics', (service) => {
  test('the statistics are what the database counts of the index', async () => {
    const app = await createData(service())
    await app.store('people', people)
    await app.call('POST', '/indexes', { collection: 'people', field_name: 'age' })
    // Each page is one scan, and the count of all matches another.
    for (let at = 0; at < 5; at++) await app.list('people', { find: { age: at }, limit: 10 })
    const statistics = async () =>
      (await app.call('GET', '/collections/people/indexes/people_age_idx/statistics')).body
    await expect.poll(async () => (await statistics()).usage_count).toBe(10)
    const counted = await statistics()
    expect(counted.size).toBeGreaterThan(8_000)
    expect(counted.tuples_read).toBeGreaterThan(0)
    if (service().running.service.database.major >= 16)
      expect(Date.parse(counted.last_used)).toBeGreaterThan(0)
    const [listed] = (await app.call('GET', '/indexes?include_stats=true')).body
    expect(listed.statistics).toMatchObject({ size: counted.size })
    expect((await app.call('GET', '/indexes')).body[0]).not.toHaveProperty('statistics')
  })
})
