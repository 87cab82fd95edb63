import { startLoopbackNode } from '@tollbase/testing/celestia/node'
import { deriveNamespace } from '@tollbase/verify/celestia/namespace'
import { expect, test, vi } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { deriveAddress } from '../../packages/server/src/x402/signature.ts'
import { createData, type Data } from '../support/data.ts'
import { type Json, startTestService, type TestService } from '../support/service.ts'
import { startFaultyNode } from './faulty-node.ts'
import { startOuterChain, writeTemporary } from './place.ts'
import {
  awaitPublished,
  choose,
  common,
  keyHex,
  makeEvmSettings,
  makeRandom,
  network,
  recover,
  signer,
} from './published.ts'

vi.setConfig({ testTimeout: 120_000 })

const planted = 'planted-secret-9c40'
const makePrivate = async (service: TestService, { appId, headers }: Data) => {
  const path = `/api/apps/${appId}/collections/open`
  const { status } = await service.request('PUT', path, {
    ...{ headers, body: { access_policy: 'private' } },
  })
  expect(status).toBe(200)
}

test('what was signed while it was public, and taken by no node, is not sent once it is private: an empty transaction takes its nonce, and others follow', async () => {
  const chain = await startOuterChain()
  const node = await startFaultyNode(chain.url)
  await chain.call('anvil_setBalance', signer, '0xde0b6b3a7640000')
  const service = await startTestService({ config: { publishers: [makeEvmSettings(node.url)] } })
  const listSigned = (app: Data) =>
    service.database.query<{ id: string; raw: Buffer; earlier: Buffer[] }>(sql`
      SELECT id, raw, earlier_raws AS earlier FROM operations.transaction_journal
      WHERE id LIKE ${`publish:%:${app.appId}:%`} AND state <> 'mined'`)
  const awaitSigned = (app: Data) =>
    vi.waitFor(async () => expect(await listSigned(app)).toHaveLength(1), { timeout: 15_000 })
  try {
    const other = await createData(service)
    await other.publish('open', [{ id: 'a' }])
    await choose(other, 'plaintext')
    await awaitPublished(service, other)
    node.behave('full')
    const [left, hidden] = [await createData(service), await createData(service)]
    for (const app of [left, hidden]) {
      await app.publish('open', [{ id: 'a', planted }])
      await choose(app, 'plaintext')
      await awaitSigned(app)
    }
    await choose(left, 'nothing')
    await makePrivate(service, hidden)
    // The next process knows of the signed bytes by the journal alone.
    await service.whileStopped(async () => undefined)
    node.behave('honest')
    await other.store('open', [{ id: 'b' }])
    await awaitPublished(service, other)
    await awaitPublished(service, hidden)
    expect((await recover({ rpc: chain.url }, left)).report).toMatchObject({ blocks: 0 })
    const { report, root, height, text } = await recover({ rpc: chain.url }, hidden)
    expect(report).toMatchObject({ equal: true, blocks: height, hidden: 1, root })
    expect(text).not.toContain(planted)
    // The bytes are kept nowhere: the record may be erased one day.
    // The later transaction of hidden is noted as mined a moment after it is confirmed.
    for (const app of [left, hidden])
      await vi.waitFor(async () => {
        for (const { raw, earlier } of await listSigned(app)) {
          expect(raw.length).toBeLessThan(200)
          expect(earlier).toEqual([])
        }
      })
    await service.whileStopped(async (config) => {
      expect((await audit(config, () => undefined)).difference).toBeUndefined()
    })
    await makePrivate(service, left)
    await choose(left, 'plaintext')
    await awaitPublished(service, left)
    const later = await recover({ rpc: chain.url }, left)
    expect(later.report).toMatchObject({ equal: true, blocks: later.height, root: later.root })
    expect(later.text).not.toContain(planted)
  } finally {
    await service.close()
    await node.stop()
    await chain.stop()
  }
})

test('an application whose log cannot be read any more holds up nothing that others publish by the same key', async () => {
  const chain = await startOuterChain()
  const node = await startFaultyNode(chain.url)
  await chain.call('anvil_setBalance', signer, '0xde0b6b3a7640000')
  const service = await startTestService({ config: { publishers: [makeEvmSettings(node.url)] } })
  try {
    const [other, broken] = [await createData(service), await createData(service)]
    await other.publish('open', [{ id: 'a' }])
    await choose(other, 'plaintext')
    await awaitPublished(service, other)
    node.behave('full')
    await broken.publish('open', [{ id: 'a' }])
    await choose(broken, 'plaintext')
    const signed = sql`SELECT id FROM operations.transaction_journal
      WHERE id LIKE ${`publish:%:${broken.appId}:%`} AND state <> 'mined'`
    await vi.waitFor(async () => expect(await service.database.query(signed)).toHaveLength(1), {
      timeout: 15_000,
    })
    const { number } = service.running.service.tenants.system.applications.get(broken.appId) ?? {}
    await service.whileStopped(() =>
      service.database.execute(
        sql`UPDATE ${sql.id(`app_${number}`, 'block')} SET body = '\\x00' WHERE height = 1`,
      ),
    )
    node.behave('honest')
    await other.store('open', [{ id: 'b' }])
    await awaitPublished(service, other)
  } finally {
    await service.close()
    await node.stop()
    await chain.stop()
  }
})

test('the later chunks of a bundle are not sent to Celestia once the collection is private, though the first one was', async () => {
  const node = await startLoopbackNode({ blockMs: 1_500 })
  const settings = { ...common, network: 'cosmos:private', rpc_url: node.url }
  const service = await startTestService({ config: { publishers: [settings] } })
  try {
    const app = await createData(service)
    await app.publish('open', makeRandom(1_900, 750))
    await choose(app, 'plaintext')
    await vi.waitFor(() => expect(node.calls('state.SubmitPayForBlob')).toBe(1), {
      ...{ timeout: 20_000, interval: 10 },
    })
    await makePrivate(service, app)
    await awaitPublished(service, app)
    const namespace = deriveNamespace(app.appId)
    const sizes = node
      .blocks()
      .flatMap(({ square }) => square.blobs)
      .filter((blob) => Buffer.compare(blob.namespace, namespace) === 0)
      .map(({ data }) => data.length)
    expect(sizes.filter((bytes) => bytes > 200_000)).toHaveLength(1)
    const { report, root, height } = await recover({ celestia: node.url }, app)
    expect(report).toMatchObject({ equal: true, blocks: height, hidden: 1_900, root })
  } finally {
    await service.close()
    await node.stop()
  }
})

test('a bundle that waits and changes is made anew for the same blocks: nothing that is final is sent again, by a new price or by another choice and back', async () => {
  const chain = await startOuterChain()
  await chain.call('anvil_setBalance', signer, '0xde0b6b3a7640000')
  const settings = makeEvmSettings(chain.url, { bytes_per_day: 131_072 })
  const service = await startTestService({ config: { publishers: [settings] } })
  const read = async (app: Data) => {
    service.world.advance(2_000)
    return service.database.query<{ state: string; from: bigint; to: bigint; bytes: number }>(sql`
      SELECT state, from_height AS from, to_height AS to, bytes FROM operations.publication
      WHERE app = ${app.appId} ORDER BY from_height`)
  }
  const awaitRows = async (app: Data, look: (rows: Awaited<ReturnType<typeof read>>) => void) =>
    vi.waitFor(async () => look(await read(app)), { timeout: 20_000, interval: 100 })
  try {
    const app = await createData(service)
    await app.publish('open', makeRandom(130, 600))
    await choose(app, 'plaintext')
    await awaitRows(app, (rows) => {
      expect(rows.length).toBeGreaterThan(0)
      expect(rows.every(({ state }) => state === 'confirmed')).toBe(true)
    })
    const reached = (await read(app)).at(-1)?.to ?? 0n
    await app.store('open', makeRandom(130, 599))
    await awaitRows(app, (rows) => expect(rows.at(-1)?.state).toBe('waiting'))
    await chain.call('anvil_mine', '0x50')
    service.world.advance(31_000)
    await awaitRows(app, (rows) => expect(rows.map(({ state }) => state)).toEqual(['waiting']))
    const [before] = await read(app)
    for (const choice of ['roots', 'plaintext']) await choose(app, choice)
    await makePrivate(service, app)
    await awaitRows(app, (rows) => {
      expect(rows[0]?.bytes).toBeLessThan((before?.bytes ?? 0) / 2)
      expect(rows[0]).toMatchObject({ from: before?.from, to: before?.to })
    })
    expect(before?.from).toBe(reached + 1n)
    service.world.advance(86_400_000)
    await awaitPublished(service, app)
    const { report, root, height } = await recover({ rpc: chain.url }, app)
    expect(report).toMatchObject({ equal: true, blocks: height, hidden: 130, root })
  } finally {
    await service.close()
    await chain.stop()
  }
})

test('a clock that is set back holds up neither publications nor anchors', async () => {
  const chain = await startOuterChain()
  const anchorKey = `0x${'6d'.repeat(32)}`
  for (const hex of [keyHex, anchorKey])
    await chain.call(
      'anvil_setBalance',
      deriveAddress(Buffer.from(hex.slice(2), 'hex')),
      '0xde0b6b3a7640000',
    )
  const { bytes_per_day: _, ...evm } = makeEvmSettings(chain.url)
  const anchors = [{ ...evm, signer_key_file: writeTemporary('key', anchorKey) }]
  const config = { publishers: [makeEvmSettings(chain.url)], anchors }
  const service = await startTestService({ config })
  const readAnchored = async () => {
    const { body } = await service.request('GET', '/api/apps/system/chain/anchors?limit=100')
    const sizes = body.anchors
      .filter((one: Json) => one.network === network && one.system !== undefined)
      .map((one: Json) => one.system.size)
    return Math.max(0, ...sizes)
  }
  try {
    const app = await createData(service)
    await app.publish('open', [{ id: 'a' }])
    await choose(app, 'plaintext')
    await awaitPublished(service, app)
    const anchored = await readAnchored()
    service.world.advance(-7_200_000)
    await app.store('open', [{ id: 'b' }])
    const { height } = (await app.call('GET', '/chain/checkpoint')).body
    await vi.waitFor(
      async () => {
        const [published] = (await app.call('GET', '')).body.publish.chains
        expect(published.height).toBeGreaterThanOrEqual(height)
        expect(await readAnchored()).toBeGreaterThan(anchored)
      },
      { timeout: 20_000, interval: 200 },
    )
  } finally {
    await service.close()
    await chain.stop()
  }
})
