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
