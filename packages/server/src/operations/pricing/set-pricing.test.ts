import { createData, type Data } from '@tollbase/testing/data'
import { withService } from '@tollbase/testing/per-engine'
import { perAccess, perRow } from '@tollbase/testing/price-rules'
import { beforeEach, describe, expect, test } from 'vitest'

describe('setPricing', () =>
  withService((service) => {
    let seller: Data
    beforeEach(async () => {
      seller = await createData(service())
      await seller.publish('sales', [{ id: 'a' }])
    })
    const put = (body: object) => seller.call('PUT', '/pricing', body)

    test('the answer names the rules that were added, changed and removed, with their previous amounts', async () => {
      const first = await put({ rules: [perRow('5'), perAccess('7')] })
      expect(first.body).toMatchObject({
        added: [perRow('5'), perAccess('7')],
        changed: [],
        removed: [],
      })
      const second = await put({ rules: [perRow('6')] })
      expect(second.body).toMatchObject({
        rules: [perRow('6')],
        added: [],
        changed: [{ ...perRow('6'), previous_amount: '5' }],
        removed: [perAccess('7')],
      })
    })
  }))
