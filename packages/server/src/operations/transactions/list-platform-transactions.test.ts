import { createFundedBuyer, depositing } from '@tollbase/testing/buyer'
import { withService } from '@tollbase/testing/per-engine'
import type { Json } from '@tollbase/testing/service'
import { askSigned, makeTestWallet } from '@tollbase/testing/wallet'
import { describe, expect, test } from 'vitest'

describe('listPlatformTransactions', () =>
  withService(
    (service) => {
      const read = (query = '') =>
        service().request('GET', `/api/platform/transactions${query}`, {
          headers: service().operator,
        })

      test('the operator, and nobody else, sees what its keys have signed: each transaction with what it is for, page by page', async () => {
        const buyer = await createFundedBuyer(service(), 200_000n)
        const paid = await buyer.buy(service(), depositing(buyer.address, '150000'))
        expect(paid.status, paid.text).toBe(200)
        const path = `/api/wallets/${buyer.address}/withdraw`
        const body = { amount: 120_000 }
        const made = await askSigned(service(), makeTestWallet(buyer.account), {
          ...{ method: 'POST', path, body },
        })
        expect(made.status, made.text).toBe(202)
        const find = async (id: string) => {
          const { body: page } = await read()
          return page.transactions.find((one: Json) => one.makes[0].id === id)
        }
        await expect
          .poll(() => find(made.body.withdrawal_id), { timeout: 20_000 })
          .toMatchObject({ status: 'confirmed', replaced_hashes: [] })
        expect(await find(made.body.withdrawal_id)).toMatchObject({
          id: `transfer:${made.body.withdrawal_id}`,
          transaction_hash: expect.stringMatching(/^0x[0-9a-f]{64}$/),
          block_number: expect.stringMatching(/^\d+$/),
          makes: [{ kind: 'withdrawal', amount: '120000', usd: { amount: '0.12' } }],
        })
        const id = paid.body.payment_id
        expect(await find(id)).toMatchObject({
          transaction_hash: paid.body.transaction,
          makes: [
            {
              ...{ kind: 'payment', id, amount: '150000' },
              links: { transaction: `/api/transactions/${id}` },
            },
          ],
        })
        const all: string[] = []
        for (let cursor: string | null = ''; cursor !== null; ) {
          const { body: page } = await read(`?limit=1${cursor && `&cursor=${cursor}`}`)
          expect(page.transactions.length).toBe(1)
          all.push(page.transactions[0].id)
          cursor = page.next_cursor
        }
        const whole = await read('?limit=100')
        expect(whole.body.transactions[0].links).toEqual({})
        const csv = await read('?limit=1&format=csv')
        expect(csv.headers.get('content-type')).toMatch(/^text\/csv/)
        expect(csv.headers.get('x-next-cursor')).toBeTruthy()
        const [first] = whole.body.transactions
        const [{ kind, id: of, amount }] = first.makes
        expect(csv.text).toBe(
          `id,status,network,signer,nonce,transaction_hash,block_number,created_at,kind,made_id,amount,explorer\r\n` +
            `${[first.id, first.status, first.network, first.signer, first.nonce, first.transaction_hash, first.block_number, first.created_at, kind, of, amount, ''].join(',')}\r\n`,
        )
        expect(whole.body.transactions.map((one: Json) => one.id)).toEqual(all)
        expect(new Set(all).size).toBe(all.length)
        expect((await service().request('GET', '/api/platform/transactions')).status).toBe(401)
      })

      test('a cursor of another list is refused', async () => {
        for (const cursor of ['1', 'x.y', Buffer.from('1.').toString('base64url')]) {
          const wrong = await read(`?cursor=${cursor}`)
          expect([wrong.status, wrong.body.details?.field], cursor).toEqual([400, '/query/cursor'])
        }
      })
    },
    { devnet: true },
  ))
