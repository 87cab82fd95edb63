import { createHash, createPublicKey, verify } from 'node:crypto'
import { createFundedBuyer } from '@tollbase/testing/buyer'
import { openMarket, readReceipt } from '@tollbase/testing/market'
import { withService } from '@tollbase/testing/per-engine'
import type { Json } from '@tollbase/testing/service'
import { describe, expect, test } from 'vitest'

describe('getGuide', () =>
  withService(
    (service) => {
      test('the guide of buying programs names addresses that answer a stranger', async () => {
        const market = await openMarket(service(), { price: { per_row: '1000' } })
        const guide = await service().request('GET', '/llms.txt')
        expect(guide.headers.get('content-type')).toBe('text/plain; charset=utf-8')
        const links = [...guide.text.matchAll(/\]\(([^)#]+)[^)]*\)/g)].map(([, link = '']) => link)
        expect(links.length).toBeGreaterThan(8)
        for (const link of links) {
          const url = link.replace('APP', market.appId).replace('NAME', market.collection)
          const { status } = await service().request('GET', url.replace(service().url, ''))
          expect(status, url).toBe(200)
        }
      })

      test('a receipt can be checked as the guide says, with nothing of ours', async () => {
        const market = await openMarket(service(), { price: { per_row: '1000' } })
        const buyer = await createFundedBuyer(service())
        const raw = JSON.stringify({ root: market.root, limit: 2 })
        const bought = await buyer.buy(service(), { method: 'POST', path: '/list', raw })
        const { signature, ...signed } = (await readReceipt(service(), bought)) as Json
        expect(signed.result_hash).toBe(sha256(bought.text))
        const request = `tollbase-request-v1\nPOST\n/list\n\n${sha256(raw)}`
        expect(signed.request_hash).toBe(sha256(request))
        const known = await service().request('GET', '/.well-known/tollbase')
        const [, , ...parts] = known.body.receipt_public_key.split('+')
        const x = Buffer.from(parts.join('+'), 'base64').subarray(-32).toString('base64url')
        const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })
        const message = Buffer.from(JSON.stringify(sortMembers(signed)))
        expect(verify(null, message, key, Buffer.from(signature, 'base64'))).toBe(true)
      })
    },
    { devnet: true },
  ))

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

/** The members of a receipt have ASCII names and whole numbers, so this is RFC 8785. */
function sortMembers(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortMembers)
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).map(([name, one]) => [name, sortMembers(one)] as const)
  return Object.fromEntries(members.sort(([a], [b]) => (a < b ? -1 : 1)))
}
