import { createHash } from 'node:crypto'
import { createData, type Data } from '@tollbase/testing/data'
import { withService } from '@tollbase/testing/per-engine'
import { perRow } from '@tollbase/testing/price-rules'
import { beforeEach, describe, expect, test } from 'vitest'

describe('getPricing', () =>
  withService((service) => {
    let seller: Data
    beforeEach(async () => {
      seller = await createData(service())
      await seller.publish('sales', [{ id: 'a' }])
    })
    test('the version of hidden prices is found neither by hashing guesses nor by setting the same prices elsewhere', async () => {
      const other = await createData(service())
      const rule = perRow('5', { collection: 'kept' })
      const versions: string[] = []
      for (const app of [seller, other]) {
        await app.call('POST', '/collections', { name: 'kept', access_policy: 'private' })
        expect((await app.call('PUT', '/pricing', { rules: [rule] })).status).toBe(200)
        const shown = await service().request('GET', `/api/apps/${app.appId}/pricing`)
        expect(shown.body.rules).toEqual([])
        versions.push(shown.body.version)
        const own = await app.call('GET', '/pricing')
        expect(own.body).toMatchObject({ rules: [rule], version: shown.body.version })
      }
      const guess = createHash('sha256')
        .update(JSON.stringify([rule]))
        .digest('hex')
      expect(guess.startsWith(versions[0] ?? '')).toBe(false)
      expect(versions[0]).not.toBe(versions[1])
      await service().restart()
      expect((await seller.call('GET', '/pricing')).body.version).toBe(versions[0])
    })
  }))
