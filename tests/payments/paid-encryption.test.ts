import { beforeAll, describe, expect, test } from 'vitest'
import {
  type Asked,
  ask,
  type Buyer,
  createFundedBuyer,
  quote,
  readBalance,
} from '../support/buyer.ts'
import { createData, type Data } from '../support/data.ts'
import { expectBalanced, readEarnings } from '../support/market.ts'
import { withService } from '../support/per-engine.ts'

describe('a change of encryption that is paid for', () =>
  withService(
    (service) => {
      let app: Data
      let buyer: Buyer
      beforeAll(async () => {
        app = await createData(service())
        buyer = await createFundedBuyer(service())
      })

      const add = (collection: string, headers: Readonly<Record<string, string>>): Asked => ({
        method: 'POST',
        path: `/api/apps/${app.appId}/encryption`,
        raw: JSON.stringify({ action: 'add', collections: [collection] }),
        headers: { 'content-type': 'application/json', ...headers },
      })
      const listEncrypted = async () =>
        (await app.call('GET', '/encryption')).body.encrypted_collections

      test('it is made once and charged once, the platform earns it, and the seller’s books do not have it', async () => {
        await app.create({ name: 'once' })
        const asked = add('once', app.headers)
        const header = await buyer.payV2(await quote(service(), asked))
        const paid = await ask(service(), asked, header)
        expect(paid.status, paid.text).toBe(200)
        expect(paid.body).toMatchObject({ success: true, encrypted_collections: ['once'] })
        expect((await ask(service(), asked, header)).text).toBe(paid.text)
        expect(await readBalance(service(), buyer.address)).toBe(0n)
        expect(await readEarnings(service(), app)).toBe(0n)
        expect((await app.call('GET', '/sales')).body.sales).toEqual([])
        await expectBalanced(service())
      })

      test('who may not change it keeps the money, whatever is paid', async () => {
        await app.create({ name: 'kept' })
        const reader = await app.call('POST', '/keys', { permissions: ['Read', 'Write'] })
        for (const [headers, status] of [
          [{}, 401],
          [{ 'x-app-key': reader.body.key }, 403],
        ] as const) {
          const asked = add('kept', headers)
          const header = await buyer.payV2(await quote(service(), asked))
          expect((await ask(service(), asked, header)).status).toBe(status)
          expect(await readBalance(service(), buyer.address)).toBe(0n)
        }
        expect(await listEncrypted()).toEqual(['once'])
      })
    },
    { devnet: true },
  ))
