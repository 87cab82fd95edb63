import { createData } from '@tollbase/testing/data'
import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('getBillingStatement', () =>
  withService((service) => {
    test('a month in which nothing moved has no lines, closes with what it opened with, and names its columns as CSV', async () => {
      const app = await createData(service())
      const { body } = await app.call('GET', '/billing/statement')
      expect(body).toMatchObject({
        ...{ opening_balance: '0', gross: '0', fees: '0', other: '0', closing_balance: '0' },
        ...{ lines: [], next_cursor: null },
      })
      const csv = await app.call('GET', '/billing/statement?format=csv')
      expect(csv.text).toBe('date,kind,item_kind,item,operation,count,quantity,gross,fee,net\r\n')
    })
  }))
