import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const repository = join(import.meta.dirname, '../..')

test('every file that ARCHITECTURE.md sends a reader to is there, at most three for a change', () => {
  const page = readFileSync(join(repository, 'ARCHITECTURE.md'), 'utf8')
  const [, section = ''] = page.split('## Where to change what')
  const [table = ''] = section.split('\n## ')
  const rows = table.split('\n').filter((line) => line.startsWith('| ') && line.includes('`'))
  expect(rows.length).toBeGreaterThanOrEqual(10)
  for (const row of rows) {
    const paths = [...row.matchAll(/`([^`]+)`/g)].map(([, path = '']) => path)
    expect(paths.length, row).toBeLessThanOrEqual(3)
    expect(paths.filter((path) => !existsSync(join(repository, path)))).toEqual([])
  }
})
