import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { compiler } from './contracts.ts'

test('the committed code is what the sources compile to', async () => {
  const script = join(import.meta.dirname, '../../../../scripts/compile-contracts.mjs')
  const { contractsModule } = await import(script)
  const committed = readFileSync(join(import.meta.dirname, 'contracts.ts'), 'utf8')
  expect(contractsModule()).toBe(committed)
  expect(compiler).toMatch(/^0\.8\.30\+/)
})
