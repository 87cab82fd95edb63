import { expect, test } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { type Asked, ask, createFundedBuyer, depositing, quote } from '../support/buyer.ts'
import { expectBalanced, type Market, openMarket, setPrices } from '../support/market.ts'
import { withService } from '../support/per-engine.ts'
import type { TestService } from '../support/service.ts'
import { expectAuditEqual } from './reorganize.ts'

type ClaimRow = {
  readonly state: string
  readonly operation: string
  readonly after: bigint | null
}

withService(
  (service) => {
    /** A buyer whose balance pays for a batch that fails each time, once it is paid: what it changes is not there. */
    const openScene = async () => {
      const market = await openMarket(service())
      const at = `/api/apps/${market.appId}/collections`
      const made = await service().request('POST', at, {
        ...{ body: { name: 'free' }, headers: market.headers },
      })
      expect(made.status, made.text).toBe(201)
      await setPrices(service(), market, [
        { operation: 'write', model: 'per_record', amount: '5000' },
      ])
      const operation = { operation: 'update', collection: market.collection }
      const body = { operations: [{ ...operation, data: { id: 'none', name: 'Wels' } }] }
      const asked: Asked = {
        ...{ method: 'POST', path: `/api/apps/${market.appId}/batch`, raw: JSON.stringify(body) },
        headers: market.headers,
      }
      const buyer = await createFundedBuyer(service())
      await buyer.buy(service(), depositing(buyer.address, '5000'))
      const header = await buyer.payV2(await quote(service(), asked))
      const fail = async () => {
        const failed = await ask(service(), asked, header)
        expect(failed.status, failed.text).toBe(404)
      }
      return { market, buyer, header, fail }
    }

    test('a write that failed is looked for again in what was written since alone, however often it is sent', async () => {
      const { market, buyer, fail } = await openScene()
      await fail()
      const first = await readClaim(service(), buyer.address)
      await growLog(service(), market, 5)
      await fail()
      const { height } = (await loadChain(service(), market)).head()
      expect(await readClaim(service(), buyer.address)).toMatchObject({
        ...{ state: 'failed', after: BigInt(height) },
      })
      expect(BigInt(height)).toBeGreaterThan(first.after ?? 0n)
    })

    test('a payment whose write failed is a deposit without anything of that write', async () => {
      const { market, buyer, header, fail } = await openScene()
      const { system } = service().running.service.tenants
      const chain = await loadChain(service(), market)
      while (chain.head().height < system.chain.head().height + 20)
        await growLog(service(), market, 10)
      await fail()
      const text = Buffer.from(header['payment-signature'] ?? '', 'base64').toString()
      const paymentPayload = JSON.parse(text)
      const body = { x402Version: 2, paymentPayload, paymentRequirements: paymentPayload.accepted }
      const settled = await service().request('POST', '/api/payments/settle', { body })
      expect(settled.body, settled.text).toMatchObject({ success: true })
      expect(await readClaim(service(), buyer.address)).toMatchObject({
        ...{ state: 'deposited', operation: 'deposit', after: null },
      })
      await expectBalanced(service())
      await expectAuditEqual(service())
    })
  },
  { devnet: true },
)

async function loadChain({ running }: TestService, { appId }: Market) {
  return (await running.service.tenants.load(appId)).chain
}

async function growLog(service: TestService, { appId, headers }: Market, blocks: number) {
  for (let n = 0; n < blocks; n++) {
    const body = { root: `${appId}::free`, data: [{ n }] }
    const stored = await service.request('POST', '/store?wait=true', { headers, body })
    expect(stored.status, stored.text).toBe(200)
  }
}

/** Reads the last claim of a payer. */
async function readClaim({ database }: TestService, payer: string): Promise<ClaimRow> {
  const [row] = await database.query<ClaimRow>(sql`
    SELECT state, operation, write_after AS after FROM operations.claim
    WHERE split_part(identity, '/', 3) = ${payer} ORDER BY created_at_ms DESC LIMIT 1`)
  if (row === undefined) throw new Error('the payer has no claim')
  return row
}
