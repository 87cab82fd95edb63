import { anchoredTopic, hashOrigin } from '@tollbase/verify/anchor'
import { verifyDocument } from '@tollbase/verify/verify'
import { describe, expect, test, vi } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { rebuild } from '../../packages/server/src/operator/rebuild.ts'
import { createFundedBuyer, list } from '../support/buyer.ts'
import { createOpenData, readChain } from '../support/chains.ts'
import { openMarket } from '../support/market.ts'
import { withService } from '../support/per-engine.ts'
import type { Json } from '../support/service.ts'
import { callChain, readAnchoredProof } from './place.ts'

const quiet = () => undefined

/** Yields the document with one leaf of its values changed at a time. */
function* change(value: Json, put: (changed: Json) => Json = (one) => one): Generator<Json> {
  if (typeof value === 'object' && value !== null) {
    for (const name of Object.keys(value)) {
      const rest = Array.isArray(value) ? [...value] : { ...value }
      yield* change(value[name], (changed) => put(Object.assign(rest, { [name]: changed })))
      Object.assign(rest, { [name]: value[name] })
    }
  } else if (typeof value === 'number') yield put(value + 1)
  else if (typeof value === 'string') {
    const at = Math.floor(value.length / 2)
    const other = value[at] === '1' ? '2' : '1'
    yield put(value.slice(0, at) + other + value.slice(at + 1))
  }
}

describe('anchors on the devnet', () =>
  withService(
    (service) => {
      test('a receipt gains its anchor when it comes, and is valid before and after', async () => {
        const market = await openMarket(service(), { price: { per_row: '100' } })
        const buyer = await createFundedBuyer(service())
        const sold = await buyer.buy(service(), list({ root: market.root, limit: 3 }))
        const path = `/api/receipts/${sold.headers.get('x-receipt-id')}`
        const { receipt_public_key: trustedKey } = (
          await service().request('GET', '/.well-known/tollbase')
        ).body
        const early = (await service().request('GET', path)).text
        expect(verifyDocument(early, { trustedKey }).ok).toBe(true)
        await vi.waitFor(
          async () => {
            const { body, text } = await service().request('GET', path)
            expect(body.anchor).toBeDefined()
            const { ok, checks } = verifyDocument(text, { trustedKey })
            expect(checks.filter((one) => !one.ok)).toEqual([])
            expect(ok).toBe(true)
          },
          { timeout: 30_000, interval: 100 },
        )
      })

      test('the first record of a new service has a proof that ends at a transaction of the devnet, and no change of it passes', async () => {
        const app = await createOpenData(service())
        const { ticket_id } = (await app.store('notes', [{ id: 'a' }, { id: 'b' }])).body
        const proof = await readAnchoredProof(service(), app, 'a')
        const { anchor } = (await service().request('GET', `/task/${ticket_id}`)).body
        const { network, transaction, block_number, block_hash, time } = proof.anchor
        expect(anchor).toEqual({ network, transaction, block_number, block_hash, time })
        const { key: trustedKey } = await readChain(service(), app, '/checkpoint')
        const verdict = verifyDocument(JSON.stringify(proof), { trustedKey })
        expect(verdict.checks.filter(({ ok }) => !ok)).toEqual([])
        expect(verdict.checks.map(({ name }) => name)).toEqual(
          expect.arrayContaining(['anchored block', 'anchored head', 'anchored entry', 'anchor']),
        )
        const receipt = await callChain(
          service().running.devnet?.rpcUrl ?? '',
          'eth_getTransactionReceipt',
          [proof.anchor.transaction],
        )
        expect(receipt).toMatchObject({ status: '0x1', blockHash: proof.anchor.block_hash })
        const [log] = receipt.logs
        const { signer, contract, origin } = (
          await service().request('GET', '/.well-known/tollbase')
        ).body.anchors[0]
        expect(log.address).toBe(contract)
        expect(log.topics).toEqual([
          anchoredTopic,
          `0x${signer.slice(2).padStart(64, '0')}`,
          hashOrigin(origin),
        ])
        // The block of the other chain is what only a node of it can tell.
        const told = new Set(['block_number', 'block_hash', 'time'])
        let changes = 0
        for (const [name, member] of Object.entries<Json>(proof.anchor)) {
          if (told.has(name)) continue
          for (const changed of change(member)) {
            const forged = { ...proof, anchor: { ...proof.anchor, [name]: changed } }
            const { ok } = verifyDocument(JSON.stringify(forged), { trustedKey })
            expect(ok, `${name}: ${JSON.stringify(changed).slice(0, 200)}`).toBe(false)
            changes += 1
          }
        }
        expect(changes).toBeGreaterThan(10)
      })

      test('anchors of an application say how far it is covered; no other application is told of', async () => {
        const app = await createOpenData(service())
        const other = await createOpenData(service())
        await app.store('notes', [{ id: 'a' }])
        await other.store('notes', [{ id: 'b' }])
        const proof = await readAnchoredProof(service(), app, 'a')
        expect(Buffer.from(proof.anchor.head.entry, 'base64').toString()).not.toContain(other.appId)
        const { anchors } = await readChain(service(), app, '/anchors')
        const { size } = await readChain(service(), app, '/checkpoint')
        expect(anchors.at(0)).toMatchObject({ network: 'eip155:84532', head: { size } })
        const all: Json[] = []
        for (let cursor = ''; ; ) {
          const { body } = await service().request(
            'GET',
            `/api/apps/system/chain/anchors?limit=1${cursor}`,
          )
          all.push(...body.anchors)
          if (body.next_cursor === null) break
          cursor = `&cursor=${body.next_cursor}`
        }
        const sizes = all.map((one) => one.system.size)
        expect(sizes).toEqual([...new Set(sizes)].sort((a, b) => b - a))
        expect(sizes.length).toBeGreaterThan(1)
        for (const one of all) expect(one.gas_used).toBeLessThan(26_000)
      })

      test('a service at rest anchors nothing more', async () => {
        const { chain } = service().running.service.tenants.system
        const wait = () => new Promise((resolve) => setTimeout(resolve, 1_000))
        await vi.waitFor(
          async () => {
            const { size } = chain.head()
            await wait()
            expect(chain.head().size).toBe(size)
          },
          { timeout: 30_000 },
        )
        service().world.advance(60_000)
        const { size } = chain.head()
        await wait()
        expect(chain.head().size).toBe(size)
      })

      test('a restart goes on, and audit and rebuild find the anchors as the entries tell them', async () => {
        const app = await createOpenData(service())
        await app.store('notes', [{ id: 'a' }])
        await readAnchoredProof(service(), app, 'a')
        await service().whileStopped(async (config) => {
          const report = await audit(config, quiet)
          expect(report.difference).toBeUndefined()
          const { database } = service()
          for (const harm of [
            sql`UPDATE system.head SET root = 'x'`,
            sql`DELETE FROM system.head`,
            sql`UPDATE system.anchor SET body = replace(body, '"size":', '"size":1')`,
          ]) {
            await database.execute(harm)
            expect((await audit(config, quiet)).equal).toBe(false)
          }
          expect(await rebuild(config, quiet)).toMatchObject({ equal: true })
          expect(await audit(config, quiet)).toMatchObject({ equal: true })
          await database.execute(sql`
            UPDATE operations.transaction_journal SET id = 'anchor:x:7:y' WHERE id LIKE 'anchors:%'`)
          expect((await audit(config, quiet)).difference).toMatchObject({ row: 'anchor:x:7:y' })
          await database.execute(sql`
            UPDATE operations.transaction_journal SET id = 'anchors:x:y' WHERE id = 'anchor:x:7:y'`)
        })
        await app.store('notes', [{ id: 'b' }])
        await readAnchoredProof(service(), app, 'b')
      })
    },
    { devnet: true, config: { anchors: [] } },
  ))
