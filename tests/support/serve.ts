import { readConfig } from '../../packages/server/src/config.ts'
import { serve } from '../../packages/server/src/main.ts'

/** The program for tests that kill it: `serve.ts <data folder>` on any free port. */
const dataDir = process.argv[2] ?? ''
const config = readConfig({ port: '0', dataDir, logLevel: 'error' }, {})
try {
  process.exitCode = await serve(config, { line: console.log, error: console.error })
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error))
  process.exitCode = 1
}
