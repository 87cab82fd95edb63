import { SetupError } from '@tollbase/server/base/setup-error'
import { expect, test } from 'vitest'
import { describeFailure, formatTable, openScreen, StepFailure } from './screen.ts'

test('a table has columns: numbers and money to the right, text to the left, cut where too long', () => {
  const rows = [
    ['Ōtsu', 298_164, '$0.10', ''],
    ['x'.repeat(40), 35, '$12.00', 'last'],
  ]
  expect(formatTable(['name', 'people', 'price', 'note'], rows)).toEqual([
    `${'name'.padEnd(30)}   people   price  note`,
    `${'Ōtsu'.padEnd(30)}  298,164   $0.10`,
    `${'x'.repeat(29)}…       35  $12.00  last`,
  ])
})

test('a claim that does not hold ends the demo and says what it was', () => {
  const screen = openScreen(1)
  expect(() => screen.check(false, 'two is three')).toThrow(StepFailure)
  expect(() => screen.check(false, 'two is three')).toThrow('this did not hold: two is three')
})

test('what an operator can mend is told without a stack trace, a bug with one', () => {
  expect(describeFailure(new SetupError('the devnet needs a package'))).toBe(
    'the devnet needs a package',
  )
  expect(describeFailure(new StepFailure('two is three'))).toBe('two is three')
  expect(describeFailure(new TypeError('x'))).toContain('screen.test.ts')
})
