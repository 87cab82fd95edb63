import { once } from 'node:events'
import { readConfig } from '../../packages/server/src/config/config.ts'
import { serve } from '../../packages/server/src/main.ts'
import { makeKillingWorld } from './kill.ts'

/** The program for tests that kill it: `serve.ts <data folder> [--devnet] [--config=<file>] [--wait]` on a free port. */
// The program ends with the process that started it, however that ended.
process.once('disconnect', () => process.kill(process.pid, 'SIGKILL'))
const [dataDir = '', ...flags] = process.argv.slice(2)
const devnet = flags.includes('--devnet')
const file = flags.find((flag) => flag.startsWith('--config='))?.slice('--config='.length)
try {
  // A restart is quicker where the next program has loaded already.
  if (flags.includes('--wait')) await once(process, 'message')
  const told = file === undefined ? {} : { config: file }
  const read = readConfig({ port: '0', dataDir, logLevel: 'error', devnet, ...told }, {})
  // A test sends more requests than any client; tests of the limits set their own in a file.
  const config = file === undefined ? { ...read, rateLimits: {} } : read
  const output = { line: console.log, error: console.error }
  process.exitCode = await serve(config, output, makeKillingWorld(dataDir))
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error))
  process.exitCode = 1
}
// As in the command line, a part that does not close must not keep the process alive.
setTimeout(() => process.exit(), 2_000).unref()
