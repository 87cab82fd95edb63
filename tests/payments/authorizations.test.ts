import { encodeFunctionData, type Hex, parseAbi } from 'viem'
import { expect, test } from 'vitest'
import { withService } from '../support/per-engine.ts'
import { type Asked, ask, balanceOf, type Forged, list, newBuyer, quote } from './buyer.ts'
import { earnings, expectBalanced, onChain, openMarket } from './market.ts'
import { chainOf, minedOn } from './payer.ts'

const token = parseAbi([
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)',
])
const multicall = parseAbi([
  'function aggregate3((address target, bool allowFailure, bytes callData)[] calls) returns ((bool success, bytes returnData)[])',
])
const multicallAddress = '0xca11bde05977b3631167028862be2a173976ca11'

withService(
  (service) => {
    /** Somebody else hands the authorizations of these payments to the token, all in one transaction. */
    const submitTogether = async (payments: readonly Record<string, string>[]) => {
      const { devnet } = service().running
      if (devnet === undefined) throw new Error('this needs the devnet')
      const chain = chainOf(service())
      const calls = payments.map((header) => {
        const text = Buffer.from(header['payment-signature'] ?? '', 'base64').toString()
        const { authorization: one, signature } = JSON.parse(text).payload
        const { from, to, value, validAfter, validBefore, nonce } = one
        const numbers = [BigInt(value), BigInt(validAfter), BigInt(validBefore)] as const
        const args = [from, to, ...numbers, nonce, signature] as const
        const callData = encodeFunctionData({ abi: token, args })
        return { target: devnet.token as Hex, allowFailure: false, callData }
      })
      const { address } = newBuyer().account
      await chain.setBalance({ address, value: 10n ** 20n })
      await chain.impersonateAccount({ address })
      const hash = await chain.request({
        method: 'eth_sendTransaction' as never,
        params: [
          {
            from: address,
            to: multicallAddress,
            gas: '0xf4240',
            data: encodeFunctionData({ abi: multicall, args: [calls] }),
          },
        ] as never,
      })
      const receipt = await minedOn(chain, String(hash))
      expect(receipt.status).toBe('success')
    }

    test('P10: of payments whose nonces were used together in one transaction only that counts which moved its value', async () => {
      const market = await openMarket(service(), { price: { per_row: '100' } })
      const buyer = newBuyer()
      await service().running.devnet?.faucet(buyer.address, 300n)
      const asked = (offset: number): Asked => list({ root: market.root, limit: 3, offset })
      const payment = async (of: Asked, forged: Forged = {}) =>
        buyer.payV2(await quote(service(), of), forged)
      // The same nonces, but the money goes back to the payer.
      const nonce = (n: number) => `0x${`${n}`.repeat(64)}`
      const back = { to: buyer.address }
      await submitTogether([
        await payment(asked(0), { authorization: { nonce: nonce(1), ...back } }),
        await payment(asked(0), { authorization: { nonce: nonce(2), ...back } }),
        await payment(asked(0), { authorization: { nonce: nonce(3) } }),
      ])
      const replies = [
        await ask(
          service(),
          asked(0),
          await payment(asked(0), { authorization: { nonce: nonce(1) } }),
        ),
        await ask(
          service(),
          asked(1),
          await payment(asked(1), { authorization: { nonce: nonce(2) } }),
        ),
        await ask(
          service(),
          asked(2),
          await payment(asked(2), { authorization: { nonce: nonce(3) } }),
        ),
      ]
      expect(replies.map(({ status }) => status)).toEqual([402, 402, 200])
      expect(await onChain(service(), buyer.address)).toBe(0n)
      expect(await earnings(service(), market)).toBe(240n)
      expect(await balanceOf(service(), buyer.address)).toBe(0n)
      await expectBalanced(service())
    })
  },
  { devnet: true },
)
