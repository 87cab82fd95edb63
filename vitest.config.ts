import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { useMemoryFolder } from './tests/support/memory-folder.ts'

useMemoryFolder()

/** Test files that take a minute or more start first; started last, each would run alone at the end. */
const longest = [
  'tests/simulation/mutants.test.ts',
  'tests/simulation/simulation.test.ts',
  'tests/collections/filled-columns.test.ts',
  'tests/faults/matrix.test.ts',
  'tests/views/engine.test.ts',
  'tests/access/matrix.test.ts',
  'tests/payments/crash-points.test.ts',
  'tests/access/shown.test.ts',
  'tests/encryption/changed-blobs.test.ts',
  'tests/security/loop.test.ts',
  'tests/anchoring/celestia.test.ts',
  'tests/collections/killed-filling.test.ts',
  'tests/encryption/resealing.test.ts',
  'tests/payments/channel-crashes.test.ts',
  'tests/views/service.test.ts',
  'tests/faults/long-work.test.ts',
  'tests/faults/disk.test.ts',
  'tests/collections/many.test.ts',
]

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const others = await super.sort(files)
    const first = longest.flatMap((name) =>
      others.filter(({ moduleId }) => moduleId.endsWith(name)),
    )
    return [...new Set([...first, ...others])]
  }
}

export default defineConfig({
  test: {
    include: ['packages/*/src/**/*.test.ts', 'tests/**/*.test.ts'],
    setupFiles: ['./tests/support/compare-bytes.ts'],
    testTimeout: 60_000,
    hookTimeout: 120_000,
    // A poll waits for something that will come; a loaded machine only makes it come later.
    expect: { poll: { timeout: 30_000 } },
    // Twice the processors: most tests wait for other processes, chains and clocks about half of their time.
    maxWorkers: 4,
    // Tests of one file that say that they may run at once.
    maxConcurrency: 3,
    // Each loads the code, and starts its PostgreSQL, once and not for each file.
    isolate: false,
    sequence: { sequencer: LongestFirst },
    // A changed area is tried again in seconds: each source is compiled once, and kept by the hash of its text.
    experimental: { fsModuleCache: true },
  },
})
