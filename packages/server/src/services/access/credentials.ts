import { Fault } from '../../base/fault.ts'
import { oneHeader, type RequestHead } from '../../http/request-info.ts'

/** Carriers of an application's key, beside `Authorization: Bearer` and `?api_key=`; they may come together if they say the same. */
const keyHeaders = ['x-app-key', 'x-api-key'] as const

/** Carriers of the key that pays; the public clients send it beside the application's. */
const payerHeaders = ['x-agent-key', 'x-user-key'] as const

/** The texts of the keys that a request carries; undefined where there is none. */
export type KeyTexts = { readonly key: string | undefined; readonly payer: string | undefined }

export function keysOf(head: RequestHead): KeyTexts {
  const inQuery = head.query.api_key
  const texts = [oneHeader(head, keyHeaders[0]), oneHeader(head, keyHeaders[1]), bearerOf(head)]
  if (inQuery !== undefined) texts.push(...[inQuery].flat().map((text) => text || undefined))
  return {
    key: theSame(texts),
    payer: theSame([oneHeader(head, payerHeaders[0]), oneHeader(head, payerHeaders[1])]),
  }
}

function theSame(texts: readonly (string | undefined)[]): string | undefined {
  let found: string | undefined
  for (const text of texts) {
    if (text === undefined || text === found) continue
    if (found !== undefined) throw new Fault('CREDENTIALS_CONFLICT')
    found = text
  }
  return found
}

function bearerOf(head: RequestHead): string | undefined {
  const value = oneHeader(head, 'authorization')
  const match = value === undefined ? null : /^Bearer +(\S+) *$/i.exec(value)
  return match?.[1]
}

export type SignedBy = {
  readonly address: string
  readonly timestamp: string
  readonly signature: string
}

/** The headers of an owner's signature, if all of them are there. */
export function signedBy(head: RequestHead): SignedBy | undefined {
  const address = oneHeader(head, 'x-wallet-address')
  const timestamp = oneHeader(head, 'x-timestamp')
  const signature = oneHeader(head, 'x-signature')
  if (signature === undefined || address === undefined || timestamp === undefined) return undefined
  return { address: address.toLowerCase(), timestamp, signature }
}
