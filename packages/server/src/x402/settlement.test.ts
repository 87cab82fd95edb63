import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { x402Client, x402HTTPClient } from '@x402/core/client'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { ExactEvmSchemeV1 } from '@x402/evm/exact/v1/client'
import type { Hex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { noLog as log } from '../base/log.ts'
import { realWorld } from '../base/world.ts'
import { sql } from '../database/sql.ts'
import { createTestDatabase, type TestDatabase } from '../database/testing.ts'
import { type Devnet, startDevnet } from '../devnet/devnet.ts'
import { readBalance } from './authorization-use.ts'
import { checkChain, findTransactionReceipt, readTransactionCount } from './evm-chain.ts'
import { makeEvmFacilitator } from './evm-facilitator.ts'
import type { Facilitator } from './facilitator.ts'
import { Failures } from './failures.ts'
import { computeSelector, encodeHex, encodeHexWord, encodeQuantity, hashKeccak } from './hex.ts'
import { buildJointColumns, buildReplacementColumns, makeJournalTables } from './journal.ts'
import type { PaymentNetwork } from './networks.ts'
import { decodePayment, type PaymentHeaders } from './payment-header.ts'
import { buildPaymentRequired } from './payment-required.ts'
import type { Requirement, SignedPayment } from './protocol.ts'
import { openRpc, type Rpc } from './rpc.ts'
import { JournaledSender } from './sender.ts'
import { deriveAddress, digestTransfer, signDigest } from './signature.ts'
import { encodeTransferCall, transferGas } from './token.ts'
import { signTransaction } from './transaction.ts'

const world = realWorld
const folder = mkdtempSync(join(tmpdir(), 'tollbase-settlement-'))
let devnet: Devnet
let store: TestDatabase
let rpc: Rpc
let sender: JournaledSender
let facilitator: Facilitator
let network: PaymentNetwork

beforeAll(async () => {
  store = await createTestDatabase()
  await store.database.execute(sql`CREATE SCHEMA operations`)
  for (const table of [
    ...makeJournalTables(),
    ...buildReplacementColumns(),
    ...buildJointColumns(),
  ])
    await store.database.execute(table)
  devnet = await startDevnet({ dataDir: folder, world, log })
  network = devnet.network
  rpc = openRpc({ url: devnet.rpcUrl, world })
  sender = newSender(rpc)
  await sender.start()
  facilitator = newFacilitator(rpc, sender)
})

afterAll(async () => {
  await sender?.stop()
  rpc?.close()
  await devnet?.stop()
  await store?.drop()
  rmSync(folder, { recursive: true, force: true })
})

function newSender(by: Rpc, options: { leaseMs?: number; key?: Buffer } = {}): JournaledSender {
  const key = options.key ?? devnet.keys.gas
  return new JournaledSender({
    database: store.database,
    rpc: by,
    world,
    network,
    key,
    log,
    leaseMs: options.leaseMs ?? 2_000,
  })
}

function newFacilitator(by: Rpc, from: JournaledSender, settleTimeoutMs = 10_000): Facilitator {
  return makeEvmFacilitator({
    rpc: by,
    network,
    sender: from,
    world,
    log,
    pollMs: 4,
    settleTimeoutMs,
  })
}

function makeRequirement(amount: bigint, over: Partial<Requirement> = {}): Requirement {
  const expiresAt = Math.floor(world.now() / 1000) + 300
  return { network, amount, quoteId: 'q1.test', expiresAt, maxTimeoutSeconds: 60, ...over }
}

function decodeSigned(headers: PaymentHeaders): SignedPayment | undefined {
  const presented = decodePayment(headers)
  return presented && 'payload' in presented ? presented : undefined
}

type Change = Partial<SignedPayment['payload']> & { on?: PaymentNetwork }

function signedPayment(key: Buffer, amount: bigint, options: Change = {}): SignedPayment {
  const { on = network, ...change } = options
  const now = BigInt(Math.floor(world.now() / 1000))
  const fields = {
    from: deriveAddress(key),
    to: network.payTo,
    value: amount,
    validAfter: now - 60n,
    validBefore: now + 300n,
    nonce: encodeHex(world.randomBytes(32)),
    ...change,
  }
  const signature = signDigest(digestTransfer(on, fields), key)
  return {
    version: 1,
    network: network.id,
    scheme: 'exact',
    payload: { signature, ...fields },
    receiptForm: 'base64',
  }
}

async function newPayer(funds = 1_000_000n): Promise<Buffer> {
  const key = world.randomBytes(32)
  if (funds > 0n) await devnet.faucet(deriveAddress(key), funds)
  return key
}

const settlementId = () => `settle:${encodeHex(world.randomBytes(8))}`
const treasury = () => readBalance(rpc, network, network.payTo)

/** Anybody may hand a signed authorization to the token. */
async function submitElsewhere(data: string): Promise<string> {
  const key = world.randomBytes(32)
  await rpc.call('anvil_setBalance', [deriveAddress(key), encodeQuantity(10n ** 20n)])
  const { raw, hash } = signTransaction(
    {
      chainId: network.chainId,
      nonce: 0n,
      maxPriorityFeePerGas: 10n ** 9n,
      maxFeePerGas: 10n ** 11n,
      gas: transferGas,
      to: network.asset.address,
      data,
    },
    key,
  )
  await rpc.call('eth_sendRawTransaction', [encodeHex(raw)])
  while ((await findTransactionReceipt(rpc, hash)) === undefined) await world.sleep(5)
  return hash
}

describe('stock clients', () => {
  test('version 2 takes the header of a 402, and its payment settles', async () => {
    const key = await newPayer()
    const requirement = makeRequirement(1070n)
    const resource = { url: 'http://127.0.0.1/x', description: '', mimeType: 'application/json' }
    const offer = buildPaymentRequired({ resource, requirements: [requirement], error: 'pay' })
    const account = privateKeyToAccount(encodeHex(key) as Hex)
    const client = new x402HTTPClient(
      new x402Client().register('eip155:84532', new ExactEvmScheme(account)),
    )
    const required = client.getPaymentRequiredResponse(
      (name) => (name.toUpperCase() === 'PAYMENT-REQUIRED' ? offer.header : null),
      offer.body,
    )
    const headers = client.encodePaymentSignatureHeader(await client.createPaymentPayload(required))
    const payment = decodeSigned({ paymentSignature: headers['PAYMENT-SIGNATURE'] })
    expect(payment).toMatchObject({ version: 2, quoteId: 'q1.test' })
    expect(await facilitator.verify(payment!, requirement)).toEqual({ ok: true })
    const before = await treasury()
    expect(await facilitator.settle(settlementId(), payment!, requirement)).toMatchObject({
      state: 'settled',
      transaction: expect.stringMatching(/^0x[0-9a-f]{64}$/),
    })
    expect((await treasury()) - before).toBe(1070n)
  })

  test('version 1 takes the body of a 402, and its payment settles', async () => {
    const key = await newPayer()
    const requirement = makeRequirement(2000n)
    const resource = { url: 'http://127.0.0.1/x', description: '', mimeType: 'application/json' }
    const { body } = buildPaymentRequired({ resource, requirements: [requirement], error: 'pay' })
    const account = privateKeyToAccount(encodeHex(key) as Hex)
    const { payload } = await new ExactEvmSchemeV1(account).createPaymentPayload(
      1,
      body.accepts[0] as never,
    )
    const sent = { x402Version: 1, scheme: 'exact', network: 'base-sepolia', payload }
    const payment = decodeSigned({
      xPayment: Buffer.from(JSON.stringify(sent)).toString('base64'),
    })
    expect(await facilitator.verify(payment!, requirement)).toEqual({ ok: true })
    expect(await facilitator.settle(settlementId(), payment!, requirement)).toMatchObject({
      state: 'settled',
    })
  })
})

describe('refusals of verify', () => {
  test('verify refuses a payment that does not fit the requirement, naming the field', async () => {
    const key = await newPayer()
    const requirement = makeRequirement(500n)
    const good = signedPayment(key, 500n)
    const now = BigInt(Math.floor(world.now() / 1000))
    const other = `0x${'77'.repeat(20)}`
    const accepted = {
      scheme: 'exact',
      network: network.id,
      amount: 500n,
      asset: network.asset.address,
      payTo: network.payTo,
    }
    const refusals: [SignedPayment, string, string | undefined][] = [
      [{ ...good, network: 'eip155:8453' }, 'mismatch', 'network'],
      [signedPayment(key, 499n), 'mismatch', 'payload.authorization.value'],
      [signedPayment(key, 501n), 'mismatch', 'payload.authorization.value'],
      [signedPayment(key, 500n, { to: other }), 'mismatch', 'payload.authorization.to'],
      [{ ...good, accepted: { ...accepted, amount: 1n } }, 'mismatch', 'accepted.amount'],
      [{ ...good, accepted: { ...accepted, asset: other } }, 'mismatch', 'accepted.asset'],
      [{ ...good, accepted: { ...accepted, payTo: other } }, 'mismatch', 'accepted.payTo'],
      [signedPayment(devnet.keys.treasury, 500n), 'mismatch', 'payload.authorization.from'],
      [
        signedPayment(key, 500n, { validAfter: now + 60n }),
        'not_yet_valid',
        'payload.authorization.validAfter',
      ],
      [
        signedPayment(key, 500n, { validBefore: now + 4n }),
        'expired',
        'payload.authorization.validBefore',
      ],
      [
        signedPayment(key, 500n, { validBefore: now + 2n * 3600n + 60n }),
        'valid_too_long',
        'payload.authorization.validBefore',
      ],
      [
        signedPayment(key, 500n, { from: deriveAddress(await newPayer(0n)) }),
        'invalid_signature',
        'payload.signature',
      ],
      [
        signedPayment(key, 500n, { on: { ...network, chainId: 8453 } }),
        'invalid_signature',
        'payload.signature',
      ],
      [signedPayment(await newPayer(499n), 500n), 'insufficient_balance', undefined],
    ]
    for (const [payment, reason, field] of refusals) {
      const verdict = await facilitator.verify(payment, requirement)
      expect(verdict).toMatchObject({ ok: false, reason, ...(field ? { field } : {}) })
    }
    expect(await facilitator.verify(good, requirement)).toEqual({ ok: true })
  })

  test('verify refuses nothing because the chain has been idle for longer than the payment is old', async () => {
    const key = await newPayer()
    const now = BigInt(Math.floor(world.now() / 1000))
    await world.sleep(1500)
    const payment = signedPayment(key, 5n, { validAfter: now })
    expect(await facilitator.verify(payment, makeRequirement(5n))).toEqual({ ok: true })
  })
})

describe('movements of money', () => {
  test('the same settlement again, in parallel and later, is the same transaction', async () => {
    const payment = signedPayment(await newPayer(), 700n)
    const requirement = makeRequirement(700n)
    const id = settlementId()
    const before = await treasury()
    const all = await Promise.all(
      Array.from({ length: 10 }, () => facilitator.settle(id, payment, requirement)),
    )
    all.push(await facilitator.settle(id, payment, requirement))
    all.push(await facilitator.lookup(id, payment, requirement))
    expect(new Set(all.map((each) => JSON.stringify(each, show))).size).toBe(1)
    expect(all[0]?.state).toBe('settled')
    expect((await treasury()) - before).toBe(700n)
  })

  test('a payment that a third party handed in counts, with that transaction', async () => {
    const payment = signedPayment(await newPayer(), 800n)
    const requirement = makeRequirement(800n)
    const before = await treasury()
    const transaction = await submitElsewhere(encodeTransferCall(payment.payload))
    expect(await facilitator.verify(payment, requirement)).toMatchObject({
      ok: false,
      reason: 'authorization_used',
    })
    const settled = { state: 'settled', transaction }
    expect(await facilitator.lookup(settlementId(), payment, requirement)).toMatchObject(settled)
    expect(await facilitator.settle(settlementId(), payment, requirement)).toMatchObject(settled)
    expect((await treasury()) - before).toBe(800n)
  })

  test('a payment that the payer canceled fails, and for good once it is over: a reorganisation may bring it until then', async () => {
    const key = await newPayer()
    const now = BigInt(Math.floor(world.now() / 1000))
    for (const [validBefore, final] of [
      [now + 300n, false],
      [now - 100n, true],
    ] as const) {
      const payment = signedPayment(key, 900n, { validBefore })
      await submitElsewhere(cancelCall(key, payment))
      const failed = { state: 'failed', reason: 'authorization_canceled', final }
      const requirement = makeRequirement(900n)
      expect(await facilitator.settle(settlementId(), payment, requirement)).toMatchObject(failed)
      expect(await facilitator.lookup(settlementId(), payment, requirement)).toEqual(failed)
    }
  })

  test('a payment that is expired and unused fails for good, and one that is open and never sent does not', async () => {
    const key = await newPayer()
    const now = BigInt(Math.floor(world.now() / 1000))
    const late = signedPayment(key, 5n, { validBefore: now - 100n })
    expect(await facilitator.lookup(settlementId(), late, makeRequirement(5n))).toEqual({
      state: 'failed',
      reason: 'expired',
      final: true,
    })
    const open = signedPayment(key, 5n)
    expect(await facilitator.lookup(settlementId(), open, makeRequirement(5n))).toEqual({
      state: 'failed',
      reason: 'not_sent',
      final: false,
    })
  })

  test('a payment that is over by our clock alone is not given up: the chain may be late, and take it', async () => {
    const payer = await newPayer()
    const hour = { ...world, now: () => world.now() + 3_600_000 }
    const early = makeEvmFacilitator({ rpc, network, sender, world: hour, log, pollMs: 4 })
    const payment = signedPayment(payer, 6n)
    const [id, requirement] = [settlementId(), makeRequirement(6n)]
    const open = { state: 'failed', reason: 'not_sent', final: false }
    expect(await early.lookup(id, payment, requirement)).toEqual(open)
    await submitElsewhere(encodeTransferCall(payment.payload))
    expect(await early.lookup(id, payment, requirement)).toMatchObject({ state: 'settled' })
  })

  test('a payment that is over is not sent, whoever brings it once more: it would only cost gas', async () => {
    const payer = await newPayer()
    const id = settlementId()
    const now = BigInt(Math.floor(world.now() / 1000))
    const ended = signedPayment(payer, 7n, { validBefore: now - 1n })
    const failed = { state: 'failed', reason: 'expired', final: false }
    expect(await facilitator.settle(id, ended, makeRequirement(7n))).toEqual(failed)
    expect(await sender.find(id)).toBeUndefined()
  })

  test('a token that succeeds without a Transfer was not paid', async () => {
    const asset = { ...network.asset, address: `0x${'5a'.repeat(20)}` }
    // Returns the word 1 to every call and logs nothing.
    await rpc.call('anvil_setCode', [asset.address, '0x600160005260206000f3'])
    const liar = { ...network, asset }
    const payment = signedPayment(await newPayer(), 5n, { on: liar })
    const requirement = makeRequirement(5n, { network: liar })
    const failed = { state: 'failed', reason: 'no_transfer', final: true }
    const id = settlementId()
    expect(await facilitator.settle(id, payment, requirement)).toMatchObject(failed)
    expect(await facilitator.lookup(id, payment, requirement)).toMatchObject(failed)
  })
})

test('a payment that a wallet with code makes fail counts, also where its block was seen before it was deep enough', async () => {
  const failures = new Failures({ rpc, world })
  const ports = { rpc, network, sender, world, log, pollMs: 4 }
  const late = makeEvmFacilitator({
    ...ports,
    ...{ settleTimeoutMs: 0, confirmations: 1_000, failures },
  })
  const payer = await newPayer()
  const from = deriveAddress(payer)
  // Its signatures are good where they are simulated, and in no block.
  await rpc.call('anvil_setCode', [from, '0x3a15600657fe5b631626ba7e60e01b60005260206000f3'])
  for (const id of ['late 1', 'late 2', 'late 3']) {
    expect(failures.isOver(from)).toBe(false)
    const [payment, requirement] = [signedPayment(payer, 1_000n), makeRequirement(1_000n)]
    expect(await late.settle(id, payment, requirement)).toMatchObject({ state: 'pending' })
    const read = async () => {
      await sender.resume(0)
      return (await sender.find(id))?.state
    }
    await expect.poll(read).toBe('reverted')
    // Asked for again and again, it is the same failure.
    for (let n = 0; n < 2; n++)
      expect(await late.settle(id, payment, requirement)).toMatchObject({ state: 'failed' })
  }
  expect(failures.isOver(from)).toBe(true)
})

test('failing payments among good ones do not hold the good ones back', async () => {
  const keys = await Promise.all(Array.from({ length: 50 }, () => newPayer(100n)))
  const payments = keys.flatMap((key) => [signedPayment(key, 60n), signedPayment(key, 61n)])
  const before = await treasury()
  const outcomes = await Promise.all(
    payments.map((payment) =>
      facilitator.settle(settlementId(), payment, makeRequirement(payment.payload.value)),
    ),
  )
  const settled = outcomes.filter((outcome) => outcome.state === 'settled')
  const failed = outcomes.filter((outcome) => outcome.state === 'failed')
  expect([settled.length, failed.length]).toEqual([50, 50])
  expect(failed[0]).toEqual({ state: 'failed', reason: 'insufficient_balance', final: false })
  const received = (await treasury()) - before
  expect(received).toBeGreaterThanOrEqual(50n * 60n)
  expect(received).toBeLessThanOrEqual(50n * 61n)
})

describe('crashes and outages', () => {
  test('a start after a kill between journal and broadcast mines the same bytes once', async () => {
    const key = world.randomBytes(32)
    await rpc.call('anvil_setBalance', [deriveAddress(key), encodeQuantity(10n ** 20n)])
    const payments = await Promise.all(
      Array.from({ length: 5 }, async () => signedPayment(await newPayer(), 400n)),
    )
    const sends = payments.map((payment) => ({
      id: settlementId(),
      to: network.asset.address,
      data: encodeTransferCall(payment.payload),
    }))
    await journalAndDie(key, sends)
    const before = await treasury()
    const next = newSender(rpc, { key })
    expect(await next.find(sends[0]!.id)).toMatchObject({ state: 'signed' })
    expect(await readTransactionCount(rpc, next.address)).toBe(0n)
    await next.start()
    const reborn = newFacilitator(rpc, next)
    for (const [index, payment] of payments.entries()) {
      const { id } = sends[index]!
      expect(await reborn.settle(id, payment, makeRequirement(400n))).toMatchObject({
        state: 'settled',
        transaction: (await next.find(id))?.hash,
      })
    }
    expect((await treasury()) - before).toBe(2000n)
    expect(await readTransactionCount(rpc, next.address)).toBe(5n)
    await next.stop()
  })

  test('a block that the chain forgets is filled again with the same transactions', async () => {
    const payment = signedPayment(await newPayer(), 300n)
    const id = settlementId()
    const first = await facilitator.settle(id, payment, makeRequirement(300n))
    await world.sleep(300)
    await rpc.call('anvil_rollback', [1])
    await sender.resume(0)
    const again = await facilitator.settle(id, payment, makeRequirement(300n))
    expect(again).toMatchObject({ state: 'settled' })
    expect('transaction' in first && 'transaction' in again && first.transaction).toBe(
      'transaction' in again && again.transaction,
    )
  })

  test('one key is used by one sender at a time, and is free after an orderly stop', async () => {
    const key = world.randomBytes(32)
    const holder = newSender(rpc, { key, leaseMs: 500 })
    await holder.start()
    const second = newSender(rpc, { key, leaseMs: 500 })
    await expect(second.start()).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    await holder.stop()
    await second.start()
    await expect(holder.send({ id: 'x', to: network.payTo, data: '0x', gas: 21_000n }))
      .rejects //
      .toMatchObject({ code: 'UNAVAILABLE' })
    await second.stop()
  })

  test('a payment that comes while the lease of the key has run out is not sent, and is once the lease is renewed', async () => {
    const [key, payer] = [world.randomBytes(32), await newPayer()]
    await rpc.call('anvil_setBalance', [deriveAddress(key), encodeQuantity(10n ** 20n)])
    const [leaseMs, timers] = [2_000, new Set<() => void>()]
    let passedMs = 0
    const leaping = {
      ...world,
      now: () => world.now() + passedMs,
      every: (_: number, call: () => void) => {
        timers.add(call)
        return () => void timers.delete(call)
      },
    }
    const { database } = store
    const own = new JournaledSender({ database, rpc, world: leaping, network, key, log, leaseMs })
    await own.start()
    const settling = newFacilitator(rpc, own)
    const [id, payment] = [settlementId(), signedPayment(payer, 700n)]
    const settle = () => settling.settle(id, payment, makeRequirement(700n))
    // The machine was suspended, say: another process may have used the key meanwhile.
    passedMs = leaseMs + 1
    expect(await settle()).toEqual({ state: 'pending', reason: 'not_sent' })
    expect(await own.find(id)).toBeUndefined()
    for (const renew of timers) renew()
    await expect.poll(settle).toMatchObject({ state: 'settled' })
    await own.stop()
  })

  test('a network that cannot be reached is no verdict about a payment', async () => {
    const dead = openRpc({ url: 'http://127.0.0.1:9', world, deadlineMs: 500 })
    const cutOff = newFacilitator(dead, sender, 200)
    const payment = signedPayment(await newPayer(), 600n)
    await expect(cutOff.verify(payment, makeRequirement(600n))).rejects.toMatchObject({
      code: 'PAYMENT_NETWORK_UNREACHABLE',
    })
    const id = settlementId()
    const pending = await cutOff.settle(id, payment, makeRequirement(600n))
    expect(pending).toMatchObject({ state: 'pending', transaction: expect.any(String) })
    expect(await facilitator.lookup(id, payment, makeRequirement(600n))).toMatchObject({
      state: 'settled',
    })
    await expect(checkChain(dead, network)).rejects.toMatchObject({
      code: 'PAYMENT_NETWORK_UNREACHABLE',
    })
  })

  test('another chain, and a test chain of the same id, are refused', async () => {
    await checkChain(rpc, network)
    const refused = { code: 'PAYMENT_NETWORK_UNREACHABLE' }
    await expect(checkChain(rpc, { ...network, chainId: 8453 })).rejects.toMatchObject(refused)
    const genesisHash = `0x${'00'.repeat(32)}`
    await expect(checkChain(rpc, { ...network, genesisHash })).rejects.toMatchObject(refused)
  })

  test('a key without gas says so before it promises anything', async () => {
    const poor = newSender(rpc, { key: world.randomBytes(32), leaseMs: 500 })
    await poor.start()
    const payment = signedPayment(await newPayer(), 5n)
    await expect(
      newFacilitator(rpc, poor).verify(payment, makeRequirement(5n)),
    ).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    await poor.stop()
  })
})

test('payments of 32 payers at once are all settled', async () => {
  const count = 500
  const payers = await Promise.all(Array.from({ length: 32 }, () => newPayer()))
  const work = Array.from({ length: count }, (_, index) =>
    signedPayment(payers[index % 32]!, BigInt(1 + (index % 5))),
  )
  const queue = [...work]
  let verified = 0
  await Promise.all(
    payers.map(async () => {
      for (let payment = queue.pop(); payment !== undefined; payment = queue.pop()) {
        const requirement = makeRequirement(payment.payload.value)
        if ((await facilitator.verify(payment, requirement)).ok) verified++
        const outcome = await facilitator.settle(settlementId(), payment, requirement)
        if (outcome.state !== 'settled') throw new Error(outcome.reason)
      }
    }),
  )
  expect(verified).toBe(count)
})

/** A process of its own that journals, cannot broadcast, and is killed. */
async function journalAndDie(key: Buffer, sends: readonly object[]): Promise<void> {
  const at = (path: string) => JSON.stringify(new URL(path, import.meta.url).href)
  const program = `
    import { openDatabase } from ${at('../database/database.ts')}
    import { realWorld as world } from ${at('../base/world.ts')}
    import { openRpc } from ${at('./rpc.ts')}
    import { JournaledSender } from ${at('./sender.ts')}
    const { connection, network, key, sends } = JSON.parse(process.argv[1])
    const rpc = openRpc({ url: network.rpcUrl, world })
    const cut = { ...rpc, call: (method, params) =>
      method === 'eth_sendRawTransaction' ? new Promise(() => {}) : rpc.call(method, params) }
    const sender = new JournaledSender({ database: await openDatabase({ connection }), rpc: cut,
      world, network, key: Buffer.from(key, 'hex'), log: console, leaseMs: 600000 })
    await sender.start()
    for (const send of sends) void sender.send({ ...send, gas: 150000n })
    while ((await Promise.all(sends.map(({ id }) => sender.find(id)))).includes(undefined));
    console.log('journaled')`
  const { connection } = store
  const given = { connection, network, key: key.toString('hex'), sends }
  const input = JSON.stringify(given, (_, value: unknown) =>
    typeof value === 'bigint' ? String(value) : value,
  )
  const child = spawn(
    process.execPath,
    ['--import=tsx', '--input-type=module', '-e', program, input],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  const ended = new Promise((resolve) => child.on('exit', resolve))
  const printed = await Promise.race([
    new Promise((resolve) => child.stdout.on('data', (data) => resolve(String(data)))),
    ended,
  ])
  child.kill('SIGKILL')
  await ended
  expect(printed).toBe('journaled\n')
}

function cancelCall(key: Buffer, payment: SignedPayment): string {
  const text = (value: string) => hashKeccak(Buffer.from(value))
  const domain = hashKeccak(
    Buffer.concat([
      text('EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)'),
      text(network.asset.name),
      text(network.asset.version),
      Buffer.from(network.chainId.toString(16).padStart(64, '0'), 'hex'),
      Buffer.from(encodeHexWord(network.asset.address), 'hex'),
    ]),
  )
  const words = `${encodeHexWord(payment.payload.from)}${encodeHexWord(payment.payload.nonce)}`
  const struct = hashKeccak(
    Buffer.concat([
      text('CancelAuthorization(address authorizer,bytes32 nonce)'),
      Buffer.from(words, 'hex'),
    ]),
  )
  const signature = signDigest(hashKeccak(Buffer.concat([Buffer.of(0x19, 1), domain, struct])), key)
  const call = computeSelector('cancelAuthorization(address,bytes32,uint8,bytes32,bytes32)')
  return `${call}${words}${signature.slice(-2).padStart(64, '0')}${signature.slice(2, 130)}`
}

function show(_: string, value: unknown): unknown {
  return typeof value === 'bigint' ? value.toString() : value
}
