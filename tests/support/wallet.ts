import { createHash } from 'node:crypto'
import type { LocalAccount } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import type { TestReply, TestService } from './service.ts'

export type SignedRequest = {
  /** The origin as /.well-known/tollbase states it. */
  readonly origin: string
  readonly method: string
  /** The path with the query. */
  readonly path: string
  readonly body?: string
  /** Unix seconds. */
  readonly timestamp: number
}

/** A wallet that signs requests as api.md states it: written from the description, not from the server's code. */
export function makeTestWallet(
  account: Pick<LocalAccount, 'address' | 'signMessage'> = privateKeyToAccount(
    generatePrivateKey(),
  ),
) {
  return {
    address: account.address.toLowerCase(),
    sign: async (request: SignedRequest): Promise<Readonly<Record<string, string>>> => {
      const hash = createHash('sha256')
        .update(request.body ?? '')
        .digest('hex')
      const message = `tollbase ${request.origin}\n${request.method}\n${request.path}\n${request.timestamp}\n${hash}`
      return {
        'x-wallet-address': account.address,
        'x-timestamp': String(request.timestamp),
        'x-signature': await account.signMessage({ message }),
      }
    },
  }
}

/** Sends a request that the wallet signs at the service's own time. */
export async function askSigned(
  service: TestService,
  wallet: ReturnType<typeof makeTestWallet>,
  asked: {
    readonly method: string
    readonly path: string
    readonly body?: object
    readonly headers?: Readonly<Record<string, string>>
  },
): Promise<TestReply> {
  const { method, path } = asked
  const raw = asked.body === undefined ? undefined : JSON.stringify(asked.body)
  const signed = await wallet.sign({
    origin: service.url,
    method,
    path,
    ...(raw !== undefined && { body: raw }),
    // A time of its own for each: the same request, signed in the same second, would be the same signature.
    timestamp: nextSecond(service.world.now()),
  })
  const headers = { ...asked.headers, ...signed }
  return service.request(method, path, { headers, ...(raw !== undefined && { raw }) })
}

let lastSecond = 0

function nextSecond(nowMs: number): number {
  const now = Math.floor(nowMs / 1000)
  lastSecond = lastSecond < now - 250 || lastSecond >= now + 250 ? now - 250 : lastSecond + 1
  return lastSecond
}

/** Asks for an application with a body that the wallet signs. */
export async function createSigned(
  service: TestService,
  wallet: ReturnType<typeof makeTestWallet>,
  { body, timestamp }: { body: string; timestamp: number },
): Promise<TestReply> {
  const headers = await wallet.sign({
    origin: service.url,
    method: 'POST',
    path: '/api/apps',
    body,
    timestamp,
  })
  return service.request('POST', '/api/apps', { raw: body, headers })
}
