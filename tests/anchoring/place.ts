import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, vi } from 'vitest'
import { realWorld } from '../../packages/server/src/base/world.ts'
import {
  findFreePort,
  findProcess,
  spawnAnvil,
  stopProcess,
} from '../../packages/server/src/devnet/anvil.ts'
import type { Data } from '../support/data.ts'
import type { Json, TestService } from '../support/service.ts'

/** A chain of a test's own, beside the devnet of a service. */
export type OuterChain = {
  readonly url: string
  readonly port: number
  readonly call: (method: string, ...params: readonly unknown[]) => Promise<Json>
  readonly stop: () => Promise<void>
}

export async function startOuterChain(
  options: { port?: number; chainId?: number; genesisTime?: number } = {},
): Promise<OuterChain> {
  const folder = mkdtempSync(join(tmpdir(), 'tollbase-outer-'))
  const port = await findFreePort(options.port)
  const { chainId = 31337, genesisTime = 1_700_000_000 } = options
  const { pid } = spawnAnvil({ folder, stateFile: undefined, chainId, genesisTime, port })
  const url = `http://127.0.0.1:${port}`
  const call: OuterChain['call'] = (method, ...params) => callChain(url, method, params)
  const id = pid === undefined ? undefined : findProcess(pid)
  if (id === undefined) throw new Error('the chain did not start')
  await vi.waitFor(() => call('eth_chainId'), { timeout: 20_000 })
  return {
    url,
    port,
    call,
    stop: async () => {
      await stopProcess(id, realWorld)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

export async function callChain(
  url: string,
  method: string,
  params: readonly unknown[],
): Promise<Json> {
  const answer = await fetch(url, {
    method: 'POST',
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    headers: { 'content-type': 'application/json' },
  })
  const { result, error }: Json = await answer.json()
  if (error !== undefined) throw new Error(`${method}: ${JSON.stringify(error)}`)
  return result
}

/** Writes a file into a folder that lasts as long as the process, and returns its path. */
export function writeTemporary(name: string, content: string): string {
  const file = join(mkdtempSync(join(tmpdir(), 'tollbase-anchoring-')), name)
  writeFileSync(file, content, { mode: 0o600 })
  return file
}

/** Waits until the proof of a record has an anchor. */
export async function readAnchoredProof(
  service: TestService,
  app: Data,
  key: string,
): Promise<Json> {
  const path = `/api/apps/${app.appId}/collections/notes/records/${key}/proof`
  service.world.advance(5_000)
  return vi.waitFor(
    async () => {
      const { body } = await service.request('GET', path, { headers: app.headers })
      expect(body.anchor).toBeDefined()
      return body
    },
    { timeout: 30_000, interval: 100 },
  )
}
