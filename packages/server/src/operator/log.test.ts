import { spawn, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { describe, expect, test } from 'vitest'

describe('openLogDestination', () => {
  /** Runs a program that has a log, and returns the log's messages and the program's exit code. */
  const run = (program: string) => {
    const file = join(import.meta.dirname, 'log.ts')
    const text = `import { writeSync } from 'node:fs'
const { createLog, openLogDestination } = await import(${JSON.stringify(file)})
const log = createLog('info', await openLogDestination('json'))
${program}`
    const { stderr, status } = spawnSync(
      process.execPath,
      ['--import', 'tsx', '--input-type=module', '-e', text],
      { encoding: 'utf8', timeout: 60_000 },
    )
    const lines = stderr.split('\n').filter((line) => line !== '')
    return {
      status,
      lines: lines.map((line) => (line.startsWith('{') ? JSON.parse(line).msg : line)),
    }
  }

  test('every line is there when the process ends, also by process.exit, in the order of writing', () => {
    const many = Array.from({ length: 2_000 }, (_, at) => `line ${at}`)
    const written = run(`for (let at = 0; at < 2000; at++) log.info('line ' + at)
process.exit(3)`)
    expect(written).toEqual({ status: 3, lines: many })
  })

  test('a warning is written at once, and so are the lines before it', () => {
    const { lines } = run(`log.info('first')
writeSync(2, 'gathered\\n')
log.warn('second')
writeSync(2, 'written\\n')`)
    expect(lines).toEqual(['gathered', 'first', 'second', 'written'])
  })

  test('lines of level info are written soon by themselves', () => {
    const { lines } = run(`log.info('first')
await new Promise((resolve) => setTimeout(resolve, 1000))
writeSync(2, 'later\\n')`)
    expect(lines).toEqual(['first', 'later'])
  })

  test.each(['json', 'pretty'])(
    'a service whose %s log nobody reads any more goes on',
    async (format) => {
      const file = join(import.meta.dirname, 'log.ts')
      const text = `const { createLog, openLogDestination } = await import(${JSON.stringify(file)})
const log = createLog('info', await openLogDestination('${format}'))
process.stdin.once('data', () => {
  for (let at = 0; at < 10; at++) log.warn('nobody reads this')
  console.log('alive')
  process.exit(0)
})
console.log('ready')`
      const args = ['--import', 'tsx', '--input-type=module', '-e', text]
      const child = spawn(process.execPath, args, { timeout: 60_000, killSignal: 'SIGKILL' })
      const said = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
      expect((await said.next()).value).toBe('ready')
      child.stderr.destroy()
      child.stdin.write('go')
      expect((await said.next()).value).toBe('alive')
    },
  )
})
