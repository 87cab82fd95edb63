import { encodeEntry } from '@tollbase/verify/entry'
import { hashLeaf } from '@tollbase/verify/tree'
import { expect, test } from 'vitest'
import { openMarket, store } from '../support/market.ts'
import { withService } from '../support/per-engine.ts'

withService((service) => {
  test.each([
    ['that has a price', { price: { per_access: '1000' } }],
    ['that is private', { policy: { read: 'private' } }],
  ])(
    'L12: nobody can guess a record of a collection %s and confirm it by the public hashes',
    async (_, terms) => {
      const market = await openMarket(service(), { ...terms, records: [] })
      const stored = await store(service(), market, [{ id: 'answer', n: 42 }])
      const [{ block_height: height }] = stored.body.results
      const at = `/api/apps/${market.appId}`
      // The holder of a key sees all hashes that there are; strangers see those of open data.
      const { headers } = market
      const block = await service().request('GET', `${at}/chain/blocks/${height}`, { headers })
      expect(block.status, block.text).toBe(200)
      const path = `${at}/chain/proof?height=${height}&sequence=0`
      const proof = await service().request('GET', path, { headers })
      expect(proof.status, proof.text).toBe(200)
      const shown = [...block.body.leaf_hashes, proof.body.leaf_hash]
      const known = await service().request('GET', `${at}/collections/cities`, { headers })
      const header = { type: 'record', collection: known.body.collection_id, key: 'answer' }
      for (let n = 0; n < 100; n++) {
        const guess = hashLeaf(encodeEntry(header, JSON.stringify({ id: 'answer', n })))
        expect(shown).not.toContain(Buffer.from(guess).toString('hex'))
      }
    },
  )

  test('L12: nobody learns the owner of an application from the hashes of the service’s own chain', async () => {
    const { appId } = await service().createApp()
    const owner_address = `0x${'5e'.repeat(20)}`
    const patched = await service().request('PATCH', `/api/apps/${appId}`, {
      headers: service().operator,
      body: { owner_address },
    })
    expect(patched.status, patched.text).toBe(200)
    const shown = await service().request('GET', `/api/apps/${appId}`)
    expect(shown.text).not.toContain(owner_address)
    const at = '/api/apps/system/chain'
    const { body: head } = await service().request('GET', `${at}/checkpoint`)
    const hashes: string[] = []
    for (let height = 1; height <= head.height; height++) {
      const { body: block } = await service().request('GET', `${at}/blocks/${height}`)
      hashes.push(...block.leaf_hashes)
    }
    // All of it but the owner is told to anybody, so who guesses him has the whole entry.
    const guessed = service().running.service.tenants.requireApplication(appId)
    expect(guessed).toMatchObject({ owner_address })
    const entry = encodeEntry({ type: 'application', app: appId }, JSON.stringify(guessed))
    expect(hashes).not.toHaveLength(0)
    expect(hashes).not.toContain(Buffer.from(hashLeaf(entry)).toString('hex'))
  })
})
