import { describe, expect, test } from 'vitest'
import { makePaymentNetwork } from './networks.ts'
import { encodeSettlement } from './payment-response.ts'

const network = makePaymentNetwork({ chainId: 84532, payTo: `0x${'B1'.repeat(20)}` })

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
