import { limits } from '@tollbase/contract/limits'
import { type Hex, numberToHex } from 'viem'
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts'
import { expect, test } from 'vitest'
import { ask, createFundedBuyer, list, makeBuyer, quote } from '../support/buyer.ts'
import { expectBalanced, openMarket, readChainBalance, readEarnings } from '../support/market.ts'
import { connectDevnet, createFundedPayer } from '../support/payer.ts'
import { withService } from '../support/per-engine.ts'
import { makeChannelBuyer } from './channel-buyer.ts'
import { makeUptoBuyer } from './upto-buyer.ts'
import { runWhileSettling } from './while-settling.ts'

withService(
  (service) => {
    /** Counts the transactions for which the service has paid the gas. */
    const sent = async () => {
      const key: Hex = `0x${service().running.devnet?.keys.gas.toString('hex')}`
      return connectDevnet(service()).getTransactionCount({ address: privateKeyToAddress(key) })
    }

    test('A4: one of forty authorizations at once from a balance for one is sent; the others say what is missing', async () => {
      const market = await openMarket(service(), { price: { per_row: '100' } })
      const buyer = await createFundedBuyer(service(), 300n)
      const asked = list({ root: market.root, limit: 3 })
      const requests = Array.from({ length: 40 }, (_, at) => ({
        ...asked,
        raw: `${asked.raw}${' '.repeat(at)}`,
      }))
      const headers = await Promise.all(
        requests.map(async (one) => buyer.payV2(await quote(service(), one))),
      )
      const before = await sent()
      const replies = await Promise.all(requests.map((one, at) => ask(service(), one, headers[at])))
      expect((await sent()) - before).toBe(1)
      const refused = replies.filter(({ status }) => status === 402)
      expect([replies.filter(({ status }) => status === 200).length, refused.length]).toEqual([
        1, 39,
      ])
      for (const { body } of refused) expect(body.error).toMatch(/insufficient_balance/)
      expect(await readEarnings(service(), market)).toBe(240n)

      // With more money each of these payments is as good as ever.
      await service().running.devnet?.faucet(buyer.address, 600n)
      const at = replies.findIndex(({ status }) => status === 402)
      const again = await ask(service(), requests[at] ?? asked, headers[at])
      expect(again.status, again.text).toBe(200)
      expect(await readChainBalance(service(), buyer.address)).toBe(300n)
      expect((await sent()) - before).toBe(2)
      await expectBalanced(service())
    })

    test('A4: one of twenty deposits into channels at once from a wallet for one is sent', async () => {
      const market = await openMarket(service(), { price: { per_row: '100' } })
      const asked = list({ root: market.root, limit: 3 })
      const key = generatePrivateKey()
      const deposit = limits.channelDepositAtomicMin
      await service().running.devnet?.faucet(privateKeyToAddress(key), deposit)
      const headers = await Promise.all(
        Array.from({ length: 20 }, async (_, at) => {
          const salt = numberToHex(at, { size: 32 })
          return (await makeChannelBuyer(service(), { key, salt })).sign(asked)
        }),
      )
      const before = await sent()
      const replies = await Promise.all(headers.map((header) => ask(service(), asked, header)))
      expect((await sent()) - before).toBe(1)
      const statuses = replies.map(({ status }) => status)
      expect(statuses.sort()).toEqual([200, ...Array.from({ length: 19 }, () => 402)])
      expect(await readEarnings(service(), market)).toBe(240n)
      await expectBalanced(service())
    })

    test('A4: what a wallet signs by one scheme is missing to another one at the same moment', async () => {
      const market = await openMarket(service(), { price: { per_row: '900000' } })
      const upto = await makeUptoBuyer(service())
      const { address, transfer } = await createFundedPayer(service(), 1n, upto.account)
      const rest = (await readChainBalance(service(), address)) - 1_000_000n
      await transfer({ to: `0x${'12'.repeat(20)}`, value: rest })
      const exact = makeBuyer(upto.account)
      const asked = list({ root: market.root, limit: 1 })
      const headers = [await exact.payV2(await quote(service(), asked)), await upto.sign(asked)]
      const before = await sent()
      const replies = await Promise.all(headers.map((header) => ask(service(), asked, header)))
      expect(replies.map(({ status }) => status).sort()).toEqual([200, 402])
      expect((await sent()) - before).toBe(1)
      expect(await readChainBalance(service(), address)).toBe(100_000n)
      await expectBalanced(service())
    })

    test('a wallet with code that refuses its payments in blocks costs the gas of three in an hour, whatever it pays by', async () => {
      const market = await openMarket(service(), { price: { per_row: '100' } })
      const buyer = await createFundedBuyer(service())
      const byChannel = await makeChannelBuyer(service())
      const chain = connectDevnet(service())
      // GASPRICE ISZERO: valid where it is simulated, invalid in a transaction.
      const bytecode = '0x3a15600657fe5b631626ba7e60e01b60005260206000f3'
      const before = await sent()
      await chain.setCode({ address: buyer.account.address, bytecode })
      const errors: string[] = []
      for (const limit of [1, 2, 3, 4, 5]) {
        const refused = await buyer.buy(service(), list({ root: market.root, limit }))
        expect(refused.status).toBe(402)
        errors.push(/transaction_reverted|failed_before/.exec(refused.text)?.[0] ?? refused.text)
      }
      expect(errors).toEqual([
        ...['transaction_reverted', 'transaction_reverted', 'transaction_reverted'],
        ...['failed_before', 'failed_before'],
      ])
      expect((await sent()) - before).toBe(3)
      await chain.setCode({ address: byChannel.account.address, bytecode })
      for (const limit of [1, 2, 3, 4, 5])
        expect((await byChannel.list({ root: market.root, limit })).status).toBe(402)
      expect((await sent()) - before).toBe(6)
      expect(await readEarnings(service(), market)).toBe(0n)
      await expectBalanced(service())
    })

    test('A4: an authorization that gets no turn, and whose sender never comes back, leaves nothing open', async () => {
      const market = await openMarket(service(), { price: { per_row: '100' } })
      const buyer = await createFundedBuyer(service(), 300n)
      const asked = list({ root: market.root, limit: 3 })
      // One goes in, 64 wait.
      const requests = Array.from({ length: 70 }, (_, at) => ({
        ...asked,
        raw: `${asked.raw}${' '.repeat(at)}`,
      }))
      const long = String(Math.floor(Date.now() / 1000) + limits.authorizationSecondsMax)
      const forLong = { authorization: { validBefore: long } }
      const headers = await Promise.all(
        requests.map(async (one) => buyer.payV2(await quote(service(), one), forLong)),
      )
      let arrived = 0
      let begin: () => void
      const together = new Promise<void>((resolve) => {
        begin = resolve
      })
      const before = () => {
        arrived += 1
        if (arrived === requests.length) begin()
        return together
      }
      const replies = await runWhileSettling(service(), { before }, () =>
        Promise.all(requests.map((one, at) => ask(service(), one, headers[at]))),
      )
      const turned = replies.flatMap(({ body }, at) =>
        body.code === 'PAYMENT_PENDING' ? [at] : [],
      )
      expect(turned).toHaveLength(5)
      expect(await service().running.service.payments.listOpenPayments(market.appId, 0)).toEqual([])

      await service().running.devnet?.faucet(buyer.address, 300n)
      const [at = 0] = turned
      const again = await ask(service(), requests[at] ?? asked, headers[at])
      expect(again.status, again.text).toBe(200)
      await expectBalanced(service())
    })

    test('A4: a payer who has enough for all that he signs buys all of it at once', async () => {
      const market = await openMarket(service(), { price: { per_row: '100' } })
      const buyer = await createFundedBuyer(service(), 300n * 30n)
      const bought = await Promise.all(
        Array.from({ length: 30 }, () =>
          buyer.buy(service(), list({ root: market.root, limit: 3 })),
        ),
      )
      expect(bought.map(({ status }) => status)).toEqual(bought.map(() => 200))
      expect(await readChainBalance(service(), buyer.address)).toBe(0n)
    })
  },
  { devnet: true },
)
