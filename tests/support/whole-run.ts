import { relative } from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { partsOfFiles, readCommitNumber, takeFiles } from './by-commit.ts'
import dearFiles from './dear-files.json' with { type: 'json' }

const simulation = 'tests/simulation/simulation.test.ts'

/** The seconds of each dear file in a run of all. */
const seconds = new Map(Object.entries(dearFiles))

/** The dear files of which each commit has a part; the simulation has other seeds for each commit, so it always runs. */
export const shared: ReadonlyMap<string, number> = new Map(
  [...seconds].filter(([file]) => file !== simulation),
)

/**
 * Starts the dear files first, as one that is started last would run alone at the end. A run of all files takes a part
 * of the dear ones; who names files or folders gets all of those.
 */
export class WholeRun extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const others = await super.sort(files)
    const sorted = others.sort((a, b) => this.#seconds(b) - this.#seconds(a))
    const all = await this.ctx.globTestSpecifications()
    if (files.length < all.length) return sorted
    const left = new Set(shared.keys())
    for (const file of takeFiles(shared)) left.delete(file)
    if (left.size > 0) {
      const run = shared.size - left.size
      this.ctx.logger.log(
        `This commit, number ${readCommitNumber()}, runs ${run} of ${shared.size} dear test files; ` +
          `any ${partsOfFiles} commits in a row run them all, and so does TOLLBASE_TESTS=all.\n`,
      )
    }
    return sorted.filter((file) => !left.has(this.#name(file)))
  }

  /** The seconds of a file in a run of all; 0 where it is not a dear one. */
  #seconds(file: TestSpecification): number {
    return seconds.get(this.#name(file)) ?? 0
  }

  #name({ moduleId }: TestSpecification): string {
    return relative(this.ctx.config.root, moduleId)
  }
}
