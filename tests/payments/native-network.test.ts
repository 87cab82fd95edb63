import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Hex, parseAbi } from 'viem'
import { privateKeyToAddress } from 'viem/accounts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { noLog as log } from '../../packages/server/src/base/log.ts'
import type { Config } from '../../packages/server/src/config/config.ts'
import { type Devnet, startDevnet } from '../../packages/server/src/devnet/devnet.ts'
import { listOpenClaims } from '../../packages/server/src/services/payments/claims/claim-lists.ts'
import { sweepRound } from '../../packages/server/src/services/payments/settling/sweeper.ts'
import { type Asked, ask, list, type PaymentHeader, quote } from '../support/buyer.ts'
import {
  readAccounts as accountsOf,
  expectBalanced,
  openMarket,
  readEarnings,
} from '../support/market.ts'
import {
  connectChain,
  createFundedPayer,
  findNativeEntry,
  makeProof,
  type OnDevnet,
  pay,
} from '../support/payer.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { makeTestWorld } from '../support/test-world.ts'
import { makeDyingPayments, replacePayments } from './dying-payments.ts'

const folder = mkdtempSync(join(tmpdir(), 'tollbase-native-'))
const treasury: Hex = `0x${'7e'.repeat(20)}`
let devnet: Devnet
let node: Node
let service: TestService
let network: Config['networks'][number]

type Node = { readonly url: string; isAway: boolean; readonly close: () => Promise<unknown> }

/** The devnet's node behind a proxy that can be closed. */
async function startProxy(rpcUrl: string): Promise<Node> {
  const server: Server = createServer(async (request, reply) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    if (node.isAway) return void request.socket.destroy()
    const body = Buffer.concat(chunks)
    const answer = await fetch(rpcUrl, {
      method: 'POST',
      body,
      headers: { 'content-type': 'application/json' },
    })
    reply.end(await answer.text())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  const close = () => new Promise((resolve) => server.close(resolve))
  return { url: `http://127.0.0.1:${port}`, isAway: false, close }
}

beforeAll(async () => {
  devnet = await startDevnet({ dataDir: folder, world: makeTestWorld(), log })
  node = await startProxy(devnet.rpcUrl)
  const key = `0x${randomBytes(32).toString('hex')}` as const
  const chain = connectChain(devnet.rpcUrl)
  await chain.setBalance({ address: privateKeyToAddress(key), value: 10n ** 20n })
  const signer_key_file = join(folder, 'gas-key')
  writeFileSync(signer_key_file, key)
  network = {
    network: 'base-sepolia',
    pay_to: treasury,
    rpc_url: node.url,
    signer_key_file,
    confirmations: 2,
    native_transfers: true,
  }
  service = await startTestService({ config: { networks: [network] } })
})

afterAll(async () => {
  await service?.close()
  await node?.close()
  await devnet?.stop()
  rmSync(folder, { recursive: true, force: true })
})

const place = (): OnDevnet => ({ running: { devnet } })

async function scene() {
  const market = await openMarket(service, { price: { per_row: '1000' } })
  const payer = await createFundedPayer(place())
  return { market, payer, asked: list({ root: market.root, limit: 3 }) }
}

/** The selling process dies when it has claimed the payment and done nothing else. */
async function dieAfterClaim(asked: Asked, header: PaymentHeader): Promise<void> {
  const { payments } = service.running.service
  for (let step = 0; step < 10; step++) {
    const died = makeDyingPayments(payments.ports, { step, when: 'after' })
    replacePayments(service, died.payments)
    expect((await ask(service, asked, header)).status).toBeGreaterThan(399)
    replacePayments(service, payments)
    if (died.steps().at(-1) === 'INSERT claim') return
  }
  throw new Error('nothing was claimed')
}

const nextBlock = () => connectChain(devnet.rpcUrl).mine({ blocks: 1 })

test('a transfer counts once it is as deep as the configuration says, and the service waits for it', async () => {
  const { market, payer, asked } = await scene()
  const header = await pay(service, payer, asked)
  const reply = ask(service, asked, header)
  const early = await Promise.race([reply, new Promise((resolve) => setTimeout(resolve, 300))])
  expect(early).toBeUndefined()
  await nextBlock()
  const sold = await reply
  expect(sold.status, sold.text).toBe(200)
  expect(await readEarnings(service, market)).toBe(2400n)
})

test('P6: a node that cannot be reached is 503 and nothing is claimed; kept answers need no node', async () => {
  const { market, payer, asked } = await scene()
  const header = await pay(service, payer, asked)
  await nextBlock()
  node.isAway = true
  try {
    const away = await ask(service, asked, header)
    expect(away.status, away.text).toBe(503)
    expect(away.body.code).toBe('PAYMENT_NETWORK_UNREACHABLE')
    expect(Number(away.headers.get('retry-after'))).toBeGreaterThan(0)
  } finally {
    node.isAway = false
  }
  const sold = await ask(service, asked, header)
  expect(sold.status, sold.text).toBe(200)
  node.isAway = true
  try {
    const again = await ask(service, asked, header)
    expect(again.text).toBe(sold.text)
  } finally {
    node.isAway = false
  }
  expect(await readEarnings(service, market)).toBe(2400n)
  await expectBalanced(service)
})

test('P7: reconciliation books a claimed transfer whose request died, and its answer can be fetched', async () => {
  const { market, payer, asked } = await scene()
  const header = await pay(service, payer, asked)
  await nextBlock()
  await dieAfterClaim(asked, header)
  const { payments } = service.running.service
  const page = { olderThanMs: Date.now() + 60_000, after: { at: -1n, id: '' }, limit: 10 }
  const [claim] = await listOpenClaims(payments.ports.database, page)
  if (claim === undefined) throw new Error('nothing was claimed')
  node.isAway = true
  await payments.reconcile(claim)
  node.isAway = false
  expect(await listOpenClaims(payments.ports.database, page)).toHaveLength(1)
  await payments.reconcile(claim)
  expect(await listOpenClaims(payments.ports.database, page)).toMatchObject([{ state: 'held' }])
  const { body } = await service.request('GET', `/api/payments/${claim.id}`)
  expect(body).toMatchObject({ state: 'settled', payer: payer.address })
  expect((await ask(service, asked, header)).status).toBe(200)
  expect(await readEarnings(service, market)).toBe(2400n)
  await expectBalanced(service)
})

test('P12: a transfer that a reorganization took back is neither booked nor forgotten until it is back', async () => {
  const { market, payer, asked } = await scene()
  const chain = connectChain(devnet.rpcUrl)
  const { payTo, extra } = findNativeEntry(await quote(service, asked))
  const signed = await payer.sign({ to: payTo, value: 3000n })
  await signed.send()
  await payer.mined(signed.hash)
  const header = makeProof(extra.quoteId, signed.hash)
  await nextBlock()
  await dieAfterClaim(asked, header)
  await chain.request({ method: 'anvil_rollback' as never, params: [2] as never })
  const pending = await ask(service, asked, header)
  expect(pending.status).toBe(503)
  expect(pending.body.code).toBe('PAYMENT_PENDING')
  await signed.send().catch(() => undefined)
  await payer.mined(signed.hash)
  await nextBlock()
  const sold = await ask(service, asked, header)
  expect(sold.status, sold.text).toBe(200)
  expect(await readEarnings(service, market)).toBe(2400n)
  await expectBalanced(service)
})

test('transfers that came in are swept to the address of the configuration', async () => {
  const { payments, log: own } = service.running.service
  const chain = connectChain(devnet.rpcUrl)
  const abi = parseAbi(['function balanceOf(address) view returns (uint256)'])
  const token = { address: devnet.token as Hex, abi, functionName: 'balanceOf' } as const
  let isOver = false
  const round = sweepRound(payments.ports, own).finally(() => {
    isOver = true
  })
  while (!isOver) {
    await nextBlock()
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  expect(await round).toBeUndefined()
  const swept = await chain.readContract({ ...token, args: [treasury] })
  const accounts = await accountsOf(service)
  expect(swept).toBe(-(accounts.get('outside:eip155:84532') ?? 0n))
})

test('a service without native_transfers neither offers nor takes transfers; one with them needs a node', async () => {
  const { native_transfers: _, ...without } = network
  // Its key has settled for another database.
  const config = { networks: [without], afterRestore: true }
  const plain = await startTestService({ config })
  try {
    const market = await openMarket(plain, { price: { per_row: '1000' } })
    const asked = list({ root: market.root, limit: 3 })
    const required = await quote(plain, asked)
    expect(required.body.accepts).toHaveLength(1)
    const header = makeProof(required.body.accepts[0].extra.quoteId, `0x${'11'.repeat(32)}`)
    const reply = await ask(plain, asked, header)
    expect(reply.status).toBe(402)
    expect(reply.body.error).toMatch(/plain transfers are not accepted/)
  } finally {
    await plain.close()
  }
  const { rpc_url: __, ...nodeless } = network
  const remote = { networks: [{ ...nodeless, facilitator_url: 'http://127.0.0.1:9' }] }
  await expect(startTestService({ config: remote })).rejects.toThrow(
    'networks[0].native_transfers needs rpc_url',
  )
})
