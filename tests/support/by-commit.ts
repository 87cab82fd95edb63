import { execFileSync } from 'node:child_process'

/** The variable that has every test run: TOLLBASE_TESTS=all npm test. */
const runsAll = process.env.TOLLBASE_TESTS === 'all'

/**
 * Takes one of several parts of the cases of a test that is dear, another one for each commit, so that a few commits
 * run them all.
 * @example takeShare(mutants, 3) // every third; with TOLLBASE_TESTS=all, all of them
 */
export function takeShare<Case>(cases: readonly Case[], parts: number): readonly Case[] {
  return cases.filter((_, at) => isTaken(at, parts))
}

/** Says that the case of this place is in the part that this commit runs. */
export function isTaken(at: number, parts: number): boolean {
  return runsAll || at % parts === commitNumber() % parts
}

/** Each commit runs one of so many parts of the dear files. */
export const partsOfFiles = 4

/**
 * Takes the part of the dear files that a commit runs, the dearest first in each. Its number is another one than that of
 * the cases: by the same one, some cases would never meet their file.
 */
export function takeFiles(
  files: readonly string[],
  commit = findHead(import.meta.dirname),
): readonly string[] {
  const number = readNumber(commit?.slice(8))
  return files.filter((_, at) => runsAll || at % partsOfFiles === number % partsOfFiles)
}

/** The lowest seed of a commit; the seeds that are run by hand are below it. */
const leastOfCommits = 1_000_000

/** Chooses the first of the seeds that a commit has for itself. */
export function chooseSeed(commit = findHead(import.meta.dirname)): number {
  return leastOfCommits + readNumber(commit)
}

/** Takes one of the cases, by the commit and a name, so that half of the names take one of two; or all of them. */
export function takeOne<Case>(cases: readonly Case[], name: string): readonly Case[] {
  if (runsAll) return cases
  const sum = [...name].reduce((before, letter) => before + letter.charCodeAt(0), 0)
  const at = (commitNumber() + sum) % cases.length
  return cases.filter((_, index) => index === at)
}

/** The number of the commit that is checked out here, read once. */
let known: number | undefined
function commitNumber(): number {
  known ??= readNumber(findHead(import.meta.dirname))
  return known
}

/** Reads the number of a commit: its first 32 bits; 0 where there is no git that names one. */
export function readNumber(commit: string | undefined): number {
  return commit === undefined ? 0 : Number.parseInt(commit.slice(0, 8), 16)
}

/** Finds the commit that is checked out in a folder; undefined where git knows of none, or is not there. */
export function findHead(folder: string): string | undefined {
  try {
    // The folder may have another owner: it is only read.
    const text = execFileSync('git', ['-c', 'safe.directory=*', 'rev-parse', 'HEAD'], {
      cwd: folder,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
      timeout: 10_000,
    })
    return /^[0-9a-f]{40,64}$/.exec(text.trim())?.[0]
  } catch {
    return undefined
  }
}
