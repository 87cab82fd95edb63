import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { createTestDatabase } from '../database/testing.ts'
import { auditChain } from './audit-chain.ts'
import type { CrashWriterInput } from './crash-writer.ts'
import { createSigningKey, loadSigner } from './signing.ts'
import { createTestChain } from './testing.ts'

const rounds = 3
const leaseTtlMs = 400

test('every acknowledged entry survives SIGKILL of its producer, in its place, and is applied once', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'tollbase-crash-'))
  const shared = await createTestDatabase()
  try {
    const { schema, options, open, applied } = await createTestChain(shared.database)
    const { connection } = shared
    const keyPath = join(folder, 'chain-key.pem')
    await createSigningKey(keyPath)
    const signer = await loadSigner(keyPath, 'data.example')
    const acknowledged = new Map<number, string>()
    for (let round = 0; round < rounds; round++) {
      const input = {
        connection,
        schema,
        origin: options.origin,
        keyPath,
        holder: `writer${round}`,
        leaseTtlMs,
      }
      for (const line of await linesUntilKilled(input, 300 + 170 * round)) {
        const [leaf = '', body = ''] = line.split(' ')
        expect(acknowledged.has(Number(leaf)), `leaf ${leaf} twice`).toBe(false)
        acknowledged.set(Number(leaf), body)
      }
      const chain = await open({ signer, leaseTtlMs })
      const bodies = await applied()
      expect(bodies).toHaveLength(chain.head().size)
      for (const [leaf, body] of acknowledged) expect(bodies[leaf], `leaf ${leaf}`).toBe(body)
      await chain.close()
    }
    expect(acknowledged.size).toBeGreaterThan(100)
    const report = await auditChain(shared.database, schema, {
      origin: options.origin,
      vkey: signer.vkey,
    })
    expect(report).toMatchObject({ ok: true })
  } finally {
    await shared.drop()
    await rm(folder, { recursive: true })
  }
})

/** The whole lines that a writer printed before it was killed, some time after its first one. */
async function linesUntilKilled(input: CrashWriterInput, afterMs: number): Promise<string[]> {
  const loader = createRequire(import.meta.url).resolve('tsx')
  const program = fileURLToPath(new URL('crash-writer.ts', import.meta.url))
  const args = ['--import', loader, program, JSON.stringify(input)]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(child, 'close')
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text
  })
  await Promise.race([once(child.stdout, 'data'), ended])
  await wait(afterMs)
  child.kill('SIGKILL')
  await ended
  return output.split('\n').slice(0, -1)
}
