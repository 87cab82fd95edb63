import { Fault } from '../../base/fault.ts'
import type { PriceRule } from '../../model/definitions.ts'
import {
  formatRuleName,
  parseTiers,
  refuseContradictions,
} from '../../operations/pricing/parse-rules.ts'
import { makeUnsoundError } from './unsound-error.ts'

/**
 * Refuses price rules that no request could have made: by two rules of one name, tiers that become dearer or a minimum
 * above the maximum, a charge could be more than its quote.
 */
export function refuseUnsoundPrices(rules: readonly PriceRule[]): void {
  const names = new Set<string>()
  for (const rule of rules) {
    const name = `the price ${formatRuleName(rule)}`
    // By a second target a rule could come to the rules of another one, under a name that is not theirs.
    if (Object.keys(rule.target).length !== 1) throw makeUnsoundError(name, 'it has no one target')
    if (names.has(name)) throw makeUnsoundError(name, 'it is there twice')
    names.add(name)
    check(name, () => parseTiers([...(rule.tiers ?? [])], rule.amount, ''))
  }
  check('the prices', () => refuseContradictions(rules))
}

function check(name: string, work: () => void): void {
  try {
    work()
  } catch (error) {
    if (error instanceof Fault) throw makeUnsoundError(name, error.message)
    throw error
  }
}
