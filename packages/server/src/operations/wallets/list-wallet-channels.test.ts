import { withService } from '@tollbase/testing/per-engine'
import { askSigned, makeTestWallet } from '@tollbase/testing/wallet'
import { describe, expect, test } from 'vitest'

describe('listWalletChannels', () =>
  withService((service) => {
    test('a wallet without channels has an empty list, which no other wallet is shown', async () => {
      const [own, other] = [makeTestWallet(), makeTestWallet()]
      const path = `/api/wallets/${own.address}/channels`
      const read = (query = '') =>
        askSigned(service(), own, { method: 'GET', path: `${path}${query}` })
      expect((await read()).body).toEqual({ channels: [], next_cursor: null })
      const wrong = await read('?cursor=0x51')
      expect([wrong.status, wrong.body.details?.field]).toEqual([400, '/query/cursor'])
      expect((await askSigned(service(), other, { method: 'GET', path })).status).toBe(403)
    })
  }))
