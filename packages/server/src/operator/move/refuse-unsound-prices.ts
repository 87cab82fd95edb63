import { Fault } from '../../base/fault.ts'
import { SetupError } from '../../base/setup-error.ts'
import type { PriceRule } from '../../model/definitions.ts'
import {
  formatRuleName,
  parseTiers,
  refuseContradictions,
} from '../../operations/pricing/parse-rules.ts'

/**
 * Refuses price rules that no request could have made: by two rules of one name, tiers that become dearer or a minimum
 * above the maximum, a charge could be more than its quote.
 */
export function refuseUnsoundPrices(rules: readonly PriceRule[]): void {
  const names = new Set<string>()
  for (const rule of rules) {
    const name = formatRuleName(rule)
    if (names.has(name)) throw makeUnsoundError(name, 'it is there twice')
    names.add(name)
    check(name, () => parseTiers([...(rule.tiers ?? [])], rule.amount, ''))
  }
  check('the rules', () => refuseContradictions(rules))
}

function check(name: string, work: () => void): void {
  try {
    work()
  } catch (error) {
    if (error instanceof Fault) throw makeUnsoundError(name, error.message)
    throw error
  }
}

function makeUnsoundError(name: string, problem: string): SetupError {
  return new SetupError(
    `the price ${name} is none that this service would take: ${problem}; change it at the other service, and export again`,
  )
}
