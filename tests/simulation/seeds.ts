import { chooseSeed } from '@tollbase/testing/by-commit'

/** Seeds that once found a bug, in the program or in the simulation. */
export const found = {
  log: [] as readonly number[],
  market: [
    102, 183, 295, 369, 652, 681, 768, 817, 971, 1018, 1075, 1132, 1159, 1625, 1634, 1667, 1700,
    1874, 2089, 2509, 2564, 2695, 2744, 2790, 3023, 3368, 3706, 4442, 4731, 4850, 5690, 6113, 6198,
    6318, 747_678_679, 983_610_172, 1_307_686_943, 2_488_724_059, 3_849_968_175,
  ] as readonly number[],
}

/** Chooses the first of the tests' seeds, and gives the reason for it: each commit has other seeds. */
export function chooseFirstSeed(commit: string | undefined): {
  readonly first: number
  readonly why: string
} {
  if (commit === undefined) return { first: 1, why: 'there is no git here that names a commit' }
  const first = chooseSeed(commit)
  return { first, why: `by commit ${commit.slice(0, 12)}` }
}
