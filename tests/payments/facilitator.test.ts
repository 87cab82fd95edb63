import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { noLog as log } from '../../packages/server/src/base/log.ts'
import { type Devnet, startDevnet } from '../../packages/server/src/devnet/devnet.ts'
import { openRpc } from '../../packages/server/src/x402/rpc.ts'
import {
  ask,
  type Buyer,
  list,
  makeBuyer,
  type PaymentHeader,
  quote,
  readBalance,
} from '../support/buyer.ts'
import {
  expectBalanced,
  openMarket,
  readEarnings,
  readTokens,
  setPrices,
} from '../support/market.ts'
import { connectChain } from '../support/payer.ts'
import { type Json, startTestService, type TestService } from '../support/service.ts'
import { makeTestWorld } from '../support/test-world.ts'
import {
  agrees,
  answer,
  type Behaviour,
  bait,
  makeExecutor,
  type RemoteFacilitator,
  says,
  startRemoteFacilitator,
} from './remote-facilitator.ts'

const folder = mkdtempSync(join(tmpdir(), 'tollbase-facilitator-'))
const makeHash = (digit: string) => `0x${digit.repeat(64)}`
let devnet: Devnet
let execute: (payment: Json) => Promise<string>

beforeAll(async () => {
  devnet = await startDevnet({ dataDir: folder, world: makeTestWorld(), log })
  execute = makeExecutor(devnet)
})

afterAll(async () => {
  await devnet?.stop()
  rmSync(folder, { recursive: true, force: true })
})

type Scene = { service: () => TestService; remote: () => RemoteFacilitator; scene: typeof scene }

/** Starts a service that settles through a remote facilitator, with or without a node of the chain to check it by. */
function withRemote(tests: (scene: Scene) => void, options: { node: boolean }): void {
  let service: TestService | undefined
  let remote: RemoteFacilitator | undefined
  beforeAll(async () => {
    remote = await startRemoteFacilitator()
    const network = {
      network: 'base-sepolia',
      pay_to: devnet.network.payTo,
      minimum_payment: 1,
      facilitator_url: remote.url,
      ...(options.node && { rpc_url: devnet.rpcUrl }),
    }
    service = await startTestService({ config: { networks: [network] } })
  })
  afterAll(async () => {
    await service?.close()
    await remote?.close()
  })
  const present = <T>(value: T | undefined): T => {
    if (value === undefined) throw new Error('the service did not start')
    return value
  }
  tests({ service: () => present(service), remote: () => present(remote), scene })
}

async function scene(service: TestService) {
  const market = await openMarket(service, { price: { per_row: '100' } })
  const buyer = makeBuyer()
  await devnet.faucet(buyer.address, 1_000_000n)
  const asked = list({ root: market.root, limit: 3 })
  const header = await buyer.payV2(await quote(service, asked))
  return { market, buyer, asked, header }
}

async function storeScene(service: TestService) {
  const market = await openMarket(service)
  await setPrices(service, market, [{ operation: 'write', model: 'per_record', amount: '1000' }])
  const buyer = makeBuyer()
  await devnet.faucet(buyer.address, 1_000_000n)
  const asked = {
    method: 'POST',
    path: '/store?wait=true',
    raw: JSON.stringify({ root: market.root, data: [{ id: 'new' }] }),
    headers: market.headers,
  }
  const required = await quote(service, asked)
  const header = await buyer.payV2(required)
  const foreign = await buyer.payV2(required, { accepted: { network: 'eip155:1' } })
  return { market, buyer, asked, header, foreign }
}

async function expectNothingBought(service: TestService, buyer: Buyer): Promise<void> {
  expect(await readBalance(service, buyer.address)).toBe(0n)
  await expectBalanced(service)
}

/** Reads what is held of a balance for requests that are under way, or may be sent again. */
async function readPending(service: TestService, address: string): Promise<bigint> {
  const { body } = await service.request('GET', `/api/wallets/${address}`)
  expect(body.available).toBe('0')
  return BigInt(body.pending)
}

function decoded(header: PaymentHeader): Json {
  return JSON.parse(Buffer.from(header['payment-signature'] ?? '', 'base64').toString())
}

/** Waits for the service's own reconciliation, which comes every few seconds. */
async function settledByItself(service: TestService, paymentId: string): Promise<void> {
  for (let tries = 0; tries < 200; tries++) {
    const { body } = await service.request('GET', `/api/payments/${paymentId}`)
    if (body.state === 'settled') return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error(`payment ${paymentId} was not reconciled`)
}

const unclear: readonly (readonly [string, Behaviour])[] = [
  ['answers 500', says({ error: 'sorry' }, 500)],
  ['answers 503', says({ success: true, transaction: makeHash('a') }, 503)],
  ['hangs up', (_, reply) => void reply.destroy()],
  ['answers garbage', (_, reply) => answer(reply, 'not JSON at all')],
  ['answers a list', (_, reply) => answer(reply, '[1]')],
  ['answers 10 MB', (_, reply) => answer(reply, `{"success":true,"x":"${'y'.repeat(1e7)}"}`)],
  ['answers an empty object', says({})],
  [
    'names another payer',
    says({ success: true, transaction: makeHash('b'), payer: makeHash('1').slice(0, 42) }),
  ],
  [
    'names another network',
    says({ success: true, transaction: makeHash('b'), network: 'eip155:1' }),
  ],
  ['names no transaction', says({ success: true, transaction: '' })],
  ...[302, 307].map(
    (status) =>
      [
        `redirects by ${status}`,
        (_: Json, reply: ServerResponse) => void reply.writeHead(status, { location: bait }).end(),
      ] as const,
  ),
  ['says it is pending', says({ success: false, errorReason: 'settlement_pending' })],
]

describe('a remote facilitator, checked by a node of the chain', () => {
  withRemote(
    ({ service, remote, scene }) => {
      test('an honest facilitator settles, and the buyer gets the answer', async () => {
        remote().settle = async (payment, reply) => {
          answer(reply, { success: true, transaction: await execute(payment) })
        }
        const { market, asked, header } = await scene(service())
        const reply = await ask(service(), asked, header)
        expect(reply.status, reply.text).toBe(200)
        expect(await readEarnings(service(), market)).toBe(240n)
      })

      test.each(unclear)(
        'P6, P13: a facilitator that %s gives no data and asks for no second payment: the payment is pending',
        async (_, behaviour) => {
          const { buyer, asked, header } = await scene(service())
          remote().settle = behaviour
          for (let tries = 0; tries < 2; tries++) {
            const reply = await ask(service(), asked, header)
            expect(reply.status, reply.text).toBe(503)
            expect(reply.body.code).toBe('PAYMENT_PENDING')
            expect(Number(reply.headers.get('retry-after'))).toBeGreaterThan(0)
            expect(reply.headers.get('cache-control')).toBe('no-store')
            const { payment_id } = reply.body.details
            const payment = await service().request('GET', `/api/payments/${payment_id}`)
            expect(payment.body).toMatchObject({ state: 'pending', transaction: null })
          }
          await expectNothingBought(service(), buyer)
        },
      )

      test('P13: a facilitator that lies about a settlement is not believed, though its transaction exists', async () => {
        const first = await scene(service())
        let real = ''
        remote().settle = async (payment, reply) => {
          real = await execute(payment)
          answer(reply, { success: true, transaction: real })
        }
        expect((await ask(service(), first.asked, first.header)).status).toBe(200)
        const second = await scene(service())
        remote().settle = says({ success: true, transaction: real })
        expect((await ask(service(), second.asked, second.header)).status).toBe(503)
        await expectNothingBought(service(), second.buyer)
      })

      test('A3: a facilitator that accepts an authorization used elsewhere sells nothing for it; the money is its payer’s', async () => {
        const { market, buyer, asked, header } = await scene(service())
        const used = await execute(decoded(header))
        const settlesBefore = remote().settles()
        remote().settle = says({ success: true, transaction: used })
        const reply = await ask(service(), asked, header)
        expect(reply.status, reply.text).toBe(402)
        expect(reply.body.error).toMatch(
          /used before .* 300 atomic units \(\$0\.0003\) are on the balance/,
        )
        expect((await ask(service(), asked, header)).status).toBe(409)
        expect(remote().settles()).toBe(settlesBefore)
        expect(await readBalance(service(), buyer.address)).toBe(300n)
        expect(await readEarnings(service(), market)).toBe(0n)
        await expectBalanced(service())
      })

      test('A3: a payment claimed here first and used by another is delivered, though its request was cut off', async () => {
        const { market, buyer, asked, header } = await scene(service())
        remote().settle = (_, reply) => void reply.destroy()
        expect((await ask(service(), asked, header)).body.code).toBe('PAYMENT_PENDING')
        await service().restart()
        await execute(decoded(header))
        await expect
          .poll(async () => (await ask(service(), asked, header)).status, { timeout: 10_000 })
          .toBe(200)
        expect(await readEarnings(service(), market)).toBe(240n)
        expect(await readBalance(service(), buyer.address)).toBe(0n)
      })

      test('P6: a facilitator that refuses leaves no data and no charge, and a later good try is served', async () => {
        const { market, buyer, asked, header } = await scene(service())
        remote().settle = says({ success: false, errorReason: 'insufficient_funds' })
        const refused = await ask(service(), asked, header)
        expect(refused.status).toBe(402)
        expect(refused.body.error).toMatch(/insufficient_funds/)
        await expectNothingBought(service(), buyer)
        remote().settle = async (payment, reply) => {
          answer(reply, { success: true, transaction: await execute(payment) })
        }
        expect((await ask(service(), asked, header)).status).toBe(200)
        expect(await readEarnings(service(), market)).toBe(240n)
      })

      test('P6: nobody is asked to pay 0: a store that became free is done, whatever became of the payment', async () => {
        const { market, buyer, asked, header, foreign } = await storeScene(service())
        remote().settle = says({ success: false, errorReason: 'insufficient_funds' })
        expect((await ask(service(), asked, header)).status).toBe(402)
        const rule = { operation: 'write', model: 'per_record', amount: '0' }
        await setPrices(service(), market, [rule])
        const settles = remote().settles()
        for (const payment of [header, foreign]) {
          const given = await ask(service(), asked, payment)
          expect(given.status, given.text).toBe(200)
          expect(given.headers.has('x-payment-response')).toBe(false)
        }
        expect(remote().settles()).toBe(settles)
        await expectNothingBought(service(), buyer)
      })

      test('P6: a facilitator that cannot be reached for a check costs nothing and claims nothing', async () => {
        const { asked, header } = await scene(service())
        remote().verify = says({ error: 'down' }, 502)
        try {
          const reply = await ask(service(), asked, header)
          expect(reply.status).toBe(503)
          expect(reply.body.code).toBe('PAYMENT_NETWORK_UNREACHABLE')
        } finally {
          remote().verify = agrees
        }
      })

      test('P6: the service itself finds money that arrived while the facilitator was silent, and it buys once', async () => {
        const { market, buyer, asked, header } = await scene(service())
        remote().settle = async (payment, reply) => {
          await execute(payment)
          reply.destroy()
        }
        const chain = service().running.service.tenants.system.chain
        const lost = await ask(service(), asked, header)
        expect(lost.status === 503 || lost.status === 200).toBe(true)
        remote().settle = says({ error: 'down' }, 500)
        if (lost.status === 503) {
          expect(lost.body.code).toBe('PAYMENT_PENDING')
          service().world.advance(11_000)
          await settledByItself(service(), lost.body.details.payment_id)
          expect(await readPending(service(), buyer.address)).toBe(300n)
        }
        const replies = await Promise.all([1, 2, 3].map(() => ask(service(), asked, header)))
        for (const reply of replies) expect(reply.status, reply.text).toBe(200)
        expect(await readBalance(service(), buyer.address)).toBe(0n)
        expect(await readEarnings(service(), market)).toBe(240n)
        expect(chain.failure).toBeUndefined()
        await expectBalanced(service())
      })
    },
    { node: true },
  )
})

describe('a remote facilitator without a node to check it by', () => {
  withRemote(
    ({ service, remote, scene }) => {
      test('P13: one transaction settles one payment, however many claim it at once', async () => {
        remote().settle = says({ success: true, transaction: makeHash('c') })
        const scenes = await Promise.all([1, 2, 3, 4].map(() => scene(service())))
        const replies = await Promise.all(
          scenes.map(({ asked, header }) => ask(service(), asked, header)),
        )
        expect(replies.filter(({ status }) => status === 200)).toHaveLength(1)
        for (const reply of replies.filter(({ status }) => status !== 200)) {
          expect(reply.status).toBe(409)
          expect(reply.body.records).toBeUndefined()
        }
        await expectBalanced(service())
      })

      test.each(unclear)(
        'P6, P13: a facilitator that %s leaves the payment pending',
        async (_, behaviour) => {
          const { buyer, asked, header } = await scene(service())
          remote().settle = behaviour
          const reply = await ask(service(), asked, header)
          expect(reply.status, reply.text).toBe(503)
          expect(reply.body.code).toBe('PAYMENT_PENDING')
          await expectNothingBought(service(), buyer)
        },
      )

      test('P6: the service asks for a pending payment again until the facilitator knows it, and then it buys', async () => {
        const { market, buyer, asked, header } = await scene(service())
        remote().settle = (_, reply) => void reply.destroy()
        const lost = await ask(service(), asked, header)
        expect(lost.body.code).toBe('PAYMENT_PENDING')
        remote().settle = ({ payload }, reply) =>
          answer(reply, { success: true, transaction: payload.authorization.nonce })
        service().world.advance(11_000)
        await settledByItself(service(), lost.body.details.payment_id)
        expect(await readPending(service(), buyer.address)).toBe(300n)
        expect((await ask(service(), asked, header)).status).toBe(200)
        expect(await readEarnings(service(), market)).toBe(240n)
      })

      test('P13: money that moved after the facilitator named another payment’s transaction is found by itself', async () => {
        const first = await scene(service())
        remote().settle = says({ success: true, transaction: makeHash('d') })
        expect((await ask(service(), first.asked, first.header)).status).toBe(200)
        const { buyer, asked, header } = await scene(service())
        expect((await ask(service(), asked, header)).body.code).toBe('PAYMENT_ALREADY_USED')
        remote().settle = ({ payload }, reply) =>
          answer(reply, { success: true, transaction: payload.authorization.nonce })
        // Past the end of the payment, and of the time until which blocks may be late.
        service().world.advance(15 * 60_000)
        await expect
          .poll(() => readBalance(service(), buyer.address), { timeout: 20_000 })
          .toBe(300n)
        await expectBalanced(service())
      })
    },
    { node: false },
  )
})

test('P12: a service with two confirmations delivers nothing before the second block', async () => {
  const signer = join(folder, 'signer')
  // The devnet's own key has settled for others already.
  const key = generatePrivateKey()
  const chain = connectChain(devnet.rpcUrl)
  await chain.setBalance({ address: privateKeyToAddress(key), value: 10n ** 20n })
  writeFileSync(signer, key)
  const network = {
    network: 'base-sepolia',
    pay_to: devnet.network.payTo,
    minimum_payment: 1,
    rpc_url: devnet.rpcUrl,
    signer_key_file: signer,
    confirmations: 2,
  }
  const service = await startTestService({ config: { networks: [network] } })
  const rpc = openRpc({ url: devnet.rpcUrl, world: makeTestWorld() })
  try {
    const { market, buyer, asked, header } = await scene(service)
    let answered = false
    const bought = ask(service, asked, header).finally(() => {
      answered = true
    })
    const left = () => readTokens(devnet, buyer.address)
    await expect.poll(left).toBe(1_000_000n - 300n)
    // The time covers two reads of the chain by the service.
    await new Promise((resolve) => setTimeout(resolve, 1_100))
    expect(answered).toBe(false)
    expect(await readEarnings(service, market)).toBe(0n)
    await rpc.call('evm_mine', [])
    const reply = await bought
    expect(reply.status, reply.text).toBe(200)
    expect(await readEarnings(service, market)).toBe(240n)
  } finally {
    rpc.close()
    await service.close()
  }
})
