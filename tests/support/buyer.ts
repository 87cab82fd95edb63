import { randomBytes } from 'node:crypto'
import { request } from 'node:http'
import { type Hex, hashTypedData } from 'viem'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { expect } from 'vitest'
import type { Json, TestReply, TestService } from './service.ts'

/** A service as its clients see it. */
export type Api = Pick<TestService, 'request'>

/** One request as its bytes, to which a payment is bound. */
export type Asked = {
  readonly method: string
  readonly path: string
  readonly raw?: string
  readonly headers?: Readonly<Record<string, string>>
}

export type Authorization = {
  readonly from: string
  readonly to: string
  readonly value: string
  readonly validAfter: string | number
  readonly validBefore: string | number
  readonly nonce: string
}

/** Changes the content of a payment; the signature covers the changed content. */
export type Forged = {
  readonly authorization?: Partial<Authorization>
  readonly accepted?: Readonly<Record<string, unknown>>
  readonly domain?: { readonly chainId?: number; readonly verifyingContract?: Hex }
}

export type PaymentHeader = Readonly<Record<string, string>>

/** A payer that signs by hand, written from the protocol's description. */
export type Buyer = {
  readonly account: PrivateKeyAccount
  readonly address: string
  readonly payV2: (required: TestReply, forged?: Forged) => Promise<PaymentHeader>
  readonly payV1: (required: TestReply, forged?: Forged) => Promise<PaymentHeader>
  /** Requests, pays by version 2 and from no balance, and requests again. */
  readonly buy: (service: Api, asked: Asked) => Promise<TestReply>
}

export function list(body: object): Asked {
  return { method: 'POST', path: '/list', raw: JSON.stringify(body) }
}

/** A request for a deposit to the balance of an address. */
export function depositing(address: string, amount: string): Asked {
  return {
    method: 'POST',
    path: `/api/wallets/${address}/deposit`,
    raw: JSON.stringify({ amount }),
  }
}

export function ask(service: Api, asked: Asked, headers: PaymentHeader = {}) {
  const { method, path, raw } = asked
  const all = { ...asked.headers, ...headers }
  return service.request(method, path, { headers: all, ...(raw !== undefined && { raw }) })
}

/** Requests the 402 of a request. */
export async function quote(service: Api, asked: Asked): Promise<TestReply> {
  const required = await ask(service, asked)
  expect(required.status, required.text).toBe(402)
  return required
}

/** Parses the first way to pay, as version 2 states it. */
export function parseEntry(required: TestReply): Json {
  const header = required.headers.get('payment-required') ?? ''
  return JSON.parse(Buffer.from(header, 'base64').toString()).accepts[0]
}

/** Creates a buyer with test dollars on the service's devnet. */
export async function createFundedBuyer(service: Api, amount = 100_000_000n): Promise<Buyer> {
  const buyer = makeBuyer()
  if (amount > 0n) {
    const body = { address: buyer.address, amount: String(amount) }
    const { status } = await service.request('POST', '/devnet/faucet', { body })
    expect(status).toBe(200)
  }
  return buyer
}

export function makeBuyer(account = privateKeyToAccount(generatePrivateKey())): Buyer {
  const payV2: Buyer['payV2'] = async (required, forged = {}) => {
    const entry = parseEntry(required)
    const payload = await sign(account, { entry, chainId: entry.extra.chainId, forged })
    const accepted = { ...entry, ...forged.accepted }
    return { 'payment-signature': base64({ x402Version: 2, accepted, payload }) }
  }
  const payV1: Buyer['payV1'] = async (required, forged = {}) => {
    const [entry] = required.body.accepts
    const payload = await sign(account, { entry, chainId: entry.extra.chainId, forged })
    const { network, scheme } = { ...entry, ...forged.accepted }
    return { 'x-payment': base64({ x402Version: 1, scheme, network, payload }) }
  }
  return {
    account,
    address: account.address.toLowerCase(),
    payV2,
    payV1,
    buy: async (service, asked) =>
      ask(service, asked, { ...(await payV2(await quote(service, asked))), 'x-balance': 'off' }),
  }
}

/** The same payment, which names itself; the signature covers nothing of that. */
export function name(header: PaymentHeader, id: unknown): PaymentHeader {
  const extensions = { 'payment-identifier': { info: { required: false, id } } }
  const text = Buffer.from(header['payment-signature'] ?? '', 'base64').toString()
  return { ...header, 'payment-signature': base64({ ...JSON.parse(text), extensions }) }
}

export async function readBalance(service: Api, address: string): Promise<bigint> {
  const { body } = await service.request('GET', `/api/wallets/${address}`)
  return BigInt(body.available)
}

const types = {
  TransferWithAuthorization: [
    { name: 'from', type: 'address' },
    { name: 'to', type: 'address' },
    { name: 'value', type: 'uint256' },
    { name: 'validAfter', type: 'uint256' },
    { name: 'validBefore', type: 'uint256' },
    { name: 'nonce', type: 'bytes32' },
  ],
} as const

async function sign(
  account: PrivateKeyAccount,
  { entry, chainId, forged }: { entry: Json; chainId: number; forged: Forged },
) {
  const now = Math.floor(Date.now() / 1000)
  const authorization: Authorization = {
    from: account.address,
    to: entry.payTo,
    value: entry.amount ?? entry.maxAmountRequired,
    validAfter: '0',
    validBefore: String(now + 300),
    nonce: `0x${randomBytes(32).toString('hex')}`,
    ...forged.authorization,
  }
  const hash = hashTypedData({
    domain: {
      name: entry.extra.name,
      version: entry.extra.version,
      chainId,
      verifyingContract: entry.asset,
      ...forged.domain,
    },
    types,
    primaryType: 'TransferWithAuthorization',
    message: {
      from: authorization.from as Hex,
      to: authorization.to as Hex,
      value: BigInt(authorization.value),
      validAfter: BigInt(authorization.validAfter),
      validBefore: BigInt(authorization.validBefore),
      nonce: authorization.nonce as Hex,
    },
  })
  const signature = await account.sign({ hash })
  return { signature, authorization }
}

function base64(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64')
}

/** Sends a request that comes from another address of this machine. */
export function askFrom(
  localAddress: string,
  service: TestService,
  { method, path, raw = '', headers }: Asked,
): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const length = String(Buffer.byteLength(raw))
    const sent = request(
      service.url + path,
      {
        method,
        localAddress,
        headers: { ...headers, 'content-type': 'application/json', 'content-length': length },
      },
      async (reply) => {
        const chunks: Buffer[] = []
        for await (const chunk of reply) chunks.push(chunk)
        resolve({ status: reply.statusCode ?? 0, text: Buffer.concat(chunks).toString() })
      },
    )
    sent.on('error', reject)
    sent.end(raw)
  })
}
