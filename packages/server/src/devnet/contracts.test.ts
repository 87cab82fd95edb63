import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '../../../..')

test('the committed code is what the sources compile to', async () => {
  const { contractsModule } = await import(join(root, 'scripts/compile-contracts.mjs'))
  for (const path of [
    'packages/server/src/devnet/contracts.ts',
    'packages/server/src/anchors/contract.ts',
    'packages/server/src/x402/channels/contracts.ts',
  ])
    expect(contractsModule(path)).toBe(readFileSync(join(root, path), 'utf8'))
})
