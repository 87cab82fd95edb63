import type { Network } from '@x402/core/types'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { ExactEvmSchemeV1 } from '@x402/evm/exact/v1/client'
import { wrapFetchWithPaymentFromConfig } from '@x402/fetch'
import type { PrivateKeyAccount } from 'viem/accounts'

/** One exchange as it went over the wire, for replays and for proofs. */
export type Exchange = {
  readonly body: Uint8Array<ArrayBuffer>
  /** Name and value of the header that carried the payment; undefined where nothing was asked. */
  readonly payment: readonly [name: string, value: string] | undefined
  /** The amount that the 402 asked for, in atomic units. */
  readonly asked: bigint
  readonly reply: Response
  readonly replyBytes: Uint8Array<ArrayBuffer>
}

export type Version = 1 | 2

/** Sends a JSON request with the public x402 client, which pays by itself when asked to. */
export async function payAndFetch(
  url: string,
  request: { body: object; account: PrivateKeyAccount; version: Version; stop: AbortSignal },
): Promise<Exchange> {
  const seen: Seen = { payment: undefined, asked: 0n }
  const text = JSON.stringify(request.body)
  const wire = watched(seen, request.version)
  const pay = wrapFetchWithPaymentFromConfig(wire, {
    schemes: [makeScheme(request.account, request.version)],
  })
  const headers = { 'content-type': 'application/json' }
  const reply = await pay(url, { method: 'POST', headers, body: text, signal: request.stop })
  return {
    body: new TextEncoder().encode(text),
    payment: seen.payment,
    asked: seen.asked,
    reply,
    replyBytes: new Uint8Array(await reply.arrayBuffer()),
  }
}

type Seen = { payment: Exchange['payment']; asked: bigint }

function makeScheme(account: PrivateKeyAccount, version: Version) {
  if (version === 2) return { network: 'eip155:*' as const, client: new ExactEvmScheme(account) }
  // Version 1 calls networks by bare names, which the type does not foresee.
  const network = 'base-sepolia' as Network
  return { network, client: new ExactEvmSchemeV1(account), x402Version: 1 }
}

/** Wraps the global fetch and notes the 402 and the payment that pass through it. */
function watched(seen: Seen, version: Version): typeof fetch {
  return async (input, init) => {
    const request = new Request(input, init)
    for (const name of ['payment-signature', 'x-payment']) {
      const value = request.headers.get(name)
      if (value !== null) seen.payment = [name, value]
    }
    const reply = await fetch(request)
    if (reply.status !== 402) return reply
    const text = await reply.text()
    const required: { accepts?: { maxAmountRequired?: string }[] } = JSON.parse(text)
    seen.asked = BigInt(required.accepts?.[0]?.maxAmountRequired ?? 0)
    const headers = new Headers(reply.headers)
    // A client of version 1 knows the body only; this client would prefer the header of version 2.
    if (version === 1) headers.delete('payment-required')
    return new Response(text, { status: reply.status, headers })
  }
}
