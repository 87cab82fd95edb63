import { limits } from '@tollbase/contract/limits'
import { createData, type Data, listIds } from '@tollbase/testing/data'
import { describePerEngine } from '@tollbase/testing/per-engine'
import { expect, test } from 'vitest'

const countries = ['192.0.2.0/24,DE', '10.0.0.0,10.0.0.255,AT', '2001:db8::/32,DE']

const create = (data: Data, body: object) => data.call('POST', '/datasets', body)

describePerEngine('createDataSet', (service) => {
  test('a set has the most entries that the limit allows, and one more is refused', async () => {
    const data = await createData(service())
    // They do not touch.
    const apart = Array.from(
      { length: limits.dataSetEntriesMax },
      (_, at) => `2001:${(at >> 8).toString(16)}:${(at & 255).toString(16)}:1::/64`,
    )
    const made = await create(data, { name: 'many', kind: 'cidr', entries: apart })
    expect(made, made.text).toMatchObject({ status: 201, body: { count: apart.length } })
    expect(
      (await create(data, { name: 'many', kind: 'cidr', entries: [...apart, '::1'] })).status,
    ).toBe(400)
    await data.store('visits', [{ id: 'z', ip: '2001:c3:4f:1::9' }])
    expect(listIds(await data.list('visits', { find: { ip: { inDataset: 'many' } } }))).toEqual([
      'z',
    ])
  })

  test('an application has one set of countries and the most sets that the limit allows, and one more is refused', async () => {
    const data = await createData(service())
    await create(data, { name: 'geo', kind: 'ip_country', entries: countries })
    expect(
      await create(data, { name: 'geo2', kind: 'ip_country', entries: countries }),
    ).toMatchObject({
      status: 409,
      body: { code: 'CONFLICT' },
    })
    for (let at = 1; at < limits.dataSetsPerApplicationMax; at++)
      expect((await create(data, { name: `s${at}`, kind: 'values', entries: [] })).status).toBe(201)
    expect((await create(data, { name: 'more', kind: 'values', entries: [] })).status).toBe(409)
  })
})
