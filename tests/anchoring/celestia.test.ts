import { mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type LoopbackNode, startLoopbackNode } from '@tollbase/testing/celestia/node'
import { decodeBase64, encodeBase64 } from '@tollbase/verify/bytes'
import { deriveNamespace } from '@tollbase/verify/celestia/namespace'
import { verifyDocument } from '@tollbase/verify/verify'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { runCommand } from '../../packages/cli/src/commands.ts'
import { sql } from '../../packages/server/src/database/sql.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { rebuild } from '../../packages/server/src/operator/rebuild.ts'
import { createOpenData, readChain } from '../support/chains.ts'
import { createData, type Data } from '../support/data.ts'
import { type Json, startTestService, type TestService } from '../support/service.ts'
import { readAnchoredProof, writeTemporary } from './place.ts'

const network = 'cosmos:private'
const token = 'token-for-tests'
const planted = 'planted-secret-51c7'
const quiet = () => undefined

function makeSettings(url: string) {
  return {
    network,
    rpc_url: url,
    token_file: writeTemporary('token', `${token}\n`),
    gas_price_utia_max: 0.02,
    interval_seconds: 1,
  }
}

async function run(...args: string[]) {
  const said: string[] = []
  vi.spyOn(console, 'error').mockImplementation((text) => said.push(String(text)))
  vi.spyOn(console, 'log').mockImplementation((text) => said.push(String(text)))
  const code = await runCommand(args)
  vi.restoreAllMocks()
  return { code, said: said.join('\n') }
}

afterEach(() => vi.restoreAllMocks())

/** Yields the document with one leaf of its values changed at a time. */
function* change(value: Json, put: (changed: Json) => Json = (one) => one): Generator<Json> {
  if (typeof value === 'object' && value !== null) {
    for (const name of Object.keys(value)) {
      const rest = Array.isArray(value) ? [...value] : { ...value }
      yield* change(value[name], (changed) => put(Object.assign(rest, { [name]: changed })))
      Object.assign(rest, { [name]: value[name] })
    }
  } else if (typeof value === 'number') yield put(value + 1)
  else if (typeof value === 'boolean') yield put(!value)
  else if (typeof value === 'string') {
    const at = Math.floor(value.length / 2)
    const other = value[at] === '1' ? '2' : '1'
    yield put(value.slice(0, at) + other + value.slice(at + 1))
  }
}

describe('anchors on Celestia', () => {
  let node: LoopbackNode
  let service: TestService
  let app: Data
  beforeAll(async () => {
    node = await startLoopbackNode({ token })
    service = await startTestService({ config: { anchors: [makeSettings(node.url)] } })
    app = await createOpenData(service)
  })
  afterAll(async () => {
    await service?.close()
    await node?.stop()
  })

  const store = async (key: string): Promise<string> =>
    (await app.store('notes', [{ id: key }])).body.ticket_id
  const save = (document: object) => writeTemporary('proof.json', JSON.stringify(document))
  const readKey = async () => (await readChain(service, app, '/checkpoint')).key
  const tokenFile = writeTemporary('token', token)

  test('the proof of a record ends at a block, is checked offline, and no change of it passes', async () => {
    const ticket = await store('a')
    const proof = await readAnchoredProof(service, app, 'a')
    const trustedKey = await readKey()
    const verdict = verifyDocument(JSON.stringify(proof), { trustedKey })
    expect(verdict.checks.filter(({ ok }) => !ok)).toEqual([])
    expect(verdict.unchecked).toMatchObject([
      { name: 'anchor', detail: expect.stringContaining('validators') },
    ])
    const block = node.blocks()[proof.anchor.block_number - 1]
    expect(proof.anchor).toMatchObject({ network, block_hash: block?.hash })
    const { anchor } = (await service.request('GET', `/task/${ticket}`)).body
    const { transaction, block_number, block_hash, time } = proof.anchor
    expect(anchor).toEqual({ network, transaction, block_number, block_hash, time })
    let changes = 0
    for (const [name, member] of Object.entries<Json>(proof.anchor)) {
      // Nothing leads from a blob to its transaction.
      if (name === 'transaction') continue
      for (const changed of change(member)) {
        const forged = { ...proof, anchor: { ...proof.anchor, [name]: changed } }
        const { ok } = verifyDocument(JSON.stringify(forged), { trustedKey })
        expect(ok, `${name}: ${JSON.stringify(changed).slice(0, 200)}`).toBe(false)
        changes += 1
      }
    }
    expect(changes).toBeGreaterThan(30)
  })

  test('the note in the blob is signed, so whoever reads the namespace knows whose it is', async () => {
    await store('note')
    const { anchor } = await readAnchoredProof(service, app, 'note')
    const { blobs } = node.blocks()[anchor.block_number - 1]?.square ?? { blobs: [] }
    expect(blobs.map(({ data }) => Buffer.from(data).toString())).toContain(anchor.note)
    const { receipt_public_key: key, anchors } = (
      await service.request('GET', '/.well-known/tollbase')
    ).body
    expect(anchors).toEqual([
      {
        ...{ network, interval_seconds: 1, origin: expect.stringMatching(/\/system$/) },
        namespace: encodeBase64(deriveNamespace('system')),
      },
    ])
    expect((await run('verify', writeTemporary('note', anchor.note), '--key', key)).code).toBe(0)
  })

  test('verify takes the hash of a header that is trusted, or asks a node, and believes no other one', async () => {
    await store('b')
    const proof = await readAnchoredProof(service, app, 'b')
    const args = ['verify', save(proof), '--key', await readKey()]
    expect(await run(...args)).toMatchObject({
      code: 0,
      said: expect.stringContaining('anchor, unchecked'),
    })
    const { block_hash: hash } = proof.anchor
    const trusted = await run(...args, '--header-hash', hash.toLowerCase())
    expect(trusted).toMatchObject({
      code: 0,
      said: expect.stringContaining('the hash that is trusted'),
    })
    expect(trusted.said).not.toContain('unchecked')
    expect((await run(...args, '--header-hash', '0'.repeat(64))).code).toBe(1)
    expect((await run(...args, '--header-hash', 'abc')).code).toBe(2)
    const asked = await run(...args, '--rpc', node.url, '--token-file', tokenFile)
    expect(asked).toMatchObject({
      code: 0,
      said: expect.stringContaining('anchor on its chain: block'),
    })
    expect(await run(...args, '--rpc', node.url)).toMatchObject({
      code: 2,
      said: expect.stringContaining('missing permission'),
    })
    const [other, twin] = [await startLoopbackNode({ chainId: 'other' }), await startLoopbackNode()]
    try {
      other.mine(proof.anchor.block_number)
      twin.mine(proof.anchor.block_number)
      expect(await run(...args, '--rpc', other.url)).toMatchObject({
        code: 1,
        said: expect.stringContaining('serves chain other'),
      })
      expect(await run(...args, '--rpc', twin.url)).toMatchObject({
        code: 1,
        said: expect.stringContaining('has the hash'),
      })
    } finally {
      await other.stop()
      await twin.stop()
    }
    expect((await run(...args, '--rpc', 'http://127.0.0.1:1')).code).toBe(2)
    const { anchor: _, ...bare } = proof
    const none = await run('verify', save(bare), '--key', await readKey(), '--header-hash', hash)
    expect(none).toMatchObject({ code: 1, said: expect.stringContaining('no anchor on Celestia') })
  })

  test('the proof stays when the node has forgotten the block', async () => {
    await store('c')
    const before = await readAnchoredProof(service, app, 'c')
    node.mine(10)
    node.prune(node.blocks().length - 1)
    const after = await readAnchoredProof(service, app, 'c')
    expect(after.anchor).toEqual(before.anchor)
    const { ok } = verifyDocument(JSON.stringify(after), { trustedKey: await readKey() })
    expect(ok).toBe(true)
  })

  test('anchors are listed, page by page, each once', async () => {
    const all: Json[] = []
    for (let cursor = ''; ; ) {
      const { body } = await service.request(
        'GET',
        `/api/apps/system/chain/anchors?limit=1${cursor}`,
      )
      all.push(...body.anchors)
      if (body.next_cursor === null) break
      cursor = `&cursor=${body.next_cursor}`
    }
    expect(all.length).toBeGreaterThan(1)
    expect(new Set(all.map(({ commitment }) => commitment)).size).toBe(all.length)
    expect(all[0]).toMatchObject({ network, transaction: expect.stringMatching(/^[0-9A-F]{64}$/) })
    expect(all[0].proof).toBeUndefined()
  })

  test('a node that is away, busy, poor or slow to answer stops nothing, and an anchor follows that covers all', async () => {
    const behaviours = ['busy', 'poor', 'mute', 'forging', 'boasting', 'vain-mute', 'hang'] as const
    for (const behaviour of behaviours) {
      node.behave(behaviour)
      expect((await app.store('notes', [{ id: behaviour }])).status).toBe(200)
      expect((await service.request('GET', '/ready')).status).toBe(200)
      service.world.advance(31_000)
      await new Promise((resolve) => setTimeout(resolve, 1_200))
    }
    node.behave('honest')
    await vi.waitFor(
      async () => {
        service.world.advance(31_000)
        expect(await readAnchoredProof(service, app, 'hang')).toBeDefined()
      },
      { timeout: 60_000, interval: 300 },
    )
  }, 120_000)

  test('audit checks the blob of each anchor, and a rebuild makes the same table', async () => {
    await store('d')
    await readAnchoredProof(service, app, 'd')
    await service.whileStopped(async (config) => {
      const { database } = service
      expect((await audit(config, quiet)).difference).toBeUndefined()
      for (const harm of [
        sql`UPDATE system.anchor SET body = replace(body, '"app_hash":"', '"app_hash":"AB')`,
        sql`UPDATE system.anchor SET body = replace(body, '"size":', '"size":1')`,
        sql`DELETE FROM system.anchor`,
      ]) {
        await database.execute(harm)
        expect((await audit(config, quiet)).equal).toBe(false)
        expect(await rebuild(config, quiet)).toMatchObject({ equal: true })
      }
      expect(await audit(config, quiet)).toMatchObject({ equal: true })
    })
    await store('e')
    await readAnchoredProof(service, app, 'e')
  })
})

describe('an application that is published on Celestia', () => {
  let node: LoopbackNode
  let service: TestService
  beforeAll(async () => {
    node = await startLoopbackNode({ token })
    const settings = { ...makeSettings(node.url), interval_seconds: 0.1, bytes_per_day: 1e9 }
    service = await startTestService({ config: { publishers: [settings] } })
  })
  afterAll(async () => {
    await service?.close()
    await node?.stop()
  })

  const choose = (app: Data, publish: string) => app.call('PATCH', '', { publish })
  const readCheckpoint = async (app: Data): Promise<Json> =>
    (await app.call('GET', '/chain/checkpoint')).body

  async function awaitPublished(app: Data): Promise<void> {
    const { height } = await readCheckpoint(app)
    await vi.waitFor(
      async () => {
        service.world.advance(5_000)
        const [chain] = (await app.call('GET', '')).body.publish.chains
        expect(chain?.network).toBe(network)
        expect(chain.height).toBeGreaterThanOrEqual(height)
      },
      { timeout: 60_000, interval: 200 },
    )
  }

  async function recover(key: string, ...more: string[]) {
    const to = mkdtempSync(join(tmpdir(), 'tollbase-recovered-'))
    const flags = [
      '--celestia',
      node.url,
      '--token-file',
      writeTemporary('token', token),
      '--key',
      key,
      '--to',
      to,
    ]
    const { code, said } = await run('recover', '--json', ...flags, ...more)
    const text = code === 2 ? '' : readFileSync(join(to, 'log.ndjson'), 'utf8')
    return { code, report: JSON.parse(said), text }
  }

  /** Lists all blobs that the chain has of an application. */
  const listBlobs = (app: Data) =>
    node
      .blocks()
      .flatMap(({ square }) =>
        square.blobs.filter(
          ({ namespace }) => Buffer.compare(namespace, deriveNamespace(app.appId)) === 0,
        ),
      )

  test('who has a node and the key alone builds up the whole log, and finds its root; what is private is not there', async () => {
    const app = await createData(service)
    await app.create({ name: 'private', access_policy: 'private' })
    await app.store('private', [{ id: 'a', planted }])
    await app.publish('open', [{ id: 'a', n: 1 }])
    expect((await choose(app, 'plaintext')).status).toBe(200)
    const long = Array.from({ length: 1_500 }, (_, n) => ({
      id: `r${n}`,
      text: Buffer.from(crypto.getRandomValues(new Uint8Array(750))).toString('base64'),
    }))
    await app.store('open', long)
    await awaitPublished(app)
    const { key, height, size, root } = await readCheckpoint(app)
    const { code, report, text } = await recover(key)
    expect(code).toBe(0)
    expect(report).toMatchObject({ equal: true, blocks: height, entries: size, hidden: 1, root })
    expect(text).toContain(long[1_499]?.text)
    expect(text).not.toContain(planted)
    const blobs = listBlobs(app)
    expect(blobs.length).toBeGreaterThan(1)
    expect(new Set(blobs.map(({ commitment }) => encodeBase64(commitment))).size).toBe(blobs.length)
    for (const { data } of blobs) expect(Buffer.from(data).includes(planted)).toBe(false)
    const { publishers } = (await service.request('GET', '/.well-known/tollbase')).body
    expect(publishers).toEqual([{ network }])
  }, 120_000)

  test('what strangers write into the namespace changes nothing', async () => {
    const app = await createData(service)
    await app.publish('open', [{ id: 'a' }])
    await choose(app, 'plaintext')
    await awaitPublished(app)
    const { key, height, root } = await readCheckpoint(app)
    const namespace = deriveNamespace(app.appId)
    const [own] = listBlobs(app)
    if (own === undefined) throw new Error('there is a blob')
    const spoil = (at: number) => own.data.map((byte, of) => (of === at ? byte ^ 1 : byte))
    node.mine(
      1,
      [
        ...[
          own.data,
          spoil(0),
          spoil(5),
          spoil(30),
          spoil(own.data.length - 1),
          own.data.slice(0, 40),
        ],
        ...[new Uint8Array(1), new Uint8Array(5_000).fill(255), Buffer.from('tbc1\xff\xff')],
      ].map((data) => ({ namespace, data })),
    )
    expect((await recover(key)).report).toMatchObject({ equal: true, blocks: height, root })
    const other = await createData(service)
    await other.store('x', [{ id: 'a' }])
    expect((await recover((await readCheckpoint(other)).key)).report).toMatchObject({ blocks: 0 })
  }, 60_000)

  test('an answer that is lost, a block that comes late, and a node that is away end with each chunk once', async () => {
    const app = await createData(service)
    await app.publish('open', [{ id: 'a' }])
    await choose(app, 'plaintext')
    const behaviours = [
      ...(['mute', 'tardy', 'poor', 'busy', 'plain', 'misplacing', 'boasting'] as const),
      ...(['heightless', 'internal', 'limited', 'garbling', 'vain-mute'] as const),
    ]
    for (const behaviour of behaviours) {
      node.behave(behaviour)
      expect((await app.store('open', [{ id: behaviour }])).status).toBe(200)
      service.world.advance(31_000)
      await new Promise((resolve) => setTimeout(resolve, 800))
      node.behave('honest')
      await awaitPublished(app)
    }
    const blobs = listBlobs(app).map(({ commitment }) => encodeBase64(commitment))
    expect(new Set(blobs).size).toBe(blobs.length)
    const { key, height, root } = await readCheckpoint(app)
    expect((await recover(key)).report).toMatchObject({ equal: true, blocks: height, root })
    const rows = await service.database.query<{ state: string; attempt: number }>(
      sql`SELECT state, attempt FROM operations.publication WHERE app = ${app.appId}`,
    )
    expect(rows.every(({ attempt }) => attempt === 0)).toBe(true)
    const kept = await service.database.query<{ proof: string | null }>(
      sql`SELECT proof FROM operations.celestia_blob WHERE origin LIKE ${`%/${app.appId}`}`,
    )
    expect(kept).toHaveLength(blobs.length)
    expect(kept.every(({ proof }) => proof !== null)).toBe(true)
  }, 120_000)

  test('a chunk that no block ever had is sent again', async () => {
    const app = await createData(service)
    await app.publish('open', [{ id: 'a' }])
    node.behave('forgetful')
    await choose(app, 'plaintext')
    await vi.waitFor(
      async () => {
        service.world.advance(5_000)
        const lost = sql`SELECT id FROM operations.celestia_blob WHERE origin LIKE ${`%/${app.appId}`}`
        expect(await service.database.query(lost)).toHaveLength(1)
      },
      { timeout: 20_000, interval: 200 },
    )
    node.behave('honest')
    node.mine(150)
    await awaitPublished(app)
    const { key, height, root } = await readCheckpoint(app)
    expect((await recover(key)).report).toMatchObject({ equal: true, blocks: height, root })
    await service.whileStopped(async (config) => {
      const { database } = service
      expect((await audit(config, quiet)).difference).toBeUndefined()
      // The audit names tables that are not the service's, so the copy is none.
      const [copy] = await database.query<{ rows: string }>(
        sql`SELECT jsonb_agg(to_jsonb(one))::text AS rows FROM operations.celestia_blob AS one`,
      )
      for (const harm of [
        sql`root = 'x'`,
        sql`size = size + 1`,
        sql`origin = 'nobody/shop'`,
        sql`bytes = bytes + 1000`,
        sql`height = height + 1`,
        sql`commitment = sha256(commitment)`,
        sql`header = replace(header, '"data_hash":"', '"data_hash":"00')`,
        sql`proof = '{}'`,
        sql`proof = 'x'`,
      ]) {
        await database.execute(
          sql`UPDATE operations.celestia_blob SET ${harm} WHERE state = 'placed'`,
        )
        const { difference } = await audit(config, quiet)
        expect(difference).toMatchObject({ what: 'table operations.celestia_blob' })
        await database.execute(sql`DELETE FROM operations.celestia_blob`)
        await database.execute(sql`
          INSERT INTO operations.celestia_blob
          SELECT * FROM jsonb_populate_recordset(NULL::operations.celestia_blob, ${copy?.rows ?? ''}::jsonb)`)
      }
      expect(await audit(config, quiet)).toMatchObject({ equal: true })
    })
  }, 240_000)

  test('recover says what it cannot do: a node without old blocks, without the token, or away', async () => {
    const app = await createData(service)
    await app.publish('open', [{ id: 'a' }])
    await choose(app, 'plaintext')
    await awaitPublished(app)
    const { key, height } = await readCheckpoint(app)
    const [{ namespace } = { namespace: new Uint8Array(0) }] = listBlobs(app)
    const at = node
      .blocks()
      .find(({ square }) =>
        square.blobs.some((one) => Buffer.compare(one.namespace, namespace) === 0),
      )
    const from = String(at?.height)
    expect((await recover(key, '--from-block', from, '--to-block', from)).report).toMatchObject({
      blocks: height,
    })
    node.prune(Number(from) + 1)
    node.mine(3)
    expect(await recover(key, '--from-block', from)).toMatchObject({
      code: 2,
      report: { error: expect.stringContaining('archival') },
    })
    expect((await recover(key)).report).toMatchObject({ blocks: 0 })
    node.behave('busy')
    expect((await recover(key)).code).toBe(2)
    node.behave('honest')
    const flags = [
      'recover',
      '--key',
      key,
      '--to',
      mkdtempSync(join(tmpdir(), 'tollbase-recovered-')),
    ]
    for (const wrong of [
      [],
      ['--celestia', node.url, '--rpc', node.url],
      ['--celestia', node.url, '--to-block', 'x'],
      ['--celestia', 'nowhere'],
      ['--rpc', node.url, '--to-block', '7'],
    ])
      expect((await run(...flags, ...wrong)).code).toBe(2)
    expect(await run(...flags, '--celestia', node.url)).toMatchObject({
      code: 2,
      said: expect.stringContaining('missing permission'),
    })
  }, 60_000)
})

describe('the bytes of a day', () => {
  const limit = 20_000
  /** Nodes are believed eight times a day that the network refused a transaction. */
  const believedMax = 8
  let node: LoopbackNode
  let service: TestService
  beforeAll(async () => {
    node = await startLoopbackNode()
    const publisher = {
      ...{ network, rpc_url: node.url, interval_seconds: 0.1 },
      bytes_per_day: limit,
    }
    service = await startTestService({ config: { publishers: [publisher] } })
  })
  afterAll(async () => {
    await service?.close()
    await node?.stop()
  })

  test.each(['internal', 'limited', 'walled', 'choosy'] as const)(
    'bound what a node (%s) is given that takes each chunk and answers with an error',
    async (behaviour) => {
      const dayMs = 24 * 3_600_000
      service.world.advance(dayMs - (service.world.now() % dayMs))
      const app = await createData(service)
      node.behave(behaviour)
      const noise = Buffer.from(crypto.getRandomValues(new Uint8Array(6_000))).toString('base64')
      await app.publish('open', [{ id: 'a', noise }])
      await app.call('PATCH', '', { publish: 'plaintext' })
      const namespace = deriveNamespace(app.appId)
      const isOwn = (blob: { readonly namespace: Uint8Array }) =>
        Buffer.compare(blob.namespace, namespace) === 0
      for (let step = 0; step < 40; step += 1) {
        service.world.advance(16 * 60_000)
        await new Promise((resolve) => setTimeout(resolve, 150))
      }
      const taken = node.taken().filter(isOwn)
      const [chunk = 0] = taken.map(({ data }) => data.length)
      expect(chunk).toBeGreaterThan(6_000)
      const times = behaviour === 'choosy' ? 1 + believedMax : 1
      expect(taken).toHaveLength(times)
      const { height } = (await app.call('GET', '/chain/checkpoint')).body
      expect((await app.call('GET', '')).body.publish.chains).toMatchObject([{ height }])
    },
    60_000,
  )
})

test('a node that never answers holds up neither a write nor the end of the service', async () => {
  const node = await startLoopbackNode()
  const settings = { network, rpc_url: node.url, interval_seconds: 1 }
  const service = await startTestService({
    config: { anchors: [settings], publishers: [settings] },
  })
  try {
    node.behave('hang')
    const app = await createOpenData(service)
    expect((await app.store('notes', [{ id: 'a' }])).status).toBe(200)
    await new Promise((resolve) => setTimeout(resolve, 1_500))
    const end = vi.fn()
    const closing = service.running.close().then(end)
    await vi.waitFor(() => expect(end).toHaveBeenCalled(), { timeout: 8_000 })
    await closing
  } finally {
    await service.close().catch(() => undefined)
    await node.stop()
  }
}, 60_000)

test('a node of another chain, a token that cannot be read, and members of EVM chains are refused at start by name', async () => {
  const node = await startLoopbackNode()
  try {
    const right = { network, rpc_url: node.url }
    const start = (anchors: Json) => startTestService({ config: { anchors: [anchors] } })
    await expect(start({ ...right, network: 'celestia' })).rejects.toThrow(
      /anchors\[0\]\.rpc_url: the node serves chain private, not celestia/,
    )
    await expect(start({ ...right, token_file: '/nowhere' })).rejects.toThrow(
      /anchors\[0\]\.token_file cannot be read/,
    )
    await expect(start({ ...right, token_file: writeTemporary('token', 'a b') })).rejects.toThrow(
      /must hold one token/,
    )
    await expect(start({ ...right, confirmations: 3 })).rejects.toThrow(
      /anchors\[0\]\.confirmations/,
    )
    await expect(
      start({ ...right, network: 'eip155:31337', gas_price_utia_max: 1 }),
    ).rejects.toThrow(/anchors\[0\]/)
    expect(decodeBase64(encodeBase64(deriveNamespace('system')))).toHaveLength(29)
  } finally {
    await node.stop()
  }
})
