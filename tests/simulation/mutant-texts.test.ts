import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { mutants } from './mutants.ts'

const source = join(import.meta.dirname, '../../packages/server/src')

test('each planted bug finds its place: its text occurs once in its file', () => {
  const astray = mutants.filter(
    ({ file, find }) => readFileSync(join(source, file), 'utf8').split(find).length !== 2,
  )
  expect(astray.map(({ name }) => name)).toEqual([])
})
