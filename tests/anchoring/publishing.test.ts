import { mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { runCommand } from '../../packages/cli/src/commands.ts'
import { sql } from '../../packages/server/src/database/sql.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { deriveAddress } from '../../packages/server/src/x402/signature.ts'
import { createData, type Data } from '../support/data.ts'
import { type Json, startTestService, type TestService } from '../support/service.ts'
import { type FaultyNode, startFaultyNode } from './faulty-node.ts'
import { type OuterChain, startOuterChain, writeTemporary } from './place.ts'

const keyHex = `0x${'6b'.repeat(32)}`
const signer = deriveAddress(Buffer.from(keyHex.slice(2), 'hex'))
const planted = 'planted-secret-7f31'

function makeConfig(url: string, more: object = {}) {
  return {
    publishers: [
      {
        network: 'eip155:31337',
        rpc_url: url,
        signer_key_file: writeTemporary('key', keyHex),
        interval_seconds: 0.1,
        confirmations: 1,
        ...more,
      },
    ],
  }
}

/** Builds up the log from the chain alone. */
async function recover(url: string, key: string, ...more: string[]) {
  const to = mkdtempSync(join(tmpdir(), 'tollbase-recovered-'))
  const said: string[] = []
  vi.spyOn(console, 'error').mockImplementation((text) => said.push(String(text)))
  vi.spyOn(console, 'log').mockImplementation((text) => said.push(String(text)))
  const code = await runCommand([
    'recover',
    '--json',
    '--rpc',
    url,
    '--key',
    key,
    '--to',
    to,
    ...more,
  ])
  vi.restoreAllMocks()
  const lines = code === 2 ? '' : readFileSync(join(to, 'log.ndjson'), 'utf8')
  const blocks: Json[] = lines
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))
  return { code, report: JSON.parse(said.join('')), blocks, text: lines }
}

afterEach(() => vi.restoreAllMocks())

describe('an application that is published on another chain', () => {
  let chain: OuterChain
  let node: FaultyNode
  let service: TestService
  beforeAll(async () => {
    chain = await startOuterChain()
    node = await startFaultyNode(chain.url)
    await chain.call('anvil_setBalance', signer, '0xde0b6b3a7640000')
    service = await startTestService({
      config: { ...makeConfig(node.url, { base_fee_gwei_max: 50 }), encryptionUpdatePrice: 0n },
    })
  })
  afterAll(async () => {
    await service?.close()
    await node?.stop()
    await chain?.stop()
  })

  const choose = (app: Data, publish: string) => app.call('PATCH', '', { publish })
  const readCheckpoint = async (app: Data): Promise<Json> =>
    (await app.call('GET', '/chain/checkpoint')).body

  async function awaitPublished(app: Data, to: TestService = service): Promise<void> {
    const { height } = await readCheckpoint(app)
    await vi.waitFor(
      async () => {
        to.world.advance(5_000)
        const { publish } = (await app.call('GET', '')).body
        expect(publish.chains).toEqual([
          { network: 'eip155:31337', height: expect.any(Number), of: expect.any(Number) },
        ])
        expect(publish.chains[0].height).toBeGreaterThanOrEqual(height)
      },
      { timeout: 30_000, interval: 200 },
    )
  }

  test('nothing is published unless the application asks for it, and the operator can only make it less', async () => {
    const app = await createData(service)
    await app.publish('open', [{ id: 'a', planted }])
    expect((await app.call('GET', '')).body.publish).toEqual({ choice: 'roots', chains: [] })
    const path = `/api/apps/${app.appId}`
    const ask = (publish: string) =>
      service.request('PATCH', path, { headers: service.operator, body: { publish } })
    for (const more of ['ciphertext', 'plaintext'])
      expect((await ask(more)).body).toMatchObject({ code: 'FORBIDDEN' })
    expect((await ask('nothing')).body.publish.choice).toBe('nothing')
    expect((await ask('roots')).body).toMatchObject({ code: 'FORBIDDEN' })
    const { key } = await readCheckpoint(app)
    const { code, report } = await recover(chain.url, key)
    expect({ code, report }).toMatchObject({ code: 0, report: { blocks: 0, root: null } })
  })

  test('who has the chain and the key alone builds up the whole log of open data, and finds its root', async () => {
    const app = await createData(service)
    await app.publish('open', [{ id: 'a', n: 1 }])
    expect((await choose(app, 'plaintext')).status).toBe(200)
    // Random text compresses badly, so this block takes several transactions.
    const long = Array.from({ length: 600 }, (_, n) => ({
      id: `r${n}`,
      text: Buffer.from(crypto.getRandomValues(new Uint8Array(600))).toString('base64'),
    }))
    await app.store('open', long)
    await awaitPublished(app)
    const { key, height, size, root } = await readCheckpoint(app)
    const { code, report, blocks, text } = await recover(chain.url, key, '--sender', signer)
    expect(code).toBe(0)
    expect(report).toMatchObject({ equal: true, blocks: height, entries: size, hidden: 0, root })
    expect(text).toContain(long[599]?.text)
    for (const { height: at, entries } of blocks) {
      const { leaf_hashes } = (await app.call('GET', `/chain/blocks/${at}`)).body
      expect(entries.map((one: Json) => one.hash)).toEqual(leaf_hashes)
    }
    const rows = await service.database.query<{ parts: number }>(
      sql`SELECT parts FROM operations.publication WHERE app = ${app.appId}`,
    )
    expect(Math.max(...rows.map(({ parts }) => parts))).toBeGreaterThan(1)
  }, 60_000)

  test('private, priced and encrypted records are not published in plaintext by any choice; the log is whole all the same', async () => {
    const app = await createData(service)
    await app.create({ name: 'private', access_policy: 'private' })
    await app.create({ name: 'keyed' })
    await app.create({ name: 'sold', access_policy: { price: { per_row: '100' } } })
    await app.create({
      name: 'partly',
      access_policy: { read: 'public', offered: { select: ['id'] } },
    })
    await app.create({ name: 'sealed' })
    const asked = await app.call('POST', '/encryption', { action: 'add', collections: ['sealed'] })
    expect(asked.status, asked.text).toBeLessThan(300)
    const names = ['private', 'keyed', 'sold', 'partly', 'sealed']
    for (const name of names) await app.store(name, [{ id: 'a', planted }])
    // Definitions that say more than names: the errors of a migration, and the URL of an API.
    await app.store('private', [{ id: `key-${planted}` }])
    const schema = { fields: { title: { type: 'string', required: true } } }
    const migrated = await app.call('POST', '/collections/private/migrate', { schema })
    expect(migrated.body.errors.join()).toContain(planted)
    const made = await app.call('POST', '/api-collections', {
      name: 'weather',
      upstream: { url: `https://api.example.com/v1?key=${planted}`, method: 'GET' },
    })
    expect(made.status, made.text).toBe(201)
    // Definitions that name what was agreed on with one other: a grant, and the wallet that earns by an index.
    const agreed = '31415926535'
    const other = await createData(service)
    const granted = { grantee: other.appId, collection: 'keyed', per_access: agreed }
    expect((await app.call('POST', '/grants', granted)).status).toBe(201)
    const owner = `0x${'a7'.repeat(20)}`
    const indexed = await app.call('POST', '/indexes', {
      ...{ name: 'n_price', collection: 'keyed', field_name: 'n', index_type: 'price' },
      price_config: { app_owner_percentage: 80, platform_percentage: 20, app_owner_address: owner },
    })
    expect(indexed.status, indexed.text).toBeLessThan(300)
    await app.publish('open', [{ id: 'a', shown: true }])
    for (const choice of ['ciphertext', 'plaintext']) {
      expect((await choose(app, choice)).status).toBe(200)
      await app.store('open', [{ id: `b-${choice}`, shown: choice }])
      await awaitPublished(app)
    }
    const { key, height, size, root } = await readCheckpoint(app)
    const { report, text } = await recover(chain.url, key)
    expect(report).toMatchObject({ equal: true, blocks: height, entries: size, root })
    expect(report.hidden).toBeGreaterThan(4)
    for (const secret of [planted, agreed, owner]) expect(text).not.toContain(secret)
    expect(text).toContain('sealed')
    expect(text).toContain('b-plaintext')
    // Nor is it in any other form in a transaction.
    const count = Number(await chain.call('eth_blockNumber'))
    for (let at = 0; at <= count; at++) {
      const { transactions } = await chain.call(
        'eth_getBlockByNumber',
        `0x${at.toString(16)}`,
        true,
      )
      for (const { input } of transactions)
        expect(Buffer.from(input.slice(2), 'hex').includes(planted)).toBe(false)
    }
  }, 60_000)

  test('blocks of the other chain that are replaced are sent again, the same bytes once', async () => {
    const app = await createData(service)
    await app.publish('open', [{ id: 'a' }])
    await choose(app, 'plaintext')
    await awaitPublished(app)
    await chain.call('anvil_rollback', 1)
    await chain.call('anvil_mine', '0x3')
    const { key, height, root } = await readCheckpoint(app)
    await vi.waitFor(
      async () => {
        service.world.advance(60_000)
        const { report } = await recover(chain.url, key)
        expect(report).toMatchObject({ blocks: height, root })
      },
      { timeout: 40_000, interval: 500 },
    )
  }, 60_000)

  test('a chain that is away holds up no write; what came meanwhile follows, and audit finds all in order', async () => {
    const app = await createData(service)
    await app.publish('open', [{ id: 'a' }])
    await choose(app, 'plaintext')
    await awaitPublished(app)
    node.behave('refuse')
    for (let n = 0; n < 5; n++)
      expect((await app.store('open', [{ id: `w${n}` }])).status).toBe(200)
    expect((await service.request('GET', '/ready')).status).toBe(200)
    await vi.waitFor(
      async () => {
        const { text } = await service.request('GET', '/metrics', { headers: service.operator })
        expect(text).toMatch(/publication_blocks_behind\{network="eip155:31337"\} [1-9]/)
      },
      { timeout: 10_000 },
    )
    node.behave('honest')
    await awaitPublished(app)
    await service.whileStopped(async (config) => {
      expect((await audit(config, () => undefined)).difference).toBeUndefined()
    })
    await app.store('open', [{ id: 'later' }])
    await awaitPublished(app)
    const { key, height, root } = await readCheckpoint(app)
    const { report } = await recover(chain.url, key)
    expect(report).toMatchObject({ blocks: height, root })
  }, 90_000)

  test('a node that takes transactions and keeps them to itself is told again; one that hangs stops nothing', async () => {
    const app = await createData(service)
    await app.publish('open', [{ id: 'a' }])
    node.behave('swallow')
    await choose(app, 'plaintext')
    await vi.waitFor(() => expect(node.swallowed()).toBeGreaterThan(0), { timeout: 10_000 })
    node.behave('hang')
    expect((await app.store('open', [{ id: 'b' }])).status).toBe(200)
    await new Promise((resolve) => setTimeout(resolve, 1_500))
    node.behave('honest')
    await awaitPublished(app)
    const rows = await service.database.query<{ attempt: number }>(
      sql`SELECT attempt FROM operations.publication WHERE app = ${app.appId}`,
    )
    expect(rows.every(({ attempt }) => attempt === 0)).toBe(true)
  }, 60_000)

  test('blocks wait while gas costs more than the operator pays', async () => {
    const app = await createData(service)
    await app.publish('open', [{ id: 'a' }])
    const setFee = async (wei: bigint) => {
      await chain.call('anvil_setNextBlockBaseFeePerGas', `0x${wei.toString(16)}`)
      await chain.call('anvil_mine', '0x1')
    }
    await setFee(90_000_000_000n)
    const before = await chain.call('eth_getTransactionCount', signer, 'latest')
    await choose(app, 'plaintext')
    service.world.advance(5_000)
    await new Promise((resolve) => setTimeout(resolve, 2_500))
    expect(await chain.call('eth_getTransactionCount', signer, 'latest')).toBe(before)
    await setFee(1_000_000_000n)
    await awaitPublished(app)
  }, 60_000)

  test('what is made private while it waits is not published', async () => {
    const app = await createData(service)
    await app.publish('open', [{ id: 'a', planted }])
    node.behave('refuse')
    await choose(app, 'plaintext')
    const path = `/api/apps/${app.appId}/collections/open`
    await new Promise((resolve) => setTimeout(resolve, 1_500))
    const changed = await service.request('PUT', path, {
      headers: app.headers,
      body: { access_policy: 'private' },
    })
    expect(changed.status, changed.text).toBe(200)
    node.behave('honest')
    await awaitPublished(app)
    const { key, height } = await readCheckpoint(app)
    const { report, text } = await recover(chain.url, key)
    expect(report).toMatchObject({ blocks: height, hidden: 1 })
    expect(text).not.toContain(planted)
  }, 60_000)

  test('what is final is forgotten but for the last, and never sent again, though the node has lost it', async () => {
    const app = await createData(service)
    await app.publish('open', [{ id: 'a' }])
    await choose(app, 'plaintext')
    await awaitPublished(app)
    await app.store('open', [{ id: 'b' }])
    await awaitPublished(app)
    const read = () =>
      service.database.query<{ state: string }>(
        sql`SELECT state FROM operations.publication WHERE app = ${app.appId}`,
      )
    await chain.call('anvil_mine', '0x50')
    await vi.waitFor(
      async () => {
        service.world.advance(31_000)
        expect(await read()).toEqual([{ state: 'final' }])
      },
      { timeout: 15_000, interval: 200 },
    )
    const id = `publish:eip155:31337:${app.appId}:%`
    await vi.waitFor(async () => {
      const journaled = await service.database.query(
        sql`SELECT id FROM operations.transaction_journal WHERE id LIKE ${id}`,
      )
      expect(journaled).toEqual([])
    })
    node.behave('forget')
    const before = await chain.call('eth_getTransactionCount', signer, 'latest')
    for (let n = 0; n < 5; n++) {
      service.world.advance(31_000)
      await new Promise((resolve) => setTimeout(resolve, 300))
    }
    expect(await chain.call('eth_getTransactionCount', signer, 'latest')).toBe(before)
    expect(await read()).toEqual([{ state: 'final' }])
    node.behave('honest')
    const { key, height, root } = await readCheckpoint(app)
    expect((await recover(chain.url, key)).report).toMatchObject({ blocks: height, root })
  }, 60_000)

  test('what a stranger publishes in its name changes nothing, and a node that lies is found out', async () => {
    const app = await createData(service)
    await app.publish('open', [{ id: 'a' }])
    await choose(app, 'plaintext')
    await awaitPublished(app)
    const { key, height, root } = await readCheckpoint(app)
    const count = Number(await chain.call('eth_blockNumber'))
    const { transactions } = await chain.call(
      'eth_getBlockByNumber',
      `0x${count.toString(16)}`,
      true,
    )
    const [{ to, input }] = transactions
    const stranger = `0x${'57'.repeat(20)}`
    await chain.call('anvil_impersonateAccount', stranger)
    await chain.call('anvil_setBalance', stranger, '0xde0b6b3a7640000')
    const changed = [input, `${input.slice(0, -8)}deadbeef`, input.slice(0, 300), `${input}00`]
    for (const data of changed)
      await chain.call('eth_sendTransaction', { from: stranger, to, data, gas: '0x4c4b40' })
    expect((await recover(chain.url, key)).report).toMatchObject({
      equal: true,
      blocks: height,
      root,
    })
    const other = await createData(service)
    await other.store('x', [{ id: 'a' }])
    const { key: wrong } = await readCheckpoint(other)
    expect((await recover(chain.url, wrong)).report).toMatchObject({ blocks: 0 })
    expect((await recover('http://127.0.0.1:1', key)).code).toBe(2)
    node.behave('forge')
    expect((await recover(node.url, key)).report).toMatchObject({ equal: true, blocks: 0 })
    node.behave('withhold')
    expect((await recover(node.url, key)).report).toMatchObject({ equal: true, blocks: 0 })
    node.behave('refuse')
    expect((await recover(node.url, key)).code).toBe(2)
    node.behave('honest')
    expect((await recover(node.url, key)).report).toMatchObject({ blocks: height, root })
  }, 60_000)
})

test('no more bytes are sent in a day than the operator says; the rest follows on the next, and holds up no smaller chunk of another application', async () => {
  const chain = await startOuterChain()
  const config = makeConfig(chain.url, { bytes_per_day: 131_072 })
  const service = await startTestService({ config })
  try {
    await chain.call('anvil_setBalance', signer, '0xde0b6b3a7640000')
    const count = async () => Number(await chain.call('eth_getTransactionCount', signer, 'latest'))
    const small = await createData(service)
    await small.publish('open', [{ id: 'a' }])
    await small.call('PATCH', '', { publish: 'plaintext' })
    // The contract's making, and one chunk.
    await vi.waitFor(async () => expect(await count()).toBe(2), { timeout: 15_000 })
    const app = await createData(service)
    const long = Array.from({ length: 300 }, (_, n) => ({
      id: `r${n}`,
      text: Buffer.from(crypto.getRandomValues(new Uint8Array(600))).toString('base64'),
    }))
    await app.publish('open', long)
    await app.call('PATCH', '', { publish: 'plaintext' })
    // One chunk of the two.
    await vi.waitFor(async () => expect(await count()).toBe(3), { timeout: 15_000 })
    await small.store('open', [{ id: 'b' }])
    await vi.waitFor(async () => expect(await count()).toBe(4), { timeout: 15_000 })
    await new Promise((resolve) => setTimeout(resolve, 1_500))
    expect(await count()).toBe(4)
    service.world.advance(86_400_000)
    await vi.waitFor(async () => expect(await count()).toBe(5), { timeout: 15_000 })
    const { key, height } = (await app.call('GET', '/chain/checkpoint')).body
    expect((await recover(chain.url, key)).report.blocks).toBeGreaterThan(0)
    expect(height).toBeGreaterThan(0)
  } finally {
    await service.close()
    await chain.stop()
  }
}, 60_000)

test('a chunk for whose gas the key has too little holds up no other application: what can be paid for is published', async () => {
  const chain = await startOuterChain()
  const service = await startTestService({ config: makeConfig(chain.url) })
  const awaitHeight = async (app: Data) => {
    const { height } = (await app.call('GET', '/chain/checkpoint')).body
    const read = async () => (await app.call('GET', '')).body.publish.chains[0]?.height
    await vi.waitFor(async () => expect(await read()).toBeGreaterThanOrEqual(height), {
      ...{ timeout: 30_000, interval: 200 },
    })
  }
  try {
    await chain.call('anvil_setBalance', signer, '0xde0b6b3a7640000')
    const small = await createData(service)
    await small.publish('open', [{ id: 'a' }])
    await small.call('PATCH', '', { publish: 'plaintext' })
    await awaitHeight(small)
    // Enough for five small chunks at the highest fee that is offered, and for none of 120,000 bytes.
    const { baseFeePerGas } = await chain.call('eth_getBlockByNumber', 'latest', false)
    const wei = 5n * 1_000_000n * (4n * BigInt(baseFeePerGas) + 2_000_000_000n)
    await chain.call('anvil_setBalance', signer, `0x${wei.toString(16)}`)
    // The balance is remembered for five seconds.
    service.world.advance(5_001)
    const large = await createData(service)
    const text = () => Buffer.from(crypto.getRandomValues(new Uint8Array(600))).toString('base64')
    await large.publish(
      'open',
      Array.from({ length: 300 }, (_, n) => ({ id: `r${n}`, text: text() })),
    )
    await large.call('PATCH', '', { publish: 'plaintext' })
    await vi.waitFor(async () => {
      const rows = await service.database.query(
        sql`SELECT app FROM operations.publication WHERE app = ${large.appId} AND state = 'waiting'`,
      )
      expect(rows.length).toBeGreaterThan(0)
    })
    // It has sent nothing today, so its turn comes before that of the other.
    await small.store('open', [{ id: 'b' }])
    await awaitHeight(small)
    expect((await large.call('GET', '')).body.publish.chains[0]?.height ?? 0).toBe(0)
    await chain.call('anvil_setBalance', signer, '0xde0b6b3a7640000')
    await awaitHeight(large)
  } finally {
    await service.close()
    await chain.stop()
  }
}, 90_000)
