import { execFileSync } from 'node:child_process'

/** Seeds that once found something, in the program or in the simulation. */
export const found = {
  log: [] as readonly number[],
  market: [183, 295, 369, 768, 1075, 1634, 2_488_724_059] as readonly number[],
}

/** Beyond the seeds that are run by hand. */
const leastOfCommits = 1_000_000

/** The first of the seeds that the tests take, and why it is that: each commit has others. */
export function firstSeed(commit: string | undefined): {
  readonly first: number
  readonly why: string
} {
  if (commit === undefined) return { first: 1, why: 'there is no git here that names a commit' }
  const first = leastOfCommits + Number.parseInt(commit.slice(0, 8), 16)
  return { first, why: `by commit ${commit.slice(0, 12)}` }
}

/** The commit that is checked out in a folder; undefined where git knows of none, or is not there. */
export function headOf(folder: string): string | undefined {
  try {
    // Whoever cloned it: it is only read.
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
