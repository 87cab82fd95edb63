import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const repository = join(import.meta.dirname, '../..')

test('every fault of tests/faults/README.md names a file that has a test of this title, and no fault is left out', () => {
  const page = readFileSync(join(repository, 'tests/faults/README.md'), 'utf8')
  const rows = page.split('\n').filter((line) => /^\| F\d/.test(line))
  const faults = new Set<string>()
  for (const row of rows) {
    const [, fault = '', , path = '', title = ''] = row.split('|').map((cell) => cell.trim())
    const file = join(repository, path.replaceAll('`', ''))
    expect(existsSync(file), row).toBe(true)
    expect(title.length, row).toBeGreaterThan(10)
    expect(readFileSync(file, 'utf8'), row).toContain(`'${title}`)
    faults.add(fault)
  }
  const all = Array.from({ length: 13 }, (_, at) => `F${at + 1}`)
  expect(all.filter((fault) => !faults.has(fault))).toEqual([])
})
