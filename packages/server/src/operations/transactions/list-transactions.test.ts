import { createData } from '@tollbase/testing/data'
import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('listTransactions', () =>
  withService((service) => {
    test('an application that nobody paid has an empty list, and a cursor of another list is refused', async () => {
      const app = await createData(service())
      const { body } = await app.call('GET', '/transactions')
      expect(body).toEqual({ transactions: [], next_cursor: null })
      const csv = await app.call('GET', '/transactions?format=csv')
      expect(csv.text).toBe(
        'id,kind,status,app_id,operation,amount,network,from,to,transaction_hash,error,created_at,receipt,explorer\r\n',
      )
      for (const cursor of ['1', '1.', '.pay_1', 'x.pay_1']) {
        const wrong = await app.call('GET', `/transactions?cursor=${cursor}`)
        expect([wrong.status, wrong.body.details?.field], cursor).toEqual([400, '/query/cursor'])
      }
    })
  }))
