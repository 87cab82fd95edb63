import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ask, createFundedBuyer, list, quote, readBalance } from '../support/buyer.ts'
import { expectBalanced, openMarket, readReceipt, store } from '../support/market.ts'
import { type Json, startTestService, type TestService } from '../support/service.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ devnet: true })
})
afterAll(() => service?.close())

const price = { per_access: '10', per_row: '7' }
const records = Array.from({ length: 7 }, (_, at) => ({ id: `r${at}`, n: 10 - at }))

describe('pages by cursor over rows with a price', () => {
  test('each page costs by its rows, all pages together give the list as of the first, and no page is free', async () => {
    const market = await openMarket(service, { price, records })
    const query = { root: market.root, sortBy: 'n', limit: 3 }
    const buyer = await createFundedBuyer(service)
    const first = await buyer.buy(service, list(query))
    // The total states as many records as were delivered.
    expect(first.body).toMatchObject({ total: 3, page: 1 })
    await store(service, market, [{ id: 'r6', n: 100 }, { id: 'r1', deleted: true }, { id: 'new' }])
    const seen: Json[] = [...first.body.records]
    let cursor = first.body.next_cursor
    for (const rows of [3, 1]) {
      const asked = list({ ...query, cursor })
      const required = await quote(service, asked)
      expect(required.text).not.toMatch(/"r\d"/)
      const page = await buyer.buy(service, asked)
      expect(page.status, page.text).toBe(200)
      expect(page.body).toMatchObject({ total: seen.length + rows, as_of: first.body.as_of })
      const receipt = await readReceipt(service, page)
      expect(receipt.amount).toBe(String(10 + 7 * rows))
      seen.push(...page.body.records)
      cursor = page.body.next_cursor
    }
    expect(cursor).toBeUndefined()
    expect(seen).toEqual(records.toReversed())
    const paid = 3n * (10n + 3n * 7n)
    const charged = 3n * 10n + 7n * 7n
    expect(await readBalance(service, buyer.address)).toBe(paid - charged)
    await expectBalanced(service)
  })

  test('pages are never cut short by their bytes: a page that is too large is refused, and the limit that the refusal names fits', async () => {
    const text = 'x'.repeat(400)
    const long = records.map((record) => ({ ...record, text }))
    const market = await openMarket(service, { price: { per_kb: '10' }, records: long })
    const query = { root: market.root, max_kb: 1 }
    const buyer = await createFundedBuyer(service)
    const refused = await buyer.buy(service, list(query))
    expect([refused.status, refused.body.code]).toEqual([413, 'RESULT_TOO_LARGE'])
    const { limit } = refused.body.details
    const seen: Json[] = []
    let cursor: string | undefined
    do {
      const page = await buyer.buy(service, list({ ...query, limit, ...(cursor && { cursor }) }))
      expect(page.status, page.text).toBe(200)
      seen.push(...page.body.records)
      cursor = page.body.next_cursor
    } while (cursor !== undefined)
    expect(seen).toEqual(long)
    await expectBalanced(service)
  })

  test('a cursor of a caller who reads for nothing, a forged one and an expired one are refused before anybody pays', async () => {
    const market = await openMarket(service, { price, records })
    const query = { root: market.root, limit: 3 }
    const free = await ask(service, { ...list(query), headers: market.headers })
    const buyer = await createFundedBuyer(service)
    const sold = await buyer.buy(service, list(query))
    const { next_cursor: cursor } = sold.body
    const forged = `${cursor.slice(0, -2)}${cursor.at(-2) === 'A' ? 'B' : 'A'}${cursor.at(-1)}`
    for (const other of [free.body.next_cursor, forged]) {
      const reply = await ask(service, list({ ...query, cursor: other }))
      expect([reply.status, reply.body.details.field]).toEqual([400, '/cursor'])
    }
    const { headers } = market
    const back = await ask(service, {
      ...list({ ...query, cursor }),
      headers,
    })
    expect(back.status).toBe(400)
    service.world.advance(3601_000)
    const late = await ask(service, list({ ...query, cursor }))
    expect([late.status, late.body.details.field]).toEqual([400, '/cursor'])
  })
})
