import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { createPublicClient, type Hex, http, parseAbi } from 'viem'
import { expect } from 'vitest'
import { realWorld } from '../../packages/server/src/base/world.ts'
import { readConfig } from '../../packages/server/src/config/config.ts'
import { sql } from '../../packages/server/src/database/sql.ts'
import { findProcess, stopProcess } from '../../packages/server/src/devnet/anvil.ts'
import { auditStorage } from '../../packages/server/src/operator/audit/audit.ts'
import {
  type MaintenanceReport,
  runWithStorage,
} from '../../packages/server/src/operator/maintenance.ts'
import { type Asked, ask, type PaymentHeader } from '../support/buyer.ts'
import { type Program, startProgram } from '../support/program.ts'
import { type Json, send, type TestReply, type TestService } from '../support/service.ts'

/** The program on a data folder of its own, in which it can be restarted; its chain of money outlives it. */
export type Place = {
  readonly dataDir: string
  readonly service: Pick<TestService, 'request' | 'createApp'>
  readonly program: () => Program
  /** http://host:port of the program that runs now. */
  readonly url: () => string
  /** Starts the program on the data that the last one left. */
  readonly start: () => Promise<void>
  /** Reads the balance of an address on its chain. */
  readonly onChain: (address: string) => Promise<bigint>
  /** The address that receives the payments. */
  readonly payTo: string
  /** Ends the processes that outlive the program, which has ended. */
  readonly leave: () => Promise<void>
  /** Ends everything, and removes the folder where it was made here. */
  readonly close: () => Promise<void>
}

export type Books = {
  readonly report: MaintenanceReport
  /** The balances by account, in atomic units. */
  readonly accounts: ReadonlyMap<string, bigint>
}

/** The longest time in which a program becomes able again, on a slow day too. */
const recoveryMs = 60_000
const pauseMs = 20

/** Starts the program with a devnet on a new folder, or in the one given. */
export async function openPlace(folder?: string): Promise<Place> {
  const dataDir = folder ?? mkdtempSync(join(tmpdir(), 'tollbase-faults-'))
  let program = startProgram(dataDir, ['--devnet'])
  let url = await program.url
  let next = startProgram(dataDir, ['--devnet', '--wait'])
  const service: Place['service'] = {
    request: (method, path, options = {}) => send(url, { method, path, ...options }),
    createApp: async (id = 'market') => {
      const key = readFileSync(join(dataDir, 'operator-key'), 'utf8').trim()
      const headers = { authorization: `Bearer ${key}` }
      const body = { name: id, app_id: id }
      const reply = await service.request('POST', '/api/apps', { body, headers })
      expect(reply.status, reply.text).toBe(201)
      const { app_key, key_hash } = reply.body
      return { appId: id, key: app_key, keyHash: key_hash, headers: { 'x-app-key': app_key } }
    },
  }
  const { body } = await service.request('GET', '/.well-known/tollbase')
  const [network] = body.networks
  return {
    dataDir,
    service,
    program: () => program,
    url: () => url,
    start: async () => {
      program = next
      program.go()
      url = await program.url
      next = startProgram(dataDir, ['--devnet', '--wait'])
    },
    onChain: (address) => balanceOnChain(network, address),
    payTo: network.pay_to,
    leave: () => endDevnet(dataDir),
    close: async () => {
      await next.end('SIGKILL')
      await program.end('SIGTERM')
      await endDevnet(dataDir)
      if (folder === undefined) rmSync(dataDir, { recursive: true, force: true })
    },
  }
}

/** Repeats a request as a client does that got no answer, until it is neither cut off nor told to wait. */
export async function insist(
  service: Place['service'],
  asked: Asked,
  header: PaymentHeader = {},
): Promise<TestReply> {
  const end = Date.now() + recoveryMs
  for (;;) {
    const reply = await ask(service, asked, header).catch(() => undefined)
    if (reply !== undefined && reply.status !== 503) return reply
    if (Date.now() > end) throw new Error(`no answer: ${reply?.text ?? 'not reachable'}`)
    await wait(pauseMs)
  }
}

/** Audits a folder on which nothing runs, and reads its ledger. */
export function readBooks(dataDir: string): Promise<Books> {
  return runWithStorage(readConfig({ dataDir }, {}), async (database, places) => {
    const report = await auditStorage(database, places, { progress: () => undefined })
    const rows = await database.query<{ account: string; balance: string }>(
      sql`SELECT account, balance FROM system.account`,
    )
    const accounts = new Map(rows.map(({ account, balance }) => [account, BigInt(balance)]))
    return { report, accounts }
  })
}

async function balanceOnChain(network: Json, address: string): Promise<bigint> {
  const client = createPublicClient({ transport: http(network.rpc_url) })
  return client.readContract({
    address: network.asset as Hex,
    abi: parseAbi(['function balanceOf(address) view returns (uint256)']),
    functionName: 'balanceOf',
    args: [address as Hex],
  })
}

/** A program that was killed leaves its chain running. */
async function endDevnet(dataDir: string): Promise<void> {
  const { pid, started }: Json = JSON.parse(
    readFileSync(join(dataDir, 'devnet', 'anvil.json'), 'utf8'),
  )
  if (findProcess(pid)?.started === started) await stopProcess({ pid, started }, realWorld)
}
