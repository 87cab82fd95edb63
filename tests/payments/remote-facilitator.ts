import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createWalletClient, type Hex, http, parseAbi, parseSignature } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { baseSepolia } from 'viem/chains'
import type { Devnet } from '../../packages/server/src/devnet/devnet.ts'
import { awaitMined, connectChain } from '../support/payer.ts'
import type { Json } from '../support/service.ts'

/** The facilitator's reaction to a request for settlement. */
export type Behaviour = (payment: Json, reply: ServerResponse) => Promise<void> | void

export type RemoteFacilitator = {
  readonly url: string
  readonly settles: () => number
  verify: Behaviour
  settle: Behaviour
  readonly close: () => Promise<void>
}

/** The target of a redirection: a success that nobody may believe. */
export const bait = '/bait'
const baitHash = `0x${'ba'.repeat(32)}`

/** Starts a real facilitator over HTTP that behaves as a test says. */
export async function startRemoteFacilitator(): Promise<RemoteFacilitator> {
  let settles = 0
  const server = createServer((request, reply) => {
    let text = ''
    request.on('data', (chunk) => {
      text += chunk
    })
    request.on('end', () => {
      if (request.url === bait) return answer(reply, { success: true, transaction: baitHash })
      const { paymentPayload } = JSON.parse(text)
      const isSettle = request.url?.endsWith('/settle') ?? false
      if (isSettle) settles += 1
      const behave = isSettle ? remote.settle : remote.verify
      Promise.resolve(behave(paymentPayload, reply)).catch(() => reply.destroy())
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const remote: RemoteFacilitator = {
    url: `http://127.0.0.1:${port}`,
    settles: () => settles,
    verify: agrees,
    settle: says({ success: false, errorReason: 'not set' }),
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return remote
}

export const agrees: Behaviour = (payment, reply) =>
  answer(reply, { isValid: true, payer: payment.payload.authorization.from })

export function says(body: object, status = 200): Behaviour {
  return (_, reply) => answer(reply, body, status)
}

export function answer(reply: ServerResponse, body: object | string, status = 200): void {
  reply.writeHead(status, { 'content-type': 'application/json' })
  reply.end(typeof body === 'string' ? body : JSON.stringify(body))
}

/**
 * Makes a function that executes a payment on the chain, as an honest facilitator does, and gives the transaction.
 */
export function makeExecutor(devnet: Devnet): (payment: Json) => Promise<Hex> {
  const account = privateKeyToAccount(`0x${Buffer.from(devnet.keys.gas).toString('hex')}`)
  const transport = http(devnet.rpcUrl)
  const wallet = createWalletClient({ account, chain: baseSepolia, transport })
  const abi = parseAbi([
    'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)',
  ])
  return async (payment) => {
    const { signature, authorization: given } = payment.payload
    const { r, s, v } = parseSignature(signature)
    const hash = await wallet.writeContract({
      address: devnet.token as Hex,
      abi,
      functionName: 'transferWithAuthorization',
      args: [
        given.from,
        given.to,
        BigInt(given.value),
        BigInt(given.validAfter),
        BigInt(given.validBefore),
        given.nonce,
        Number(v),
        r,
        s,
      ],
      gas: 200_000n,
    })
    await awaitMined(connectChain(devnet.rpcUrl), hash)
    return hash
  }
}
