import { describe, expect, test } from 'vitest'
import { makeRandom, type Random } from '../soak/random.ts'
import { createData, type Data } from '../support/data.ts'
import { withService } from '../support/per-engine.ts'
import type { Json, TestReply } from '../support/service.ts'

const changes = (data: Data, query = ''): Promise<TestReply> =>
  data.call('GET', `/collections/c/changes${query}`)

describe('the feed of changes', () =>
  withService((service) => {
    test('the feed gives each version exactly once, whatever the limits, beside writers and over a restart', async () => {
      const seed = Number(process.env.SEED ?? 7)
      const chance = makeRandom(seed, 1)
      const data = await createData(service())
      await data.create({ name: 'c' })
      await data.create({ name: 'other' })
      const seen: Json[] = []
      let since = '0'
      for (let round = 0; round < 40; round++) {
        const [page] = await Promise.all([
          changes(data, `?since=${since}&limit=${1 + chance.integer(30)}`),
          ...Array.from({ length: chance.integer(4) }, () => write(data, chance)),
        ])
        expect(page.status, `seed ${seed}: ${page.text}`).toBe(200)
        seen.push(...page.body.changes)
        since = page.body.next
        if (round === 20) await service().restart()
      }
      for (let isEnd = false; !isEnd; ) {
        const { body } = await changes(data, `?since=${since}&limit=1000`)
        seen.push(...body.changes)
        since = body.next
        isEnd = body.changes.length === 0
      }
      const { body } = await data.list('c', { include_history: true })
      expect(seen.map(({ record }) => record)).toEqual(body.records)
      const places = seen.map(({ height, sequence }) => height * 1e6 + sequence)
      expect(places).toEqual([...new Set(places)].sort((a, b) => a - b))
    })
  }))

async function write(data: Data, chance: Random): Promise<void> {
  const records = Array.from({ length: 1 + chance.integer(8) }, () => ({
    id: `r${chance.integer(20)}`,
    n: chance.integer(1000),
    ...(chance.chance(20) && { deleted: true }),
  }))
  const { status, text } = await data.store(chance.pick(['c', 'c', 'other']), records)
  expect(status, text).toBe(200)
}
