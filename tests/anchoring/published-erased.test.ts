import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { Failpoint } from '../../packages/server/src/base/failpoints.ts'
import { sql } from '../../packages/server/src/database/sql.ts'
import { createData, type Data } from '../support/data.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { type Behaviour, type FaultyNode, startFaultyNode } from './faulty-node.ts'
import { type OuterChain, startOuterChain } from './place.ts'
import { awaitPublished, choose, makeEvmSettings, recover, signer } from './published.ts'

vi.setConfig({ testTimeout: 90_000 })

const planted = 'planted-secret-5e18'

describe('what is erased while it waits to be published', () => {
  let chain: OuterChain
  let node: FaultyNode
  let service: TestService
  beforeAll(async () => {
    chain = await startOuterChain()
    node = await startFaultyNode(chain.url)
    await chain.call('anvil_setBalance', signer, '0xde0b6b3a7640000')
    service = await startTestService({ config: { publishers: [makeEvmSettings(node.url)] } })
    // The contract is made before anything waits.
    const first = await createData(service)
    await first.publish('open', [{ id: 'a' }])
    await choose(first, 'plaintext')
    await awaitPublished(service, first)
  })
  afterAll(async () => {
    await service?.close()
    await node?.stop()
    await chain?.stop()
  })

  /** Has the erasure end where the process would be killed, with the bytes in the log. */
  async function eraseUpTo(app: Data, point: Failpoint): Promise<void> {
    service.world.atFailpoints((reached) => {
      if (reached === point) throw new Error('broken off')
    })
    const { status } = await app.call('POST', '/collections/people/erase', {
      field: 'person',
      value: 'ann',
    })
    expect(status).toBe(500)
    service.world.atFailpoints(undefined)
  }

  // A node that refuses all calls keeps a bundle in the outbox; one that is full has signed bytes wait.
  test.each<readonly [Failpoint, Behaviour]>([
    ['expiry.listed', 'refuse'],
    ['expiry.deleted', 'refuse'],
    ['expiry.listed', 'full'],
  ])(
    'is not published once its erasure is broken off at %s, where the node answers as one that is to %s',
    async (point, behaviour) => {
      const app = await createData(service)
      await app.publish('people', [
        { id: 'a', person: 'ann', planted },
        { id: 'b', person: 'ben' },
      ])
      node.behave(behaviour)
      await choose(app, 'plaintext')
      await new Promise((resolve) => setTimeout(resolve, 1_500))
      await eraseUpTo(app, point)
      const read = async () => (await app.record('people', 'a')).status
      await expect.poll(read, { timeout: 10_000 }).toBe(410)
      node.behave('honest')
      await awaitPublished(service, app, 0)
      const { report, root, height, text } = await recover({ rpc: chain.url }, app)
      expect(report).toMatchObject({ equal: true, blocks: height, hidden: 1, root })
      expect(text).not.toContain(planted)
      expect(text).toContain('ben')
      // The bytes that were signed with it are in the journal no longer than the bundle takes to be final.
      await chain.call('anvil_mine', '0x50')
      service.world.advance(31_000)
      const signed = sql`SELECT id FROM operations.transaction_journal
        WHERE id LIKE ${`publish:%:${app.appId}:%`}`
      const list = () => service.database.query(signed)
      await expect.poll(list, { timeout: 15_000 }).toEqual([])
    },
  )
})
