import type { tollbase } from '@tollbase/contract/contract'
import type { Reply } from '@tollbase/contract/route'
import { formatAmount } from '../format-amount.ts'
import { printLine } from '../print-line.ts'

type Operations = typeof tollbase
type Pricing = Reply<Operations['getPricing']>
type Rule = Pricing['rules'][number]
type Changed = Reply<Operations['setPricing']>
type Simulation = Reply<Operations['simulatePricing']>

export function printRules({ rules, split, version }: Pricing): void {
  for (const rule of rules) printLine(formatRule(rule))
  if (rules.length === 0) printLine('there are no rules')
  printLine(
    `share of the seller: ${split.app_owner_percentage} %, of the platform: ${split.platform_percentage} %; version ${version}`,
  )
}

export function printChange({ added, changed, removed, version }: Changed): void {
  for (const rule of added) printLine(`+ ${formatRule(rule)}`)
  for (const { previous, previous_amount: _, ...rule } of changed) {
    printLine(`- ${formatRule(previous)}`)
    printLine(`+ ${formatRule(rule)}`)
  }
  for (const rule of removed) printLine(`- ${formatRule(rule)}`)
  if (added.length + changed.length + removed.length === 0) printLine('nothing has changed')
  printLine(`version ${version}`)
}

export function printSimulation(said: Simulation): void {
  printLine(`${said.from} to ${said.to}: ${said.sales} sales`)
  for (const { item, operation, sales, not_for_sale: unsold, ...sums } of said.items) {
    const gone = unsold > 0 ? `, ${unsold} not for sale` : ''
    printLine(`${operation} ${item.kind} ${item.name} (${sales} sales${gone}): ${formatSums(sums)}`)
  }
  printLine(`in all: ${formatSums(said)}`)
  const { sales, earned, reasons } = said.not_simulated
  const why = Object.entries(reasons).flatMap(([name, count]) =>
    count > 0 ? `${count} ${name}` : [],
  )
  if (sales > 0)
    printLine(`not simulated: ${sales} sales of ${formatAmount(earned)} (${why.join(', ')})`)
  const freed = said.confirm_free.map((target) => Object.entries(target).flat().join(' '))
  if (freed.length > 0) printLine(`strangers could then read for nothing: ${freed.join(', ')}`)
  for (const assumption of said.assumes) printLine(`- ${assumption}`)
}

function formatSums(sums: {
  readonly earned: string
  readonly simulated: string
  readonly difference: string
}): string {
  const sign = sums.difference.startsWith('-') || sums.difference === '0' ? '' : '+'
  return `earned ${formatAmount(sums.earned)}, simulated ${formatAmount(sums.simulated)}, difference ${sign}${formatAmount(sums.difference)}`
}

function formatRule({ target, operation, model, amount, tiers, ...more }: Rule): string {
  const named = Object.entries(target).flat().join(' ')
  const rest = Object.entries(more).map(([name, value]) => `${name} ${value}`)
  const above = (tiers ?? []).map((tier) => `above ${tier.above}: ${formatAmount(tier.amount)}`)
  const price = amount === undefined ? [] : [formatAmount(amount)]
  return [`${operation} ${named}:`, model, ...price, ...rest, ...above].join(' ')
}
