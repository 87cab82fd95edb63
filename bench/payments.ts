import { randomBytes } from 'node:crypto'
import { encodeHex } from '@tollbase/server/x402/hex'
import { makePaymentNetwork } from '@tollbase/server/x402/networks'
import { deriveAddress, digestTransfer, signDigest } from '@tollbase/server/x402/signature'
import { makeHttpRequest, sendOnce } from './load.ts'
import { call } from './place.ts'

export const chainId = 84532

/** Requests of a round of small payments: fewer would time a program that is still being compiled. */
export const requestsPerRound = 3_200
/** The same over one connection. */
export const requestsAlone = 400

/** The requirements of a 402; the first of the ways to pay is the scheme exact. */
export type Required = {
  readonly resource: object
  readonly accepts: readonly {
    readonly scheme: string
    readonly asset: string
    readonly payTo: string
    readonly amount: string
    readonly maxTimeoutSeconds: number
    readonly extra: { readonly name: string; readonly version: string }
  }[]
}

/** A request as it is sent, without its payment. */
export type Unpaid = {
  readonly path: string
  readonly body: string
  readonly headers?: Readonly<Record<string, string>>
}

/** Gives an address test dollars of the devnet. */
export async function fund(port: number, address: string): Promise<void> {
  await call(port, '/devnet/faucet', { body: { address, amount: '1000000000' } })
}

/** Reads the payment requirements that the server states in its 402. */
export async function readRequirements(port: number, unpaid: Unpaid): Promise<Required> {
  const reply = await sendOnce(port, makeHttpRequest(unpaid.path, unpaid.body, unpaid.headers))
  const header = /\r\npayment-required: (\S+)/i.exec(reply.headers)?.[1]
  if (reply.status !== 402 || header === undefined)
    throw new Error(`not asked for a payment: ${reply.status} ${reply.body.toString()}`)
  return JSON.parse(Buffer.from(header, 'base64').toString())
}

/** Makes the bytes of the request with a payment of it. */
export function makePaidRequest({ path, body, headers }: Unpaid, payment: object): Buffer {
  const text = Buffer.from(JSON.stringify(payment)).toString('base64')
  return makeHttpRequest(path, body, { ...headers, 'payment-signature': text })
}

/** Makes a payment of version 2 by the scheme exact, as a stock client does. */
export function signExact({ resource, accepts }: Required, key: Buffer): object {
  const [accepted] = accepts
  if (accepted === undefined) throw new Error('the 402 offers no way to pay')
  const { asset, payTo, amount, extra, maxTimeoutSeconds } = accepted
  const network = makePaymentNetwork({
    chainId,
    payTo,
    asset: { address: asset, symbol: extra.name, decimals: 6, ...extra },
  })
  const authorization = {
    from: deriveAddress(key),
    to: network.payTo,
    value: amount,
    validAfter: '0',
    validBefore: String(Math.floor(Date.now() / 1000) + maxTimeoutSeconds),
    nonce: encodeHex(randomBytes(32)),
  }
  const digest = digestTransfer(network, {
    ...authorization,
    value: BigInt(authorization.value),
    validAfter: BigInt(authorization.validAfter),
    validBefore: BigInt(authorization.validBefore),
  })
  return {
    x402Version: 2,
    resource,
    accepted,
    payload: { signature: signDigest(digest, key), authorization },
  }
}

/** Puts the requests of several payers in turns, as requests that follow each other are from different payers in life. */
export function takeTurns<Request>(lists: readonly (readonly Request[])[]): Request[] {
  const longest = Math.max(...lists.map((list) => list.length))
  return Array.from({ length: longest }, (_, at) =>
    lists.flatMap((list) => list.slice(at, at + 1)),
  ).flat()
}
