import { createServer, type Socket } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { runCommand } from '../../packages/cli/src/commands.ts'
import { sql } from '../../packages/server/src/database/sql.ts'
import { auditOuterChain } from '../../packages/server/src/operator/audit/audit-outer-chain.ts'
import { deriveAddress } from '../../packages/server/src/x402/signature.ts'
import { createOpenData, readChain } from '../support/chains.ts'
import type { Data } from '../support/data.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { startFaultyNode } from './faulty-node.ts'
import { type OuterChain, readAnchoredProof, startOuterChain, writeTemporary } from './place.ts'

const keyHex = `0x${'5a'.repeat(32)}`
const signer = deriveAddress(Buffer.from(keyHex.slice(2), 'hex'))

function makeConfig(url: string) {
  return {
    anchors: [
      {
        network: 'eip155:31337',
        rpc_url: url,
        signer_key_file: writeTemporary('key', keyHex),
        interval_seconds: 1,
        confirmations: 1,
      },
    ],
  }
}

async function verify(...args: string[]) {
  const said: string[] = []
  vi.spyOn(console, 'error').mockImplementation((text) => said.push(String(text)))
  vi.spyOn(console, 'log').mockImplementation((text) => said.push(String(text)))
  return { code: await runCommand(['verify', ...args]), said: said.join('\n') }
}

afterEach(() => vi.restoreAllMocks())

describe('anchors on a chain that the operator names', () => {
  let chain: OuterChain
  let service: TestService
  let app: Data
  beforeAll(async () => {
    chain = await startOuterChain()
    service = await startTestService({ config: makeConfig(chain.url) })
    app = await createOpenData(service)
  })
  afterAll(async () => {
    await service?.close()
    await chain?.stop()
  })

  const store = (key: string) => app.store('notes', [{ id: key }])
  const save = (document: object) => writeTemporary('proof.json', JSON.stringify(document))
  const readKey = async () => (await readChain(service, app, '/checkpoint')).key

  test('a key without funds anchors nothing and stops nothing; funds start it, and the contract is made at the address that is the same everywhere', async () => {
    expect((await store('a')).status).toBe(200)
    await new Promise((resolve) => setTimeout(resolve, 2_500))
    const path = `/api/apps/${app.appId}/chain/anchors`
    expect((await service.request('GET', path)).body.anchors).toEqual([])
    await chain.call('anvil_setBalance', signer, '0xde0b6b3a7640000')
    const proof = await readAnchoredProof(service, app, 'a')
    const known = (await service.request('GET', '/.well-known/tollbase')).body.anchors
    expect(known).toMatchObject([{ network: 'eip155:31337', signer, interval_seconds: 1 }])
    expect(proof.anchor.contract).toBe(known[0].contract)
  })

  test('verify --rpc asks the chain, believes another one nothing, and says what it could not ask', async () => {
    await store('b')
    const proof = await readAnchoredProof(service, app, 'b')
    const key = await readKey()
    const args = [save(proof), '--key', key]
    expect(await verify(...args)).toMatchObject({
      code: 0,
      said: expect.stringContaining('anchor, unchecked'),
    })
    const asked = await verify(...args, '--rpc', chain.url)
    expect(asked.said).toContain('anchor on its chain: block')
    expect(asked).toMatchObject({ code: 0 })
    expect(asked.said).not.toContain('unchecked')
    const other = await startOuterChain({ chainId: 31338 })
    const twin = await startOuterChain({ genesisTime: 1_600_000_000 })
    try {
      const elsewhere = await verify(...args, '--rpc', other.url)
      expect(elsewhere).toMatchObject({
        code: 1,
        said: expect.stringContaining('serves chain 31338'),
      })
      const forgotten = await verify(...args, '--rpc', twin.url)
      expect(forgotten).toMatchObject({ code: 1, said: expect.stringContaining('no block has') })
    } finally {
      await other.stop()
      await twin.stop()
    }
    expect(await verify(...args, '--rpc', other.url)).toMatchObject({ code: 2 })
    const moved = { ...proof, anchor: { ...proof.anchor, time: '2020-01-01T00:00:00.000Z' } }
    const lied = await verify(save(moved), '--key', key, '--rpc', chain.url)
    expect(lied).toMatchObject({ code: 1, said: expect.stringContaining('ask for a new proof') })
    const { anchor: _, ...bare } = proof
    const none = await verify(save(bare), '--key', key, '--rpc', chain.url)
    expect(none).toMatchObject({ code: 2, said: expect.stringContaining('has no anchor') })
  })

  test('an anchor whose block is replaced is told anew where it is now', async () => {
    await store('c')
    const before = await readAnchoredProof(service, app, 'c')
    await chain.call('anvil_rollback', 1)
    await chain.call('anvil_mine', '0x3')
    service.world.advance(60_000)
    await vi.waitFor(
      async () => {
        const now = await readAnchoredProof(service, app, 'c')
        expect(now.anchor.block_hash).not.toBe(before.anchor.block_hash)
        const asked = await verify(save(now), '--key', await readKey(), '--rpc', chain.url)
        expect(asked).toMatchObject({ code: 0 })
      },
      { timeout: 40_000, interval: 500 },
    )
  })

  test('anchors that fail one after the other become rare, and begin again when they work', async () => {
    const { contract } = (await service.request('GET', '/.well-known/tollbase')).body.anchors[0]
    const code = await chain.call('eth_getCode', contract, 'latest')
    const count = async () => Number(await chain.call('eth_getTransactionCount', signer, 'latest'))
    const before = await count()
    await chain.call('anvil_setCode', contract, '0x5f5ffd')
    for (let at = 0; at < 16; at++) {
      await store(`failing-${at}`)
      await new Promise((resolve) => setTimeout(resolve, 500))
    }
    const failed = (await count()) - before
    expect(failed).toBeGreaterThan(0)
    expect(failed).toBeLessThan(6)
    await chain.call('anvil_setCode', contract, code)
    service.world.advance(3_600_000)
    const proof = await readAnchoredProof(service, app, 'failing-15')
    expect(await verify(save(proof), '--key', await readKey())).toMatchObject({ code: 0 })
  })

  test('audit --rpc finds every anchor on the chain, and a log that lacks one that is there', async () => {
    await service.whileStopped(async (config) => {
      const { database } = service
      expect(await auditOuterChain(config, chain.url)).toEqual({ equal: true })
      await database.execute(sql`CREATE TABLE public.kept AS SELECT * FROM system.block`)
      const [last] = await database.query<{ size: bigint }>(
        sql`SELECT max(size) AS size FROM system.anchor`,
      )
      await database.execute(
        sql`DELETE FROM system.block WHERE first_leaf + entry_count = ${last?.size ?? 0n}::int8`,
      )
      const cut = await auditOuterChain(config, chain.url)
      expect(cut.difference).toMatchObject({
        what: expect.stringContaining(`tree of ${last?.size}`),
      })
      await database.execute(
        sql`INSERT INTO system.block SELECT * FROM public.kept WHERE NOT height IN (SELECT height FROM system.block)`,
      )
      await database.execute(sql`DROP TABLE public.kept`)
      expect(await auditOuterChain(config, chain.url)).toEqual({ equal: true })
      const vain = await startFaultyNode(chain.url)
      vain.behave('vain')
      await expect(auditOuterChain(config, vain.url)).rejects.toThrow('which no chain has')
      await vain.stop()
    })
  })

  test('while the chain is away all else goes on, and another chain at its address gets nothing', async () => {
    await chain.stop()
    expect((await store('d')).status).toBe(200)
    const twin = await startOuterChain({ port: chain.port, genesisTime: 1_600_000_000 })
    try {
      await twin.call('anvil_setBalance', signer, '0xde0b6b3a7640000')
      service.world.advance(60_000)
      await new Promise((resolve) => setTimeout(resolve, 3_000))
      expect(await twin.call('eth_getTransactionCount', signer, 'latest')).toBe('0x0')
      await expect(service.restart()).rejects.toThrow(/begins with/)
    } finally {
      await twin.stop()
    }
  })
})

test('a node that never answers holds up neither a write nor the end of the service', async () => {
  const sockets = new Set<Socket>()
  const silent = createServer((socket) => sockets.add(socket))
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
  const address = silent.address()
  if (address === null || typeof address === 'string') throw new Error('there is a port')
  const quiet = await startTestService({ config: makeConfig(`http://127.0.0.1:${address.port}`) })
  try {
    const data = await createOpenData(quiet)
    expect((await data.store('notes', [{ id: 'a' }])).status).toBe(200)
    await vi.waitFor(() => expect(sockets.size).toBeGreaterThan(1), { timeout: 10_000 })
    const end = vi.fn()
    const closing = quiet.running.close().then(end)
    await vi.waitFor(() => expect(end).toHaveBeenCalled(), { timeout: 8_000 })
    await closing
  } finally {
    await quiet.close().catch(() => undefined)
    for (const socket of sockets) socket.destroy()
    silent.close()
  }
}, 60_000)

test('a chain of another id, and a key that sends already, are refused at start by name', async () => {
  const chain = await startOuterChain({ chainId: 31338 })
  try {
    const [one] = makeConfig(chain.url).anchors
    if (one === undefined) throw new Error('there is a configuration')
    await expect(startTestService({ config: { anchors: [one] } })).rejects.toThrow(
      /anchors\[0\]\.rpc_url: .* serves chain 31338/,
    )
    const right = { ...one, network: 'eip155:31338' }
    await expect(startTestService({ config: { anchors: [right, right] } })).rejects.toThrow(
      /sends anchors already/,
    )
  } finally {
    await chain.stop()
  }
})
