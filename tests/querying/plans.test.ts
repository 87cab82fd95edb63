import { beforeAll, expect, test } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { createData, type Data } from '../support/data.ts'
import { withService } from '../support/per-engine.ts'

withService((service) => {
  let data: Data
  beforeAll(async () => {
    data = await createData(service())
    await data.create({ name: 'items' })
    const items = Array.from({ length: 200 }, (_, at) => ({ id: `${at}`, price: (at * 37) % 100 }))
    await data.store('items', items)
    const made = await data.call('POST', '/collections/items/indexes', { field_name: 'price' })
    expect(made.status, made.text).toBeLessThan(300)
  })

  const listPrices = async (body: object): Promise<readonly number[]> => {
    const root = `${data.appId}::items`
    const asked = { headers: data.headers, body: { root, limit: 50, ...body } }
    const { status, body: answer, text } = await service().request('POST', '/list', asked)
    expect(status, text).toBe(200)
    return answer.records.map(({ price }: { price: number }) => price)
  }
  const between = (from: number, to: number) => ({ find: { price: { between: { from, to } } } })
  /** The statements of lists on the connections whose sessions plan once, with the numbers of their plans. */
  const listPlannedOnce = () =>
    service().running.service.queryRunner.database.queryShort<{ once: bigint; each: bigint }>(
      sql`SELECT generic_plans AS once, custom_plans AS each FROM pg_catalog.pg_prepared_statements
        WHERE statement ^@ 'SELECT watermark'`,
      { keepsPlan: true },
    )

  test('a range of an indexed field in its own order is planned once for all bounds, and gives what its bounds ask for', async () => {
    const wanted = (from: number, to: number) =>
      Array.from({ length: 200 }, (_, at) => (at * 37) % 100)
        .filter((price) => price >= from && price <= to)
        .sort((a, b) => a - b)
        .slice(0, 50)
    await expect
      .poll(async () => (await data.call('GET', '/collections/items/indexes')).text)
      .toContain('"status":"active"')
    const bounds = [3, 99, 0, 50, 7, 8].map((from) => [from, from + 11] as const)
    await expect
      .poll(async () => {
        for (const [from, to] of bounds)
          expect(await listPrices({ ...between(from, to), sortBy: 'price' })).toEqual(
            wanted(from, to),
          )
        return listPlannedOnce()
      })
      .toEqual([{ once: expect.any(BigInt), each: 0n }])
    const [planned] = await listPlannedOnce()
    for (const [from, to] of bounds) await listPrices(between(from, to))
    await listPrices({ ...between(1, 5), sortBy: 'id' })
    await listPrices({ find: { price: { gt: 90 } }, sortBy: 'price' })
    // A second such connection, which is opened where the first one is busy, has none of them.
    await expect.poll(listPlannedOnce).toEqual([planned])
  })
})
