import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { noLog as log } from '../base/log.ts'
import { realWorld as world } from '../base/world.ts'
import { encodeHex } from './hex.ts'
import { makePaymentNetwork } from './networks.ts'
import type { Requirement, SignedPayment } from './protocol.ts'
import { makeRemoteFacilitator } from './remote-facilitator.ts'
import { deriveAddress, digestTransfer, signDigest } from './signature.ts'

const network = makePaymentNetwork({ chainId: 84532, payTo: `0x${'b1'.repeat(20)}` })
const key = Buffer.alloc(32, 5)
const payer = deriveAddress(key)
const transaction = `0x${'ab'.repeat(32)}`
const nowSeconds = () => BigInt(Math.floor(world.now() / 1000))

const requirement: Requirement = {
  network,
  amount: 1070n,
  quoteId: 'q1.x',
  expiresAt: 1_800_000_000,
  maxTimeoutSeconds: 60,
}

function payment(validBefore = nowSeconds() + 300n): SignedPayment {
  const fields = {
    from: payer,
    to: network.payTo,
    value: 1070n,
    validAfter: 0n,
    validBefore,
    nonce: encodeHex(world.randomBytes(32)),
  }
  const signature = signDigest(digestTransfer(network, fields), key)
  return {
    version: 1,
    network: network.id,
    scheme: 'exact',
    payload: { ...fields, signature },
    receiptForm: 'base64',
  }
}

let server: Server
let url: string
let answer: (response: ServerResponse) => void
let requests: { path: string | undefined; body: string; authorization: string | undefined }[] = []

beforeAll(async () => {
  server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk) => {
      body += chunk
    })
    request.on('end', () => {
      requests.push({ path: request.url, body, authorization: request.headers.authorization })
      answer(response)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/x402`
})

afterAll(() => {
  server.closeAllConnections()
  server.close()
})

function facilitator() {
  const headers = { authorization: 'Bearer k' }
  const timeouts = { verifyTimeoutMs: 300, settleTimeoutMs: 300 }
  return makeRemoteFacilitator({ url, network, world, log, headers, ...timeouts })
}

function says(value: object, status = 200) {
  answer = (response) => void response.writeHead(status).end(JSON.stringify(value))
}

test('the service asks a facilitator with version 2 requirements, the payment and the configured headers', async () => {
  requests = []
  says({ isValid: true, payer: payer.toUpperCase().replace('0X', '0x') })
  const sent = payment()
  expect(await facilitator().verify(sent, requirement)).toEqual({ ok: true })
  expect(requests).toHaveLength(1)
  expect(requests[0]).toMatchObject({ path: '/x402/verify', authorization: 'Bearer k' })
  const body = JSON.parse(requests[0]!.body)
  expect(body).toMatchObject({
    x402Version: 2,
    paymentPayload: {
      x402Version: 2,
      payload: {
        signature: sent.payload.signature,
        authorization: { from: payer, value: '1070', nonce: sent.payload.nonce },
      },
    },
    paymentRequirements: { network: 'eip155:84532', amount: '1070', payTo: network.payTo },
  })
  expect(body.paymentPayload.accepted).toEqual(body.paymentRequirements)
})

describe('verify requests', () => {
  test('verify does not ask about a payment that is wrong by itself', async () => {
    requests = []
    says({ isValid: true })
    const forged = payment()
    const signature = `0x${'11'.repeat(64)}1b`
    const verdict = await facilitator().verify(
      { ...forged, payload: { ...forged.payload, signature } },
      requirement,
    )
    expect(verdict).toMatchObject({ ok: false, reason: 'invalid_signature' })
    expect(await facilitator().verify(payment(), { ...requirement, amount: 1n })).toMatchObject({
      ok: false,
      reason: 'mismatch',
    })
    expect(requests).toEqual([])
  })

  test.each([
    [{ isValid: false, invalidReason: 'insufficient_funds' }, 'refused_by_facilitator'],
    [{ isValid: false, invalidReason: 'refused', payer }, 'refused_by_facilitator'],
    [{ isValid: false }, 'refused_by_facilitator'],
    [{ isValid: false, invalidReason: 'nonce_already_used' }, 'authorization_used'],
  ])('verify is a refusal when the answer is %j', async (value, reason) => {
    says(value)
    expect(await facilitator().verify(payment(), requirement)).toMatchObject({ ok: false, reason })
  })

  test.each([
    { isValid: 'true' },
    { isValid: 1 },
    {},
    { isValid: true, payer: `0x${'99'.repeat(20)}` },
    { isValid: true, payer: 5 },
  ])('verify is no verdict when the answer is %j', async (value) => {
    says(value)
    await expect(facilitator().verify(payment(), requirement)).rejects.toMatchObject({
      code: 'PAYMENT_NETWORK_UNREACHABLE',
    })
  })

  test.each<[string, typeof answer]>([
    ['is silent', () => undefined],
    ['fails', (response) => void response.writeHead(500).end('{"isValid":false}')],
    ['has too much to do', (response) => void response.writeHead(429).end('{}')],
    ['sends elsewhere', (response) => void response.writeHead(302, { location: '/' }).end('{}')],
    ['talks too much', (response) => void response.end(`"${'x'.repeat(100_000)}"`)],
    ['talks garbage', (response) => void response.end('isValid')],
  ])('verify is no verdict when the facilitator %s', async (_name, behaviour) => {
    answer = behaviour
    await expect(facilitator().verify(payment(), requirement)).rejects.toMatchObject({
      code: 'PAYMENT_NETWORK_UNREACHABLE',
    })
  })
})

describe('settle requests', () => {
  test('settle counts a success that fits in every field', async () => {
    says({ success: true, transaction, payer, network: 'eip155:84532' })
    expect(await facilitator().settle('id', payment(), requirement)).toEqual({
      state: 'settled',
      transaction,
    })
  })

  test.each([
    { success: 'true', transaction, payer },
    { success: 1, transaction },
    { success: true },
    { success: true, transaction: '' },
    { success: true, transaction: '0xabc' },
    { success: true, transaction, payer: `0x${'99'.repeat(20)}` },
    { success: true, transaction, network: 'eip155:8453' },
    { success: true, transaction, network: 'base' },
    { success: true, transaction, payer: 5 },
    { transaction },
  ])('settle does not deliver and does not ask again when the answer is %j', async (value) => {
    says(value)
    expect(await facilitator().settle('id', payment(), requirement)).toMatchObject({
      state: 'pending',
    })
  })

  test.each([
    { success: false, errorReason: 'settlement_pending', transaction },
    { success: false, errorReason: 'invalid_exact_evm_nonce_already_used' },
    { success: false, errorReason: 'timeout', transaction },
  ])('settle keeps waiting when the money may have moved: %j', async (value) => {
    says(value)
    expect(await facilitator().settle('id', payment(), requirement)).toMatchObject({
      state: 'pending',
    })
  })

  test('a refusal is final only once the payment has expired', async () => {
    says({ success: false, errorReason: 'insufficient_funds', transaction: '' }, 402)
    const failed = { state: 'failed', reason: 'insufficient_funds' }
    expect(await facilitator().settle('id', payment(), requirement)).toEqual({
      ...failed,
      final: false,
    })
    const late = payment(nowSeconds() - 3600n)
    expect(await facilitator().settle('id', late, requirement)).toEqual({ ...failed, final: true })
  })

  test.each<[string, typeof answer]>([
    ['silence', () => undefined],
    ['a failure after the broadcast', (response) => void response.writeHead(502).end('{}')],
    ['a closed connection', (response) => void response.destroy()],
  ])(
    'settle is pending after %s, and lookup asks the facilitator again',
    async (_name, behaviour) => {
      answer = behaviour
      const sent = payment()
      expect(await facilitator().settle('id', sent, requirement)).toEqual({
        state: 'pending',
        reason: 'facilitator_silent',
      })
      says({ success: true, transaction, payer })
      expect(await facilitator().lookup('id', sent, requirement)).toMatchObject({
        state: 'settled',
      })
    },
  )
})
