import { x402Client, x402HTTPClient } from '@x402/core/client'
import { decodePaymentResponseHeader } from '@x402/core/http'
import { toClientEvmSigner, UptoEvmScheme } from '@x402/evm'
import { wrapFetchWithPayment } from '@x402/fetch'
import { createWalletClient, type Hex, http, maxUint256, parseAbi } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { baseSepolia } from 'viem/chains'
import { permit2Address } from '../../packages/server/src/x402/upto/upto-terms.ts'
import { type Asked, quote } from '../support/buyer.ts'
import { awaitMined, connectDevnet } from '../support/payer.ts'
import type { Json, TestService } from '../support/service.ts'

/**
 * A buyer with the unmodified client of the scheme, which has no other way to pay; Permit2 may move so much of its
 * money.
 */
export async function makeUptoBuyer(service: TestService, allowance: bigint = maxUint256) {
  const account = privateKeyToAccount(generatePrivateKey())
  const { devnet, url } = service.running
  if (devnet === undefined) throw new Error('this needs the devnet')
  await devnet.faucet(account.address, 20_000_000n)
  const chain = connectDevnet(service)
  await chain.setBalance({ address: account.address, value: 10n ** 20n })
  const wallet = createWalletClient({
    ...{ account, chain: baseSepolia, transport: http(devnet.rpcUrl) },
  })
  const approve = async (amount: bigint) => {
    const hash = await wallet.writeContract({
      ...{ address: devnet.token as Hex, functionName: 'approve', gas: 100_000n },
      abi: parseAbi(['function approve(address spender, uint256 value) returns (bool)']),
      args: [permit2Address as Hex, amount],
    })
    await awaitMined(chain, hash)
  }
  if (allowance > 0n) await approve(allowance)
  const signer = toClientEvmSigner(account, chain as never)
  const client = new x402Client().register('eip155:84532', new UptoEvmScheme(signer))
  const pay = wrapFetchWithPayment(fetch, client)
  /** Posts to a path and pays. */
  const post = async (path: string, body: object, own: Readonly<Record<string, string>> = {}) => {
    const headers = { 'content-type': 'application/json', ...own }
    const reply = await pay(`${url}${path}`, {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
    })
    const header = reply.headers.get('payment-response')
    const notice: Json = header === null ? undefined : decodePaymentResponseHeader(header)
    return { status: reply.status, headers: reply.headers, text: await reply.text(), notice }
  }
  return {
    account,
    address: account.address.toLowerCase(),
    /** Lets Permit2 move so much of its money, from now on. */
    approve,
    /** Signs the payment of a request, good for as long as it says or for so many seconds, and sends nothing. */
    sign: async (asked: Asked, seconds?: number): Promise<Readonly<Record<string, string>>> => {
      const wire = new x402HTTPClient(client)
      const required = await quote(service, asked)
      const offer = wire.getPaymentRequiredResponse(
        (name) => required.headers.get(name),
        required.body,
      )
      for (const one of offer.accepts) one.maxTimeoutSeconds = seconds ?? one.maxTimeoutSeconds
      return wire.encodePaymentSignatureHeader(await wire.createPaymentPayload(offer))
    },
    post,
    list: (body: object) => post('/list', body),
  }
}
