import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { countCommits, findPart, partsOfFiles, takeFiles } from '../support/by-commit.ts'
import dearFiles from '../support/dear-files.json' with { type: 'json' }
import { shared } from '../support/whole-run.ts'

const repository = join(import.meta.dirname, '../..')

/** The seconds of one worker that the dear files of a commit may take; four workers run them and all others. */
const secondsMax = 2_000

const runsPart = !['all', 'files'].includes(process.env.TOLLBASE_TESTS ?? '')

test('every dear test file exists, and any commits in a row run each just once', () => {
  const files = [...shared.keys()]
  expect(files.filter((file) => !existsSync(join(repository, file)))).toEqual([])
  for (const first of [0, 1, 817, 4_294_967_295]) {
    const numbers = Array.from({ length: partsOfFiles }, (_, at) => first + at)
    const taken = numbers.flatMap((number) => takeFiles(shared, number))
    // With TOLLBASE_TESTS=all, every commit has them all.
    expect(new Set(taken)).toEqual(new Set(files))
    expect(taken.length).toBe(runsPart ? files.length : files.length * partsOfFiles)
  }
})

test.runIf(runsPart)(
  'the dear files of each commit take as long, and no longer than is allowed',
  () => {
    const always = Object.entries(dearFiles).filter(([file]) => !shared.has(file))
    const sum = (files: readonly [string, number][]) => files.reduce((all, [, one]) => all + one, 0)
    const sums = Array.from({ length: partsOfFiles }, (_, number) =>
      sum([
        ...always,
        ...takeFiles(shared, number).map(
          (file) => [file, shared.get(file) ?? 0] as [string, number],
        ),
      ]),
    )
    expect(Math.max(...sums) - Math.min(...sums)).toBeLessThanOrEqual(15)
    expect(Math.max(...sums), 'take more parts, or make tests cheaper').toBeLessThan(secondsMax)
  },
)

test('the parts of cases have as many, and each has every kind of case that comes in rows', () => {
  for (const parts of [2, 3, 4, 6])
    for (const width of [2, 3, 4, 6]) {
      const cases = Array.from({ length: parts * width * 6 }, (_, at) => at)
      for (let part = 0; part < parts; part++) {
        const taken = cases.filter((at) => findPart(at, parts) === part)
        expect(taken.length).toBe(cases.length / parts)
        expect(new Set(taken.map((at) => at % width)).size, `${parts} ${width}`).toBe(width)
      }
    }
})

test('commits are counted where git has all of them, and otherwise nothing is guessed', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tollbase-commits-'))
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@localhost', ...args], {
      cwd: folder,
      stdio: 'ignore',
    })
  try {
    expect(countCommits(folder)).toBeUndefined()
    git('init', 'whole')
    expect(countCommits(join(folder, 'whole'))).toBeUndefined()
    for (const message of ['one', 'two', 'three'])
      git('-C', 'whole', 'commit', '--allow-empty', '--message', message)
    expect(countCommits(join(folder, 'whole'))).toBe(3)
    git('clone', '--depth', '1', `file://${folder}/whole`, 'shallow')
    expect(countCommits(join(folder, 'shallow'))).toBeUndefined()
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
