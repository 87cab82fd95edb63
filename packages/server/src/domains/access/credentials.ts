import { Fault } from '../../base/fault.ts'
import { oneHeader, type RequestFacts } from '../../http/request.ts'

/** Every carrier of a key; they may come together if they say the same. */
const keyHeaders = ['x-app-key', 'x-api-key', 'x-agent-key', 'x-user-key'] as const

/** The key text that the request carries, by whichever carrier; undefined when there is none. */
export function keyOf(facts: RequestFacts): string | undefined {
  const found = new Set<string>()
  for (const name of keyHeaders) {
    const value = oneHeader(facts, name)
    if (value !== undefined) found.add(value)
  }
  const bearer = bearerOf(facts)
  if (bearer !== undefined) found.add(bearer)
  const inQuery = facts.query.api_key
  for (const value of inQuery === undefined ? [] : [inQuery].flat()) {
    if (value !== '') found.add(value)
  }
  if (found.size > 1) throw new Fault('CREDENTIALS_CONFLICT')
  return [...found][0]
}

function bearerOf(facts: RequestFacts): string | undefined {
  const value = oneHeader(facts, 'authorization')
  const match = value === undefined ? null : /^Bearer +(\S+) *$/i.exec(value)
  return match?.[1]
}

export type SignedBy = {
  readonly address: string
  readonly timestamp: string
  readonly signature: string
}

/** The headers of an owner's signature, if all of them are there. */
export function signedBy(facts: RequestFacts): SignedBy | undefined {
  const address = oneHeader(facts, 'x-wallet-address')
  const timestamp = oneHeader(facts, 'x-timestamp')
  const signature = oneHeader(facts, 'x-signature')
  if (signature === undefined || address === undefined || timestamp === undefined) return undefined
  return { address: address.toLowerCase(), timestamp, signature }
}
