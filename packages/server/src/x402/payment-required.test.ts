import { PaymentPayloadV2Schema } from '@x402/core/schemas'
import { declarePaymentIdentifierExtension } from '@x402/extensions/payment-identifier'
import { describe, expect, test } from 'vitest'
import { makePaymentNetwork } from './networks.ts'
import { buildPaymentRequired } from './payment-required.ts'
import type { Requirement } from './protocol.ts'

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
