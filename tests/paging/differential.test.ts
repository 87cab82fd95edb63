import { afterAll, beforeAll, expect, test } from 'vitest'
import { makeRandom, type Random } from '../soak/random.ts'
import { createData, type Data } from '../support/data.ts'
import { type Json, startTestService, type TestService } from '../support/service.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService()
})
afterAll(() => service?.close())

const seed = Number(process.env.SEED ?? 20261121)
const rounds = 20
const long = 'long '.repeat(40)

/** The values have every type; many are equal, and some strings have keys that are cut and alike. */
const values: readonly [unknown, ...unknown[]] = [
  undefined,
  null,
  false,
  true,
  0,
  1,
  1.5,
  -2,
  12345678901234567890n.toString(),
  '',
  'a',
  'b',
  `${long}1`,
  `${long}2`,
  `${long}3`,
  [],
  { deep: 1 },
]

test(`pages by cursor together are the list at the height of the first page, whatever is written beside them (seed ${seed})`, async () => {
  const chance = makeRandom(seed, 0)
  const data = await createData(service)
  await data.create({ name: 'c' })
  await data.create({ name: 'u' })
  await data.call('POST', '/collections/c/indexes', { field: 'v', name: 'by_v' })
  await data.call('POST', '/collections/u/indexes', { field: 'k', name: 'by_k', unique: true })
  await write(data, chance, 60)
  for (let round = 0; round < rounds; round++) {
    const collection = chance.pick(['c', 'c', 'u'])
    const query = {
      ...chance.pick<{ sortBy?: string }>([{}, { sortBy: 'v' }, { sortBy: 'v' }, { sortBy: 'n' }]),
      sortDirection: chance.pick(['asc', 'desc']),
      include_history: chance.integer(5) === 0,
      find: chance.pick<object>([
        {},
        {},
        { n: { gte: 2 } },
        { v: { isNotNull: true } },
        { id: 'r7' },
      ]),
      select: chance.pick([null, { id: true }]),
    }
    // Joined records are those of the first page's moment too.
    const other = chance.pick(['c', 'u'])
    const join = {
      model: other,
      many: chance.integer(2) === 0,
      resolve: { find: { n: '$data.n' } },
    }
    if (chance.integer(3) === 0) query.find = { ...query.find, others: join }
    const place = `round ${round}: ${collection} ${JSON.stringify(query)}`
    const whole = await data.list(collection, query)
    const pages: Json[] = []
    let cursor: string | undefined
    do {
      const asked = { ...query, limit: 1 + chance.integer(25), ...(cursor && { cursor }) }
      const writes = cursor === undefined ? 0 : chance.integer(4)
      const [page] = await Promise.all([
        data.list(collection, asked),
        ...Array.from({ length: writes }, () => write(data, chance, 1 + chance.integer(12))),
      ])
      expect(page.status, `${place} ${page.text}`).toBe(200)
      expect(page.body.as_of, place).toEqual(whole.body.as_of)
      expect(page.body.total, place).toBe(whole.body.total)
      pages.push(...page.body.records)
      cursor = page.body.next_cursor
      if (round % 10 === 4 && cursor !== undefined && pages.length < 30) await service.restart()
    } while (cursor !== undefined)
    expect(pages, place).toEqual(whole.body.records)
  }
}, 120_000)

async function write(data: Data, chance: Random, count: number): Promise<void> {
  const records = Array.from({ length: count }, () => ({
    id: `r${chance.integer(90)}`,
    n: chance.integer(5),
    k: chance.integer(70),
    v: chance.pick(values),
    ...(chance.integer(6) === 0 && { deleted: true }),
  }))
  const { status, text } = await data.store(chance.pick(['c', 'c', 'u']), records)
  expect(status, text).toBe(200)
}
