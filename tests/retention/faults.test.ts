import { expect, test } from 'vitest'
import type { Failpoint } from '../../packages/server/src/base/failpoints.ts'
import { createData, type Data, listIds } from '../support/data.ts'
import { withService } from '../support/per-engine.ts'
import type { TestService } from '../support/service.ts'
import { auditStopped, dayMs, keepFor, sweep } from './sweep.ts'

const points: readonly Failpoint[] = [
  'expiry.listed',
  'expiry.deleted',
  'block.erased',
  'expiry.done',
]

withService((service) => {
  test.each(points)(
    'an expiry that is broken off at %s is carried out by the next start',
    async (point) => {
      const app = await createData(service())
      const other = await createData(service())
      await app.store('c', [{ id: 'a', n: 1 }])
      await app.store('c', [{ id: 'b', n: 2 }])
      await app.call('POST', '/grants', { grantee: other.appId, collection: 'c' })
      const query = { aggregate: { n: { $count: '*' } } }
      for (const [owner, source] of [
        [app, 'c'],
        [other, `${app.appId}::c`],
      ] as const) {
        const refresh_mode = owner === app ? 'live' : 'lazy'
        const view = { name: 'v', source_collections: [source], query, refresh_mode }
        expect((await owner.call('POST', '/views', view)).status).toBe(201)
      }
      service().world.advance(2 * dayMs)
      await app.store('c', [{ id: 'b', n: 3 }])
      await keepFor(service(), app, ['c', 1])
      const died = breakOffAt(service(), point)
      await expect(sweep(service(), app)).rejects.toThrow('broken off')
      service().world.atFailpoints(undefined)
      expect(died.count).toBe(1)
      const between = await auditStopped(service())
      // A view that is to be made anew may not be yet.
      expect(between.difference).toBeUndefined()
      await sweep(service(), app)
      expect(listIds(await app.list('c'))).toEqual(['b'])
      expect((await app.record('c', 'a')).status).toBe(410)
      expect((await app.record('c', 'b', '/history')).body.versions).toHaveLength(2)
      expect(await countErased(service(), app)).toBe(2)
      expect((await app.list('v')).body.records).toEqual([{ n: 1 }])
      expect((await other.list('v')).body.records).toEqual([{ n: 0 }])
      expect(await auditStopped(service())).toMatchObject({ equal: true })
    },
  )
})

withService((service) => {
  test('an erasure that was broken off is carried out by the next start at once, before the first sweep', async () => {
    const app = await createData(service())
    await app.store('c', [{ id: 'a', person: 'ann' }])
    const died = breakOffAt(service(), 'expiry.deleted')
    await app.call('POST', '/collections/c/erase', { field: 'person', value: 'ann' })
    service().world.atFailpoints(undefined)
    expect(died.count).toBe(1)
    expect(await countErased(service(), app)).toBe(0)
    await service().whileStopped(async () => undefined)
    await expect.poll(() => countErased(service(), app), { timeout: 10_000 }).toBe(1)
  })
})

function breakOffAt({ world }: TestService, wanted: Failpoint) {
  const died = { count: 0 }
  world.atFailpoints((point) => {
    if (point !== wanted || died.count > 0) return
    died.count += 1
    throw new Error('broken off')
  })
  return died
}

async function countErased({ running: { service } }: TestService, app: Data): Promise<number> {
  const { chain } = await service.tenants.load(app.appId)
  let erased = 0
  for await (const block of chain.blocksFrom(1))
    erased += block.entries.filter((entry) => entry === undefined).length
  return erased
}
