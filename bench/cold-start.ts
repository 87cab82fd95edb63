import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getCity } from './documents.ts'
import { makeHttpRequest, sendOnce } from './load.ts'
import { app, startDev } from './place.ts'
import { listDescendants, listProcesses } from './processes.ts'
import { collection, recordsTotal, storeItems } from './reads.ts'
import type { Benchmark, Row } from './report.ts'

/** `tollbase dev` on a data folder with 100,000 records: until it answers, and what it holds in memory then. */
export const coldStart: Benchmark = {
  name: 'cold-start',
  run: async ({ rounds }) => {
    const dataDir = mkdtempSync(join(tmpdir(), 'tollbase-bench-'))
    try {
      const first = await startDev(dataDir)
      await storeItems(first.port, { total: recordsTotal })
      await first.stop()
      const times: number[] = []
      let memory: readonly Row[] = []
      for (let round = 0; round < rounds; round++) {
        const startedAt = performance.now()
        const service = await startDev(dataDir)
        const readyMs = performance.now() - startedAt
        await mustAnswer(service.port)
        times.push(performance.now() - startedAt)
        if (round === 0) memory = memoryRows(service.pid, readyMs)
        await service.stop()
      }
      times.sort((a, b) => a - b)
      const middle = times[Math.floor(times.length / 2)] ?? 0
      return [
        {
          name: 'cold start with an existing data folder, until the first free answer',
          unit: '',
          value: `${(middle / 1000).toFixed(2)} s (${times.map((ms) => (ms / 1000).toFixed(2)).join(', ')})`,
          note: 'aim 2 s; service, PostgreSQL and devnet started after an orderly end, 100,000 records, file cache warm',
        },
        ...memory,
      ]
    } finally {
      rmSync(dataDir, { recursive: true, force: true })
    }
  },
}

async function mustAnswer(port: number): Promise<void> {
  const find = { city: { is: getCity(1, recordsTotal) } }
  const body = JSON.stringify({ root: `${app}::${collection}`, find, limit: 20 })
  const reply = await sendOnce(port, makeHttpRequest('/list', body))
  if (reply.status !== 200) throw new Error(`${reply.status} ${reply.body.toString()}`)
}

/** Reads the proportional set size in KiB, which counts pages that PostgreSQL's processes share once. */
function memoryRows(service: number, readyMs: number): Row[] {
  const all = listProcesses()
  const of = (pids: readonly number[]) => `${Math.round(sum(pids.map(readPssKib)) / 1024)} MB`
  const below = listDescendants(service, all)
  const named = (name: string) => below.filter((one) => one.name === name).map(({ pid }) => pid)
  const note = `proportional set size after the first answer, ready after ${Math.round(readyMs)} ms`
  return [
    { name: 'memory of the service', unit: '', value: of([service]), note },
    { name: 'memory of the database', unit: '', value: of(named('postgres')), note },
    { name: 'memory of the devnet', unit: '', value: of(named('anvil')), note },
  ]
}

function readPssKib(pid: number): number {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'latin1')
  return Number(/^Pss: +(\d+) kB/m.exec(text)?.[1] ?? 0)
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0)
}
