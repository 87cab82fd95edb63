import { createClient, type OnChainDBClient } from '@onchaindb/sdk'
import { afterAll, beforeAll, vi } from 'vitest'
import type { Json, TestApp, TestReply, TestService } from '../support/service.ts'

/**
 * The answer as it came over the wire: the SDK turns most refusals into errors without status or text, into null
 * and into [].
 */
export type Seen = { readonly status: number; readonly body: Json }

export type Sdk = {
  readonly client: OnChainDBClient
  readonly app: TestApp
  /** Every reply so far. */
  readonly seen: readonly Seen[]
}

/** The SDK as its README makes it, for a new application. */
export async function connect(service: TestService, more: object = {}): Promise<Sdk> {
  const app = await service.createApp()
  return { app, ...connectTo(service, { appId: app.appId, appKey: app.key, ...more }) }
}

export function connectTo(service: TestService, options: object): Omit<Sdk, 'app'> {
  const client = createClient({ endpoint: service.url, ...options })
  // The client throws where nobody listens for errors, as an EventEmitter does.
  client.on('error', () => undefined)
  const seen: Seen[] = []
  const note = ({ status, data }: Json) => seen.push({ status, body: data })
  const http: Json = Reflect.get(client, 'http')
  http.interceptors.response.use(
    (reply: Json) => {
      note(reply)
      return reply
    },
    (error: Json) => {
      if (error.response !== undefined) note(error.response)
      return Promise.reject(error)
    },
  )
  return { client, seen }
}

/** The SDK logs all that it does to the console. */
export function silenceConsole(): void {
  beforeAll(() => {
    for (const method of ['log', 'warn', 'error'] as const)
      vi.spyOn(console, method).mockImplementation(() => undefined)
  })
  afterAll(() => void vi.restoreAllMocks())
}

/** Signs the payment that a 402 asks for, in the form of x402 version 1. */
export type Payer = {
  readonly payV1: (
    required: TestReply,
    forged: { authorization: { validAfter: number; validBefore: number } },
  ) => Promise<Readonly<Record<string, string>>>
}

/** Makes the payment callback of an application: an EIP-3009 signature for the first option, its times as numbers. */
export function makeCallback(payer: Payer): (quote: Json) => Promise<Json> {
  return async (quote) => {
    const now = Math.floor(Date.now() / 1000)
    const required = {
      status: 402,
      body: { accepts: quote.allOptions },
      text: '',
      headers: new Headers(),
    }
    const header = await payer.payV1(required, {
      authorization: { validAfter: now - 60, validBefore: now + 300 },
    })
    const { payload } = JSON.parse(Buffer.from(header['x-payment'] ?? '', 'base64').toString())
    return {
      network: quote.network,
      chainType: quote.chainType,
      paymentMethod: 'x402-facilitator',
      evmAuthorization: payload,
    }
  }
}
