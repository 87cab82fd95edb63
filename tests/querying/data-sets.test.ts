import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { limits } from '@tollbase/contract/limits'
import { describe, expect, test } from 'vitest'
import { createData, type Data, listIds } from '../support/data.ts'
import { describePerEngine } from '../support/per-engine.ts'
import { startTestService } from '../support/service.ts'

const visits = [
  { id: 'a', ip: '10.0.0.7', who: 'x', n: 1 },
  { id: 'b', ip: '192.0.2.9', who: 'y', n: 2 },
  { id: 'c', ip: '2001:db8::5', who: 'x', n: 3 },
  { id: 'd', ip: 'no address', who: 7, n: 4 },
  { id: 'e', n: 5 },
]
const countries = ['192.0.2.0/24,DE', '10.0.0.0,10.0.0.255,AT', '2001:db8::/32,DE']

async function openVisits(service: Parameters<typeof createData>[0]): Promise<Data> {
  const data = await createData(service)
  await data.publish('visits', visits)
  return data
}

const create = (data: Data, body: object) => data.call('POST', '/datasets', body)

describePerEngine('data sets in queries', (service) => {
  test('inDataset holds for the values of the set, inCountry for addresses in the country, and their negations for everything else', async () => {
    const data = await openVisits(service())
    const { status, body } = await create(data, {
      name: 'known',
      kind: 'values',
      entries: ['x', 'x', 7],
    })
    expect({ status, body }).toMatchObject({
      status: 201,
      body: { name: 'known', kind: 'values', count: 2, provider: 'application', updated: false },
    })
    await create(data, { name: 'nets', kind: 'cidr', entries: ['10.0.0.0/8', '2001:db8::5'] })
    await create(data, { name: 'geo', kind: 'ip_country', entries: countries })
    for (const [find, ids] of [
      [{ who: { inDataset: 'known' } }, ['a', 'c', 'd']],
      [{ not: [{ who: { inDataset: 'known' } }] }, ['b', 'e']],
      [{ ip: { inDataset: 'nets' } }, ['a', 'c']],
      [{ ip: { inDataset: 'geo' } }, ['a', 'b', 'c']],
      [{ ip: { inCountry: 'DE' } }, ['b', 'c']],
      [{ ip: { inCountry: 'at' } }, ['a']],
      [{ ip: { inCountry: 'FR' } }, []],
      [{ not: { ip: { inCountry: 'DE' } } }, ['a', 'd', 'e']],
      [{ or: [{ ip: { inCountry: 'AT' } }, { who: { inDataset: 'known' } }] }, ['a', 'c', 'd']],
    ] as const)
      expect(listIds(await data.list('visits', { find })), JSON.stringify(find)).toEqual(ids)
  })

  test('joins and groups look into the sets of the application whose records are tested', async () => {
    const data = await openVisits(service())
    await data.store('people', [{ id: 'x' }, { id: 'y' }])
    await create(data, { name: 'geo', kind: 'ip_country', entries: countries })
    const join = {
      model: 'visits',
      resolve: { find: { who: '$data.id', ip: { inCountry: 'DE' } }, select: { id: true } },
    }
    expect((await data.list('people', { find: { seen: join } })).body.records).toEqual([
      { id: 'x', seen: [{ id: 'c' }] },
      { id: 'y', seen: [{ id: 'b' }] },
    ])
    const groups = { find: { ip: { inCountry: 'DE' } }, aggregate: { n: { $sum: 'n' } } }
    expect((await data.list('visits', groups)).body.records).toEqual([{ n: 5 }])
  })

  test('a replaced or deleted set counts for the next query, and a cursor from before is no longer accepted', async () => {
    const data = await openVisits(service())
    await create(data, { name: 's', kind: 'values', entries: ['x', 'y'] })
    const find = { who: { inDataset: 's' } }
    const first = await data.list('visits', { find, limit: 1 })
    const next = () => data.list('visits', { find, limit: 1, cursor: first.body.next_cursor })
    expect(listIds(await next())).toEqual(['b'])
    const { body } = await create(data, { name: 's', kind: 'cidr', entries: ['10.0.0.7'] })
    expect(body).toMatchObject({ kind: 'cidr', count: 1, updated: true })
    expect(listIds(await data.list('visits', { find: { ip: { inDataset: 's' } } }))).toEqual(['a'])
    expect(await next()).toMatchObject({ status: 400, body: { details: { field: '/cursor' } } })
    expect((await data.call('DELETE', '/datasets/s')).status).toBe(200)
    const gone = { status: 404, body: { code: 'DATA_SET_NOT_FOUND' } }
    expect(await data.list('visits', { find })).toMatchObject(gone)
    expect(await data.call('GET', '/datasets/s')).toMatchObject(gone)
    expect(await data.call('DELETE', '/datasets/s')).toMatchObject(gone)
  })

  test('inDataset and inCountry name a set that is missing, and who can provide it', async () => {
    const data = await openVisits(service())
    for (const [find, said] of [
      [{ who: { inDataset: 'nothing' } }, 'no data set nothing'],
      [{ ip: { inCountry: 'DE' } }, 'tells countries'],
    ] as const) {
      const reply = await data.list('visits', { find })
      expect(reply).toMatchObject({ status: 404, body: { code: 'DATA_SET_NOT_FOUND' } })
      expect(reply.body.error).toContain(said)
    }
  })

  test('a set that is not public is for keys that may Read, and does not exist for others', async () => {
    const data = await openVisits(service())
    const find = { who: { inDataset: 's' } }
    await create(data, { name: 's', kind: 'values', entries: ['x'] })
    expect(await data.listOpenly('visits', { find })).toMatchObject({
      status: 404,
      body: { code: 'DATA_SET_NOT_FOUND' },
    })
    await create(data, { name: 's', kind: 'values', entries: ['x'], public: true })
    expect(listIds(await data.listOpenly('visits', { find }))).toEqual(['a', 'c'])
    const { body } = await data.call('GET', '/datasets/s')
    expect(JSON.stringify(body)).not.toContain('entries')
  })

  test('neither partial indexes nor batches look into a set', async () => {
    const data = await openVisits(service())
    await create(data, { name: 's', kind: 'values', entries: ['x'] })
    const where = { who: { inDataset: 's' } }
    const index = { collection: 'visits', field_name: 'n', where }
    expect((await data.call('POST', '/indexes', index)).status).toBe(400)
    const operation = { operation: 'delete', collection: 'visits', data: null, conditions: where }
    const batch = await data.call('POST', '/batch', { operations: [operation] })
    expect(batch.status, batch.text).toBe(400)
    expect((await data.list('visits')).body.total).toBe(5)
  })

  test('a rebuild makes the data sets from the log as they were', async () => {
    const data = await openVisits(service())
    await create(data, { name: 's', kind: 'values', entries: ['x', 7, true] })
    await create(data, { name: 'gone', kind: 'values', entries: ['x'] })
    await create(data, { name: 'geo', kind: 'ip_country', entries: countries })
    await data.call('DELETE', '/datasets/gone')
    const listed = (await data.call('GET', '/datasets')).body
    await service().restart()
    expect((await data.call('GET', '/datasets')).body).toEqual(listed)
    const find = { or: [{ who: { inDataset: 's' } }, { ip: { inCountry: 'AT' } }] }
    expect(listIds(await data.list('visits', { find }))).toEqual(['a', 'c', 'd'])
  })
})

describe('data sets of the operator', () => {
  test('the sets of the operator are read from their files at start, serve all applications, and give way to an own one of the name', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tollbase-data-sets-'))
    const file = join(folder, 'countries.csv')
    writeFileSync(file, `network,country\n# comment\n${countries.join('\n')}\n`)
    const tor = join(folder, 'tor.txt')
    writeFileSync(tor, 'x\ny\n')
    const service = await startTestService({
      config: {
        dataSets: [
          { name: 'geo', kind: 'ip_country', file },
          { name: 'tor', kind: 'values', file: tor },
        ],
      },
    })
    try {
      const data = await openVisits(service)
      const find = { ip: { inCountry: 'DE' } }
      expect(listIds(await data.listOpenly('visits', { find }))).toEqual(['b', 'c'])
      expect((await data.call('GET', '/datasets')).body.datasets).toMatchObject([
        { name: 'geo', kind: 'ip_country', count: 3, provider: 'operator' },
        { name: 'tor', count: 2, provider: 'operator' },
      ])
      await create(data, { name: 'tor', kind: 'values', entries: [7] })
      expect(listIds(await data.list('visits', { find: { who: { inDataset: 'tor' } } }))).toEqual([
        'd',
      ])
      writeFileSync(file, '192.0.2.0/24,FR\n')
      await service.restart()
      expect(listIds(await data.list('visits', { find }))).toEqual([])
      expect(listIds(await data.list('visits', { find: { ip: { inCountry: 'FR' } } }))).toEqual([
        'b',
      ])
    } finally {
      await service.close()
      rmSync(folder, { recursive: true })
    }
  })

  test('a file of a data set that is missing or has a mistake keeps the service from starting, and is named', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tollbase-data-sets-'))
    const file = join(folder, 'countries.csv')
    const start = () =>
      startTestService({ config: { dataSets: [{ name: 'geo', kind: 'ip_country', file }] } })
    try {
      await expect(start()).rejects.toThrow('The data set geo cannot be read')
      writeFileSync(file, '192.0.2.0/24,DE\n192.0.3.0/24,France\n')
      await expect(start()).rejects.toThrow(`${file}:2 must end with the two letters`)
      writeFileSync(file, '192.0.2.0/24,DE\n'.repeat(limits.dataSetFileEntriesMax + 1))
      await expect(start()).rejects.toThrow(`more than ${limits.dataSetFileEntriesMax} entries`)
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})
