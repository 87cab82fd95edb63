import { describe, expect, test } from 'vitest'
import { findNetworkId, makePaymentNetwork } from './networks.ts'

const network = makePaymentNetwork({ chainId: 84532, payTo: `0x${'B1'.repeat(20)}` })

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
