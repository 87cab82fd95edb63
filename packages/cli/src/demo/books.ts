import { formatDollars } from '@tollbase/server/base/format-usd'
import { audit } from '@tollbase/server/operator/audit/audit'
import { makeProgressLine } from '../progress.ts'
import type { Bought, Buyer } from './buyer.ts'
import { type Market, readBalances } from './market.ts'
import { formatCount, formatSeconds } from './screen.ts'
import type { Shop } from './seller.ts'

/** Step 10: every atomic unit that the faucet made is somewhere, and where it should be. */
export async function balanceBooks(
  market: Market,
  parties: { buyer: Buyer; shop: Shop },
  purchases: readonly Bought[],
): Promise<void> {
  const { screen, api } = market
  const { buyer, shop } = parties
  screen.step('The books are balanced')
  const atBuyer = await readBalances(market, buyer.account.address)
  const atTreasury = await market.onChain(market.treasury)
  const wallet = await api.call('getApplicationWallet', { params: { app: shop.app } }, shop.key)
  const seller = BigInt(wallet.available)
  const platform = await market.inLedger('platform')
  screen.table(
    ['', 'on the chain', 'in the ledger', 'what it is'],
    [
      ['buyer', formatDollars(atBuyer.onChain), formatDollars(atBuyer.here), 'change'],
      ['seller', '', formatDollars(seller), '80 % of each charge'],
      ['platform', '', formatDollars(platform), '20 % of each charge, rounded down'],
      ['service', formatDollars(atTreasury), '', 'what the payments brought in'],
      [
        'all',
        formatDollars(atBuyer.onChain + atTreasury),
        formatDollars(atBuyer.here + seller + platform),
        '',
      ],
    ],
  )
  const charges = purchases.map(({ receipt }) => BigInt(receipt.amount))
  const charged = sum(charges)
  // A fifth of each charge, rounded down to the atomic unit; the rest is the seller's.
  const shared = sum(charges.map((charge) => charge / 5n))
  screen.check(
    atBuyer.onChain + atTreasury === buyer.faucet,
    `on the chain: buyer and service have the ${formatDollars(buyer.faucet)} that the faucet made`,
  )
  const settled = purchases.filter(({ receipt }) => receipt.transaction !== null)
  screen.check(
    atTreasury === sum(settled.map(({ exchange }) => exchange.asked)),
    `the service has the ${settled.length} payments that were sent, and the replayed one only once`,
  )
  screen.check(
    atBuyer.here + seller + platform === atTreasury,
    'the ledger shares out exactly what is on the chain',
  )
  screen.check(
    platform === shared && seller === charged - shared,
    `charges of ${formatDollars(charged)}: seller ${formatDollars(seller)} + platform ${formatDollars(platform)}, nothing lost by rounding`,
  )
}

/** Step 11: the stopped service's data, recomputed from the log. */
export async function auditAll(market: Market): Promise<void> {
  const { screen } = market
  screen.step('The service stops, and everything is recomputed from its log')
  await market.close()
  const startedAt = Date.now()
  const bar = makeProgressLine()
  const report = await audit(market.config, bar.update).finally(bar.end)
  screen.table(
    ['chain', 'blocks', 'entries'],
    report.chains.map(({ chain, blocks, entries }) => [chain, blocks, entries]),
  )
  const entries = report.chains.reduce((total, chain) => total + chain.entries, 0)
  screen.check(
    report.equal,
    report.equal
      ? `equal: hashes, signatures, trees, tables and balances of ${formatCount(entries)} entries, in ${formatSeconds(startedAt)}`
      : `the audit finds no difference; it found ${JSON.stringify(report.difference ?? report.unfinished)}`,
  )
}

function sum(amounts: readonly bigint[]): bigint {
  return amounts.reduce((total, amount) => total + amount, 0n)
}
