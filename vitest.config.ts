import { defineConfig } from 'vitest/config'
import { useMemoryFolder } from './tests/support/memory-folder.ts'
import { WholeRun } from './tests/support/whole-run.ts'

useMemoryFolder()

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
    sequence: { sequencer: WholeRun },
    // A changed area is tried again in seconds: each source is compiled once, and kept by the hash of its text.
    experimental: { fsModuleCache: true },
  },
})
