import { mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, vi } from 'vitest'
import { recoverLog } from '../../packages/server/src/operator/recover/recover-log.ts'
import { deriveAddress } from '../../packages/server/src/x402/signature.ts'
import type { Data } from '../support/data.ts'
import type { TestService } from '../support/service.ts'
import { writeTemporary } from './place.ts'

export const network = 'eip155:31337'
export const keyHex = `0x${'6c'.repeat(32)}`
export const signer = deriveAddress(Buffer.from(keyHex.slice(2), 'hex'))
export const common = { interval_seconds: 0.1, bytes_per_day: 1e9 }

export const makeEvmSettings = (url: string, more: object = {}) => ({
  ...common,
  ...{ network, rpc_url: url, confirmations: 1, signer_key_file: writeTemporary('key', keyHex) },
  ...more,
})

export const choose = (app: Data, publish: string) => app.call('PATCH', '', { publish })

/** Makes records of random text, which compresses badly. */
export const makeRandom = (count: number, bytes: number) =>
  Array.from({ length: count }, (_, n) => ({
    id: `r${n}`,
    text: Buffer.from(crypto.getRandomValues(new Uint8Array(bytes))).toString('base64'),
  }))

/** Waits until all blocks are published. A clock that is moved at each look ends the leases of keys, too. */
export async function awaitPublished(
  service: TestService,
  app: Data,
  advanceMs = 5_000,
): Promise<void> {
  const { height } = (await app.call('GET', '/chain/checkpoint')).body
  await vi.waitFor(
    async () => {
      service.world.advance(advanceMs)
      const [chain] = (await app.call('GET', '')).body.publish.chains
      expect(chain?.height).toBeGreaterThanOrEqual(height)
    },
    { timeout: 40_000, interval: 200 },
  )
}

/** Builds up the log from the chain alone. */
export async function recover(source: { rpc: string } | { celestia: string }, app: Data) {
  const { key, root, height } = (await app.call('GET', '/chain/checkpoint')).body
  const to = mkdtempSync(join(tmpdir(), 'tollbase-recovered-'))
  const report = await recoverLog({ ...source, key, to }, () => undefined)
  return { report, root, height, text: readFileSync(join(to, 'log.ndjson'), 'utf8') }
}
