import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts'
import { readPresented } from '../../packages/server/src/x402/payment-header.ts'
import { type Buyer, makeBuyer } from '../support/buyer.ts'
import type { Json, TestApp, TestService } from '../support/service.ts'

/** The settings of a service that settles for other servers. */
export const facilitator = {
  access: 'key',
  networks: undefined,
  minimumPayment: 500n,
  settlementsPerDay: 10,
  allSettlementsPerDay: 100,
} as const

export const makeAddress = () => privateKeyToAddress(generatePrivateKey()).toLowerCase()

/** Makes another server, which has its payments settled by a service, and its buyers. */
export function makeOtherServer(service: () => TestService) {
  /** Requirements of another server, in the words of one version. */
  const makeRequirements = (version: 1 | 2, payTo: string, amount = '1000') => ({
    scheme: 'exact',
    asset: service().running.devnet?.token ?? '',
    payTo,
    maxTimeoutSeconds: 60,
    extra: { name: 'USDC', version: '2' },
    ...(version === 2
      ? { network: 'eip155:84532', amount }
      : {
          network: 'base-sepolia',
          maxAmountRequired: amount,
          resource: 'http://x',
          description: '',
          mimeType: '',
        }),
  })
  /** Signs for another server, as its buyers do. */
  const sign = async (buyer: Buyer, version: 1 | 2, requirements: Json) => {
    const entry = { ...requirements, extra: { ...requirements.extra, chainId: 84532 } }
    const header = Buffer.from(JSON.stringify({ accepts: [entry] })).toString('base64')
    const required = {
      body: { accepts: [entry] },
      headers: new Headers({ 'payment-required': header }),
    } as never
    const signed = version === 2 ? await buyer.payV2(required) : await buyer.payV1(required)
    const [text = ''] = Object.values(signed)
    return JSON.parse(Buffer.from(text, 'base64').toString())
  }
  /** Asks as another server does; `paid` is the payload, and the requirements that it is brought for. */
  const post = async (path: string, app: TestApp | undefined, paid: readonly [Json, Json]) => {
    const [paymentPayload, paymentRequirements] = paid
    const body = { x402Version: paymentPayload.x402Version, paymentPayload, paymentRequirements }
    const headers = app?.headers ?? {}
    return service().request('POST', `/api/payments/${path}`, { body, headers })
  }
  /** Signs with a wallet that has nothing, for a facilitator that is called without HTTP. */
  const signUnfunded = async () => {
    const requirements = makeRequirements(2, makeAddress())
    const paid = readPresented(await sign(makeBuyer(), 2, requirements), 2)
    if ('transaction' in paid) throw new Error('it is signed')
    return { paid, requirements }
  }
  return { makeRequirements, sign, signUnfunded, post }
}
