import { Fault } from '../../base/fault.ts'
import { findSingleHeader, type RequestHead } from '../../http/request-info.ts'

/**
 * Carriers of an application's key, beside `Authorization: Bearer` and `?api_key=`; they may come together if they say
 * the same.
 */
const keyHeaders = ['x-app-key', 'x-api-key'] as const

/** Carriers of the key that pays; the public clients send it beside the application's. */
const payerHeaders = ['x-agent-key', 'x-user-key'] as const

/** The texts of the keys that a request carries; undefined where there is none. */
export type KeyTexts = { readonly key: string | undefined; readonly payer: string | undefined }

export function readKeyTexts(head: RequestHead): KeyTexts {
  const inQuery = head.query.api_key
  const texts = [
    findSingleHeader(head, keyHeaders[0]),
    findSingleHeader(head, keyHeaders[1]),
    findBearerToken(head),
  ]
  if (inQuery !== undefined) texts.push(...[inQuery].flat().map((text) => text || undefined))
  return {
    key: requireSameText(texts),
    payer: requireSameText([
      findSingleHeader(head, payerHeaders[0]),
      findSingleHeader(head, payerHeaders[1]),
    ]),
  }
}

function requireSameText(texts: readonly (string | undefined)[]): string | undefined {
  let found: string | undefined
  for (const text of texts) {
    if (text === undefined || text === found) continue
    if (found !== undefined) throw new Fault('CREDENTIALS_CONFLICT')
    found = text
  }
  return found
}

function findBearerToken(head: RequestHead): string | undefined {
  const value = findSingleHeader(head, 'authorization')
  const match = value === undefined ? null : /^Bearer +(\S+) *$/i.exec(value)
  return match?.[1]
}

export type WalletSignature = {
  readonly address: string
  readonly timestamp: string
  readonly signature: string
}

/** The headers of an owner's signature, if all of them are there. */
export function findWalletSignature(head: RequestHead): WalletSignature | undefined {
  const address = findSingleHeader(head, 'x-wallet-address')
  const timestamp = findSingleHeader(head, 'x-timestamp')
  const signature = findSingleHeader(head, 'x-signature')
  if (signature === undefined || address === undefined || timestamp === undefined) return undefined
  return { address: address.toLowerCase(), timestamp, signature }
}
