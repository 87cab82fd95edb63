import { limits } from '@tollbase/contract/limits'
import { describe, expect, test } from 'vitest'
import { type Asked, createFundedBuyer, readBalance } from '../support/buyer.ts'
import { openMarket, readEarnings } from '../support/market.ts'
import { withService } from '../support/per-engine.ts'

const inSql = (sql: string, maxKb = 1): Asked => ({
  method: 'POST',
  path: '/query/sql',
  raw: JSON.stringify({ sql, max_kb: maxKb }),
})

describe('answers that are refused once they are computed', () =>
  withService(
    (service) => {
      test('tell nothing of the records', async () => {
        const records = [...'0123456789'].map((id, n) => ({ id, secret: n }))
        const market = await openMarket(service(), {
          price: { per_access: '1000' },
          policy: { derive: { per_access: '1000' } },
          records,
        })
        const buyer = await createFundedBuyer(service())
        const from = `"${market.appId}"::${market.collection} WHERE id`
        const told: string[] = []
        for (const { id } of records.slice(2, 8)) {
          for (const sql of [
            `SELECT CASE secret WHEN 2 THEN repeat('x', 2000) WHEN 3 THEN repeat('x', 4000) WHEN 4 THEN repeat('x', 8000) WHEN 5 THEN repeat('x', 16000) WHEN 6 THEN repeat('x', 32000) ELSE repeat('x', 64000) END AS x FROM ${from} = '${id}'`,
            `SELECT CASE WHEN secret > 4 THEN power(10, 300 * secret) ELSE 1 END AS y, repeat('x', 2000) AS x FROM ${from} = '${id}'`,
            `SELECT s.secret, g FROM "${market.appId}"::${market.collection} s, generate_series(1, CASE WHEN s.secret > 4 THEN 200000 ELSE 2000 END) g WHERE s.id = '${id}'`,
          ]) {
            const reply = await buyer.buy(service(), inSql(sql))
            const { request_id, details, ...body } = reply.body
            const { payment_id, ...told_more } = details
            told.push(JSON.stringify([reply.status, body, told_more]))
          }
        }
        expect(await readEarnings(service(), market)).toBe(0n)
        expect(await readBalance(service(), buyer.address)).toBe(18_000n)
        expect([...new Set(told)]).toHaveLength(1)
        // The same for all: the most that there is.
        const [, , ways] = JSON.parse(told[0] ?? '')
        expect(ways).toEqual({ charged: '0', max_kb: limits.resultBytesMax / 1024 })
        const [wide] = records.slice(5)
        const asked = `SELECT repeat('x', 2000) AS x FROM ${from} = '${wide?.id}'`
        const limited = await buyer.buy(service(), inSql(`${asked} LIMIT 9`))
        expect(limited.body.details).toMatchObject({ ...ways, limit: 4 })
        const sold = await buyer.buy(service(), inSql(asked, ways.max_kb))
        expect(sold.status, sold.text).toBe(200)
      })
    },
    { devnet: true },
  ))
