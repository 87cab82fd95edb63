import { defineConfig } from 'vitest/config'
import { plantedMutants } from './tests/simulation/mutant-plugin.ts'

export default defineConfig({
  plugins: [plantedMutants()],
  resolve: { conditions: ['source'] },
  ssr: { resolve: { conditions: ['source'] } },
  test: {
    include: ['packages/*/src/**/*.test.ts', 'tests/**/*.test.ts'],
    testTimeout: 60_000,
    hookTimeout: 120_000,
    // A poll waits for something that will come; a loaded machine only makes it come later.
    expect: { poll: { timeout: 30_000 } },
    maxWorkers: 2,
  },
})
