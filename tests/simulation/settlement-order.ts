import { deriveAddress } from '../../packages/server/src/x402/signature.ts'
import { deriveBuyerKey, signTransfer } from './buyer-keys.ts'
import type { Market } from './market.ts'
import { ownNetwork } from './shop.ts'

/** Another server, which lets our service settle its buyers' payments. */
export type Server = {
  readonly name: string
  /** The address that its buyers pay to. */
  readonly payTo: string
  /** The headers that its requests have. */
  readonly headers: Readonly<Record<string, string>>
}

/** A payment and what it is to be for, as a server sends them. */
export type Sent = { readonly paymentPayload: Paid; readonly paymentRequirements: object }

type Paid = {
  readonly x402Version: 1 | 2
  readonly payload: ReturnType<typeof signTransfer>
  readonly accepted?: object
}

/** A payment to another server, as its parties know of it. */
export type SettlementOrder = {
  readonly name: string
  readonly server: Server
  readonly payer: string
  readonly nonce: string
  readonly value: bigint
  readonly validBefore: number
  readonly sent: Sent
  /** Somebody else handed it to the token, for good, before its server did anything with it. */
  isUsedBefore: boolean
  /** A block had a use or a cancellation of it at some time. */
  wasUsed: boolean
  /** The names of the servers that asked for it, once for each request, and the requests that are not answered yet. */
  readonly callers: string[]
  open: number
  /** The servers that asked for it before it was sent, each with the process that it asked: `tea by p2`. */
  readonly askers: Set<string>
  /**
   * The processes that had been started when it was first to be settled, and when it was called pending, and settled, the
   * last time.
   */
  startedFirst: number | undefined
  startedPending: number | undefined
  startedTold: number | undefined
  /** When it was called pending, something was sent: one that only waits for others of its payer is free for who asks next. */
  isSent: boolean
  /** The transactions of all answers that said it is settled. */
  readonly told: string[]
  /** The reason for which its server was told that it is not settled, where nobody has asked since. */
  failure: string | undefined
  /** A request about it had no answer that says what became of it; the service may be at work on it. */
  isUnheard: boolean
}

const assetExtra = { name: ownNetwork.asset.name, version: ownNetwork.asset.version }

export function makeServers({ keys }: Market): readonly Server[] {
  return [
    { name: 'tea', payTo: `0x${'7e'.repeat(20)}`, headers: { 'x-app-key': keys.supplierKey } },
    { name: 'ink', payTo: `0x${'17'.repeat(20)}`, headers: { 'x-app-key': keys.agencyKey } },
  ]
}

/** A buyer of another server signs a payment to it. */
export function makeSettlementOrder(market: Market, server: Server, n: number): SettlementOrder {
  const { chance, scheduler } = market
  const name = `${server.name}.${n}`
  const { payTo } = server
  const key = deriveBuyerKey(chance.pick(`${name} buyer`, ['o1', 'o2', 'o3']))
  const value = BigInt(chance.between(`${name} costs`, 2, 9)) * 500n
  const nonce = `0x${chance.bytes(`${name} nonce`, 32).toString('hex')}`
  const validBefore = Math.floor(scheduler.now / 1000) + chance.between(`${name} valid`, 20, 150)
  const network = { ...ownNetwork, payTo }
  const payload = signTransfer(network, { key, value, validBefore, nonce })
  const isV1 = chance.happens(`${name} version 1`, 300)
  scheduler.note(`${name} signs ${value} to ${payTo}`)
  return {
    ...{ name, server, payer: deriveAddress(key), nonce, value, validBefore },
    sent: makeSent(isV1 ? 1 : 2, payload, { payTo, value }),
    ...{
      isUsedBefore: false,
      wasUsed: false,
      callers: [],
      open: 0,
      askers: new Set<string>(),
      told: [],
    },
    ...{ startedFirst: undefined, startedPending: undefined, startedTold: undefined },
    ...{ failure: undefined, isUnheard: false, isSent: false },
  }
}

/** Makes a payment of one version of x402, with requirements for so much to somebody. */
export function makeSent(
  x402Version: 1 | 2,
  payload: Paid['payload'],
  { payTo, value }: { readonly payTo: string; readonly value: bigint },
): Sent {
  const { id, v1Name, asset } = ownNetwork
  const shared = { scheme: 'exact', asset: asset.address, payTo, maxTimeoutSeconds: 60 }
  if (x402Version === 2) {
    const accepted = { ...shared, network: id, amount: String(value), extra: assetExtra }
    return { paymentPayload: { x402Version, accepted, payload }, paymentRequirements: accepted }
  }
  const about = { resource: 'https://tea.example', description: '', mimeType: '' }
  const asked = { network: v1Name, maxAmountRequired: String(value), extra: assetExtra, ...about }
  const paid = { scheme: 'exact', network: v1Name, payload }
  return {
    paymentPayload: { x402Version, ...paid },
    paymentRequirements: { ...shared, ...asked },
  }
}
