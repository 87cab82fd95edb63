import { giveParts } from '@tollbase/testing/give-parts'
import { expect, test } from 'vitest'
import { makePaymentNetwork, type NetworkSettings } from '../../x402/networks.ts'
import { findExplorerLink } from './explorer-link.ts'
import type { Payments } from './payments.ts'

const hash = `0x${'ab'.repeat(32)}`

function find(network: string, settings: Partial<NetworkSettings> = {}, of: string | null = hash) {
  const made = makePaymentNetwork({ chainId: 8453, payTo: `0x${'a1'.repeat(20)}`, ...settings })
  const payments = giveParts<Payments>({ ports: { methods: [{ network: made }] } })
  return findExplorerLink(payments, { network, hash: of })
}

test('a transaction of a public network links to its known explorer, to the configured one, or to none', () => {
  expect(find('eip155:8453')).toBe(`https://basescan.org/tx/${hash}`)
  const explorer = 'https://blocks.example/base/'
  expect(find('eip155:8453', { explorer })).toBe(`https://blocks.example/base/tx/${hash}`)
  expect(find('eip155:8453', { explorer: 'none' })).toBeUndefined()
  expect(find('eip155:8453', {}, null)).toBeUndefined()
})

test('a devnet has the number of a public network and not its explorer', () => {
  const devnet = { chainId: 84532, isDevnet: true } as const
  expect(find('eip155:84532', devnet)).toBeUndefined()
})

test('a chain that takes no payments, as one of anchors, has its known explorer', () => {
  expect(find('eip155:42161')).toBe(`https://arbiscan.io/tx/${hash}`)
  expect(find('eip155:31337')).toBeUndefined()
})
