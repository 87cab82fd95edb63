import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { partsOfFiles, takeFiles } from '../support/by-commit.ts'
import { shared } from '../support/whole-run.ts'

const repository = join(import.meta.dirname, '../..')

test('every dear test file exists, and belongs to the part of just one kind of commit', () => {
  expect(shared.filter((file) => !existsSync(join(repository, file)))).toEqual([])
  const commits = Array.from({ length: partsOfFiles }, (_, at) =>
    `${'0'.repeat(15)}${at}`.padEnd(40, '0'),
  )
  const taken = commits.flatMap((commit) => takeFiles(shared, commit))
  // With TOLLBASE_TESTS=all, every commit has them all.
  expect(new Set(taken)).toEqual(new Set(shared))
  expect([shared.length, shared.length * partsOfFiles]).toContain(taken.length)
})
