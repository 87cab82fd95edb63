import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { startService } from '../../packages/server/src/app.ts'
import { realWorld } from '../../packages/server/src/base/world.ts'
import { readConfig } from '../../packages/server/src/config/config.ts'

test('a start that takes longer than the service waits for anything logs no error', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'tollbase-slow-start-'))
  const lines: string[] = []
  const atStart: string[] = []
  const stream = new Writable({
    write: (chunk: Buffer, _, done) => {
      lines.push(String(chunk))
      done()
    },
  })
  // Each timer is due before the next step of the start.
  const world = {
    ...realWorld,
    every: (ms: number, run: () => void) => {
      const due = setImmediate(run)
      const stop = realWorld.every(ms, run)
      return () => {
        clearImmediate(due)
        stop()
      }
    },
  }
  try {
    const read = readConfig({ port: '0', dataDir, logLevel: 'warn', logFormat: 'json' }, {})
    const config = { ...read, anchors: 'off', publishers: 'off' } as const
    const running = await startService({ config, world, log: pino({ level: 'warn' }, stream) })
    atStart.push(...lines)
    await running.close()
  } finally {
    rmSync(dataDir, { recursive: true, force: true })
  }
  expect(atStart).toEqual([])
}, 60_000)
