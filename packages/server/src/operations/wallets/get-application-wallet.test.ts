import { createData } from '@tollbase/testing/data'
import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('getApplicationWallet', () =>
  withService((service) => {
    test('an application has a wallet of its own from the beginning, for keys with Admin alone', async () => {
      const app = await createData(service())
      const { body } = await app.call('GET', '/wallet')
      expect(body).toMatchObject({
        available: '0',
        pending: '0',
        decimals: 6,
        usd: { available: '0.00', pending: '0.00' },
      })
      const made = await app.call('POST', '/keys', { permissions: ['Read', 'Write'] })
      const headers = { 'x-app-key': made.body.key }
      const read = await service().request('GET', `/api/apps/${app.appId}/wallet`, { headers })
      expect(read.status).toBe(403)
    })
  }))
