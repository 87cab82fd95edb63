import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { formatFunctionList } from './documentation.test-support.ts'

it('the documentation lists exactly the functions that SQL may call', () => {
  const page = new URL('../../../../../docs/sql-reference.md', import.meta.url)
  const [, list] = readFileSync(page, 'utf8').split(/<!-- \/?functions -->\n/)
  expect(list?.trim()).toBe(formatFunctionList())
})
