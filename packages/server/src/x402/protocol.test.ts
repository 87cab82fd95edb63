import { PaymentPayloadV2Schema } from '@x402/core/schemas'
import { declarePaymentIdentifierExtension } from '@x402/extensions/payment-identifier'
import { describe, expect, test } from 'vitest'
import { findNetworkId, makePaymentNetwork } from './networks.ts'
import { buildPaymentRequired, encodeSettlement, type Requirement } from './protocol.ts'

const network = makePaymentNetwork({ chainId: 84532, payTo: `0x${'B1'.repeat(20)}` })
const requirement: Requirement = {
  network,
  amount: 1070n,
  quoteId: 'q1.x',
  expiresAt: 1_800_000_000,
  maxTimeoutSeconds: 60,
  costBreakdown: { rows: 1000, bytes: 70 },
}
const resource = {
  url: 'https://api.example/list',
  description: 'größer als …',
  mimeType: 'application/json',
}
const offer = buildPaymentRequired({ resource, requirements: [requirement], error: 'Pay' })
const extra = {
  name: 'USDC',
  version: '2',
  quoteId: 'q1.x',
  chainType: 'evm',
  chainId: 84532,
  paymentMethod: 'x402-facilitator',
  tokenSymbol: 'USDC',
  tokenDecimals: 6,
  costBreakdown: { rows: 1000, bytes: 70 },
  pricing: { baseAmount: '1070', baseAsset: 'USDC', expiresAt: 1_800_000_000, usd: '0.00107' },
}

describe('answers 402', () => {
  test('a 402 says the version 2 offer in its header', () => {
    expect(JSON.parse(Buffer.from(offer.header, 'base64').toString())).toEqual({
      x402Version: 2,
      error: 'Pay',
      resource,
      accepts: [
        {
          scheme: 'exact',
          network: 'eip155:84532',
          amount: '1070',
          asset: '0x036cbd53842c5426634e7929541ec2318f3dcf7e',
          payTo: `0x${'b1'.repeat(20)}`,
          maxTimeoutSeconds: 60,
          extra,
        },
      ],
      extensions: { 'payment-identifier': declarePaymentIdentifierExtension(false) },
    })
  })

  test('a 402 says the version 1 offer in its body, with every field that old clients insist on', () => {
    expect(JSON.parse(JSON.stringify(offer.body))).toEqual({
      x402Version: 1,
      error: 'Pay',
      accepts: [
        {
          scheme: 'exact',
          network: 'base-sepolia',
          maxAmountRequired: '1070',
          resource: resource.url,
          description: resource.description,
          mimeType: 'application/json',
          outputSchema: {},
          payTo: `0x${'b1'.repeat(20)}`,
          maxTimeoutSeconds: 60,
          asset: '0x036cbd53842c5426634e7929541ec2318f3dcf7e',
          extra,
        },
      ],
    })
  })

  test('a 402 makes offers that the reference implementation can echo in a payment', () => {
    const { accepts } = JSON.parse(Buffer.from(offer.header, 'base64').toString())
    const payload = { x402Version: 2, accepted: accepts[0], payload: {} }
    expect(PaymentPayloadV2Schema.safeParse(payload).success).toBe(true)
  })
})

describe('settlement headers', () => {
  const notice = {
    success: true,
    transaction: `0x${'ab'.repeat(32)}`,
    network,
    payer: `0x${'a1'.repeat(20)}`,
    amount: 1070n,
    blockNumber: 7n,
    confirmedAt: '2026-01-01T00:00:00.000Z',
  }
  const common = {
    success: true,
    transaction: notice.transaction,
    payer: notice.payer,
    amount: '1070',
  }

  test('a settlement header is PAYMENT-RESPONSE with the CAIP-2 network in version 2', () => {
    const { name, value } = encodeSettlement({ version: 2, receiptForm: 'base64' }, notice)
    expect(name).toBe('PAYMENT-RESPONSE')
    expect(JSON.parse(Buffer.from(value, 'base64').toString())).toEqual({
      ...common,
      network: 'eip155:84532',
    })
  })

  test('a settlement header is X-PAYMENT-RESPONSE with the old network name in version 1', () => {
    const { name, value } = encodeSettlement({ version: 1, receiptForm: 'base64' }, notice)
    expect(name).toBe('X-PAYMENT-RESPONSE')
    expect(JSON.parse(Buffer.from(value, 'base64').toString())).toEqual({
      ...common,
      network: 'base-sepolia',
    })
  })

  test('a settlement header is plain JSON for the public SDK, which would fail on base64', () => {
    const { value } = encodeSettlement({ version: 1, receiptForm: 'json' }, notice)
    expect(JSON.parse(value)).toEqual({
      ...common,
      network: 'base-sepolia',
      txHash: notice.transaction,
      blockHeight: 7,
      confirmedAt: notice.confirmedAt,
    })
  })
})

describe('networks', () => {
  test('networks are completed from known facts and kept in lower case', () => {
    expect(network).toEqual({
      id: 'eip155:84532',
      v1Name: 'base-sepolia',
      chainId: 84532,
      asset: {
        address: '0x036cbd53842c5426634e7929541ec2318f3dcf7e',
        name: 'USDC',
        version: '2',
        symbol: 'USDC',
        decimals: 6,
      },
      payTo: `0x${'b1'.repeat(20)}`,
      minimumPayment: 1_000n,
      sweepMinimum: 1_000n,
      withdrawalMinimum: 100_000n,
      withdrawalFee: 0n,
      explorer: 'https://sepolia.basescan.org',
    })
    expect(findNetworkId('base')).toBe('eip155:8453')
    expect(findNetworkId('toString')).toBeUndefined()
  })

  test.each([
    [{ chainId: 84532, payTo: '0x12' }, /payTo/],
    [{ chainId: 31337, payTo: network.payTo }, /version 1 name/],
    [{ chainId: 31337, v1Name: 'local', payTo: network.payTo }, /asset/],
    [{ chainId: 84532, payTo: network.payTo, genesisHash: '0x00' }, /genesisHash/],
  ])('settings of a network that are wrong are refused: %j', (settings, problem) => {
    expect(() => makePaymentNetwork(settings)).toThrow(problem)
  })
})
