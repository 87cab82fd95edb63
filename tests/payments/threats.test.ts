import { readdirSync, readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { openRpc, type Rpc } from '../../packages/server/src/x402/rpc.ts'
import { ask, createFundedBuyer, list, quote, readBalance } from '../support/buyer.ts'
import {
  expectBalanced,
  openMarket,
  readChainBalance,
  readEarnings,
  readReceipt,
  setPrices,
} from '../support/market.ts'
import { withService } from '../support/per-engine.ts'
import type { TestService } from '../support/service.ts'
import { runWhileSettling } from './while-settling.ts'
import { encodeRequest, getPort } from './wire.ts'

/**
 * The threats to money coming in, P1 to P17, each tried for real: with settlements on a chain and over sockets. Where
 * a file beside this one has more of a threat its test bears the same number; `grep -rnw P6 tests` finds all of them.
 * P11 for transfers that a payer makes by itself is in native.test.ts.
 */
test('every threat from P1 to P17 has a test of its number', () => {
  const folder = import.meta.dirname
  const files = readdirSync(folder).filter((name) => name.endsWith('.test.ts'))
  const titles = files.flatMap(
    (name) => readFileSync(join(folder, name), 'utf8').match(/'P\d+(, P\d+)*: /g) ?? [],
  )
  const numbers = new Set(titles.flatMap((title) => title.match(/P\d+/g) ?? []))
  const wanted = Array.from({ length: 17 }, (_, at) => `P${at + 1}`)
  expect(wanted.filter((number) => !numbers.has(number))).toEqual([])
})

withService(
  (service) => {
    async function scene() {
      const market = await openMarket(service(), { price: { per_row: '100' } })
      const buyer = await createFundedBuyer(service())
      const asked = list({ root: market.root, limit: 3 })
      const required = await quote(service(), asked)
      return { market, buyer, asked, required, header: await buyer.payV2(required) }
    }

    describe.each([
      { change: 'rises', rules: [{ operation: 'read', model: 'per_row', amount: '9000' }] },
      { change: 'falls', rules: [{ operation: 'read', model: 'per_row', amount: '1' }] },
      { change: 'ends', rules: [{ operation: 'read', model: 'per_row', amount: '0' }] },
    ])('a price that $change while a payment settles', ({ rules }) => {
      test.each(['payV1', 'payV2'] as const)('P5: the quote holds for %s', async (version) => {
        const { market, buyer, asked, required } = await scene()
        const header = await buyer[version](required)
        const reply = await runWhileSettling(
          service(),
          { before: () => setPrices(service(), market, rules) },
          () => ask(service(), asked, header),
        )
        expect(reply.status, reply.text).toBe(200)
        expect(await readReceipt(service(), reply)).toMatchObject({ amount: '300', change: '0' })
        expect(await readChainBalance(service(), buyer.address)).toBe(100_000_000n - 300n)
      })
    })

    test('P6: a 5xx after the transfer was sent is no second bill: the same payment brings the answer', async () => {
      const { market, buyer, asked, header } = await scene()
      const lost = await runWhileSettling(
        service(),
        {
          after: async () => {
            throw new Error('the connection to the network broke')
          },
        },
        () => ask(service(), asked, header),
      )
      expect(lost.status).toBeGreaterThanOrEqual(500)
      expect(lost.body.accepts).toBeUndefined()
      expect(await readChainBalance(service(), buyer.address)).toBe(100_000_000n - 300n)
      const reply = await ask(service(), asked, header)
      expect(reply.status, reply.text).toBe(200)
      expect(await readChainBalance(service(), buyer.address)).toBe(100_000_000n - 300n)
      expect(await readEarnings(service(), market)).toBe(240n)
    })

    test('P8: a client whose socket breaks once its money has moved gets its answer when it comes back', async () => {
      const { market, buyer, asked, header } = await scene()
      const socket = connect(getPort(service()), '127.0.0.1')
      const heard: Buffer[] = []
      socket.on('data', (bytes) => heard.push(bytes))
      socket.on('error', () => undefined)
      const settled = new Promise<void>((resolve) => {
        const after = async () => {
          await new Promise((closed) => {
            socket.once('close', closed)
            socket.destroy()
          })
          resolve()
        }
        void runWhileSettling(service(), { after }, async () => {
          socket.write(encodeRequest(asked, header))
          await new Promise((closed) => socket.once('close', closed))
        })
      })
      await settled
      expect(Buffer.concat(heard).toString()).toBe('')
      expect(await readChainBalance(service(), buyer.address)).toBe(100_000_000n - 300n)
      const reply = await ask(service(), asked, header)
      expect(reply.status, reply.text).toBe(200)
      expect(reply.body.records).toHaveLength(3)
      expect(await readChainBalance(service(), buyer.address)).toBe(100_000_000n - 300n)
      expect(await readEarnings(service(), market)).toBe(240n)
    })

    test('P10: a token that takes a call and moves nothing has not paid', async () => {
      const { market, buyer, asked, header } = await scene()
      await withNode(service(), async (rpc, token) => {
        const code = await rpc.call('eth_getCode', [token, 'latest'])
        // Returns the word 1 to every call and logs nothing.
        await rpc.call('anvil_setCode', [token, '0x600160005260206000f3'])
        try {
          const reply = await ask(service(), asked, header)
          expect(reply.status, reply.text).toBe(402)
          expect(reply.body.records).toBeUndefined()
        } finally {
          await rpc.call('anvil_setCode', [token, code])
        }
      })
      expect(await readChainBalance(service(), buyer.address)).toBe(100_000_000n)
      expect(await readBalance(service(), buyer.address)).toBe(0n)
      expect(await readEarnings(service(), market)).toBe(0n)
      expect((await buyer.buy(service(), asked)).status).toBe(200)
    })

    test('P12: the service waits for the configured blocks; a block that disappears after that is filled again with the same transfer', async () => {
      const { market, buyer, asked, header } = await scene()
      const sold = await ask(service(), asked, header)
      expect(sold.status, sold.text).toBe(200)
      const { transaction } = await readReceipt(service(), sold)
      await withNode(service(), async (rpc) => {
        await rpc.call('anvil_rollback', [1])
        expect(await rpc.call('eth_getTransactionReceipt', [transaction])).toBeNull()
      })
      expect(await readChainBalance(service(), buyer.address)).toBe(100_000_000n)
      // A start sends the missing transactions again at once; a running service does so every few seconds.
      await service().restart()
      await withNode(service(), async (rpc) => {
        await expect
          .poll(() => rpc.call('eth_getTransactionReceipt', [transaction]))
          .toMatchObject({ status: '0x1' })
      })
      expect(await readChainBalance(service(), buyer.address)).toBe(100_000_000n - 300n)
      expect((await ask(service(), asked, header)).text).toBe(sold.text)
      expect(await readEarnings(service(), market)).toBe(240n)
      await expectBalanced(service())
    })

    test.each(['-1', '1e3', '007', '0.5', '', ' 1', '0x10', 'NaN', '1'.repeat(20), 1.5, -1, 1e21])(
      'P17: %j is no amount: neither a price list nor a policy takes it, and the price stays',
      async (amount) => {
        const { market } = await scene()
        const target = { collection: market.collection }
        const rules = await service().request('PUT', `/api/apps/${market.appId}/pricing`, {
          headers: market.headers,
          body: { rules: [{ target, operation: 'read', model: 'per_row', amount }] },
        })
        expect(rules.status, rules.text).toBe(400)
        for (const price of [{ per_row: amount }, { per_access: '1', per_kb: amount }]) {
          const path = `/api/apps/${market.appId}/collections/${market.collection}`
          const { status, body } = await service().request('PUT', path, {
            headers: market.headers,
            body: { access_policy: { read: 'public', price } },
          })
          expect([status, body.code]).toEqual([400, 'VALIDATION_FAILED'])
          expect(body.details.field).toMatch(/^\/access_policy\/price\/per_/)
          expect((await ask(service(), list({ root: market.root, limit: 1 }))).status).toBe(402)
        }
      },
    )

    test('P17: an answer of no bytes costs nothing by the KB', async () => {
      const market = await openMarket(service(), { price: { per_kb: '1024' }, records: [] })
      const buyer = await createFundedBuyer(service())
      const reply = await buyer.buy(service(), list({ root: market.root, max_kb: 1 }))
      expect(reply.status, reply.text).toBe(200)
      expect(await readReceipt(service(), reply)).toMatchObject({ amount: '0', change: '1024' })
      expect(await readBalance(service(), buyer.address)).toBe(1024n)
    })

    test('P17: the largest possible price is quoted exactly, and one unit more is refused', async () => {
      const market = await openMarket(service(), { price: { per_access: String(10n ** 15n) } })
      const required = await quote(service(), list({ root: market.root, limit: 1 }))
      expect(required.body.accepts[0].maxAmountRequired).toBe('1000000000000000')
      const poor = await createFundedBuyer(service())
      const header = await poor.payV2(required)
      const refused = await ask(service(), list({ root: market.root, limit: 1 }), header)
      expect(refused.body.error).toMatch(/insufficient_balance/)
      await setPrices(service(), market, [{ operation: 'read', model: 'per_row', amount: '1' }])
      const more = await ask(service(), list({ root: market.root, limit: 1 }))
      expect(more.status).toBe(400)
    })

    test('P7: every debit has its credit after all of this, and nobody owes', async () => {
      await service().restart()
      await expectBalanced(service())
      const { chain } = service().running.service.tenants.system
      expect(chain.failure).toBeUndefined()
    })
  },
  { devnet: true },
)

async function withNode(
  service: TestService,
  work: (rpc: Rpc, token: string) => Promise<void>,
): Promise<void> {
  const { devnet } = service.running
  if (devnet === undefined) throw new Error('this needs the devnet')
  const rpc = openRpc({ url: devnet.rpcUrl, world: service.world })
  try {
    await work(rpc, devnet.token)
  } finally {
    rpc.close()
  }
}
