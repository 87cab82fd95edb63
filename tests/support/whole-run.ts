import { relative } from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { takeFiles } from './by-commit.ts'
import dearFiles from './dear-files.json' with { type: 'json' }

const seconds = new Map(Object.entries(dearFiles))

/** The dear files of which each commit has a part; the simulation has other seeds for each commit, so it always runs. */
export const shared = [...seconds.keys()].filter(
  (file) => file !== 'tests/simulation/simulation.test.ts',
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
    const left = new Set(shared)
    for (const file of takeFiles(shared)) left.delete(file)
    if (left.size > 0) {
      const run = shared.length - left.size
      this.ctx.logger.log(
        `This commit runs ${run} of ${shared.length} dear test files; TOLLBASE_TESTS=all runs them all.\n`,
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
