import { execFileSync } from 'node:child_process'

/**
 * The variable that has more tests run. TOLLBASE_TESTS=all npm test runs every test; with `files` every file runs, and
 * in each the cases of this commit, as a run of that commit would.
 */
const wanted = process.env.TOLLBASE_TESTS
const runsAll = wanted === 'all'

/** Each commit runs one of so many parts of the dear files, so as many commits in a row run all of them. */
export const partsOfFiles = 4

/**
 * Takes one of several parts of the cases of a test that is dear, another one after each round of the files: so each
 * case has run within `parts` times `partsOfFiles` commits in a row.
 * @example takeShare(mutants, 3) // a third; with TOLLBASE_TESTS=all, all of them
 */
export function takeShare<Case>(cases: readonly Case[], parts: number): readonly Case[] {
  return cases.filter((_, at) => isTaken(at, parts))
}

/** Says that the case of this place is in the part that this commit runs. */
export function isTaken(at: number, parts: number): boolean {
  return runsAll || findPart(at, parts) === readRound() % parts
}

/**
 * Finds the part that a case belongs to. Each row of so many cases has one of each part, and begins with another one, as
 * if by chance: counted off plainly, cases of four faults at every step would have one fault in each of four parts, and
 * one part could be all of the dear ones.
 */
export function findPart(at: number, parts: number): number {
  const row = Math.floor(at / parts)
  return (at + (Math.imul(row + 1, goldenRatio) >>> 16)) % parts
}

/** The multiplier of Fibonacci hashing: 2^32 divided by the golden ratio (Knuth, volume 3, section 6.4). */
const goldenRatio = 0x9e3779b1

/** Takes the part of the dear files that the commit of this number runs. */
export function takeFiles(
  seconds: ReadonlyMap<string, number>,
  number = readCommitNumber(),
): readonly string[] {
  if (runsAll || wanted === 'files') return [...seconds.keys()]
  return shareOut(seconds)[number % partsOfFiles] ?? []
}

/** Shares files out by their seconds: the dearest first, each goes to the part that has the fewest seconds by then. */
function shareOut(seconds: ReadonlyMap<string, number>): readonly (readonly string[])[] {
  const parts = Array.from({ length: partsOfFiles }, () => ({ seconds: 0, files: [] as string[] }))
  for (const [file, cost] of [...seconds].sort(([, a], [, b]) => b - a)) {
    const part = parts.reduce((least, one) => (one.seconds < least.seconds ? one : least))
    part.seconds += cost
    part.files.push(file)
  }
  return parts.map(({ files }) => files)
}

/** The lowest seed of a commit; the seeds that are run by hand are below it. */
const leastOfCommits = 1_000_000

/** Chooses the first of the seeds that a commit has for itself. */
export function chooseSeed(commit = findHead(import.meta.dirname)): number {
  return leastOfCommits + readNumber(commit)
}

/**
 * Takes one of the cases, by the commit and a name, so that half of the names take one of two; or all of them. The next
 * one is taken after each round of the files.
 */
export function takeOne<Case>(cases: readonly Case[], name: string): readonly Case[] {
  if (runsAll) return cases
  const sum = [...name].reduce((before, letter) => before + letter.charCodeAt(0), 0)
  const at = (readRound() + sum) % cases.length
  return cases.filter((_, index) => index === at)
}

/** Counts the rounds in which all dear files were run before this commit. */
function readRound(): number {
  return Math.floor(readCommitNumber() / partsOfFiles)
}

/**
 * Reads the number of the commit that is checked out here, once: commits in a row have numbers in a row. Where their
 * count is not known, it is one that its hash gives.
 */
export function readCommitNumber(): number {
  known ??= countCommits(import.meta.dirname) ?? readNumber(findHead(import.meta.dirname))
  return known
}
let known: number | undefined

/** Reads a number out of a commit: its first 32 bits; 0 where there is no git that names one. */
function readNumber(commit: string | undefined): number {
  return commit === undefined ? 0 : Number.parseInt(commit.slice(0, 8), 16)
}

/** Counts the commits up to the one that is checked out in a folder; undefined where git does not have them all. */
export function countCommits(folder: string): number | undefined {
  if (askGit(folder, ['rev-parse', '--is-shallow-repository']) !== 'false') return undefined
  const count = Number(askGit(folder, ['rev-list', '--count', 'HEAD']))
  return Number.isSafeInteger(count) && count > 0 ? count : undefined
}

/** Finds the commit that is checked out in a folder; undefined where git knows of none, or is not there. */
export function findHead(folder: string): string | undefined {
  return /^[0-9a-f]{40,64}$/.exec(askGit(folder, ['rev-parse', 'HEAD']) ?? '')?.[0]
}

/** Asks git about a folder; undefined where it does not answer, or is not there. */
function askGit(folder: string, command: readonly string[]): string | undefined {
  try {
    // The folder may have another owner: it is only read.
    const text = execFileSync('git', ['-c', 'safe.directory=*', ...command], {
      cwd: folder,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
      timeout: 10_000,
    })
    return text.trim()
  } catch {
    return undefined
  }
}
