import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { verifyDocument } from '@tollbase/verify/verify'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { readConfig } from '../../packages/server/src/config/config.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { rebuild } from '../../packages/server/src/operator/rebuild.ts'
import { readPostmasterPid } from '../support/kill.ts'
import { type Program, startProgram } from '../support/program.ts'
import { type Json, send } from '../support/service.ts'

const quiet = () => undefined

describe('the program when it is killed', () => {
  let dataDir = ''
  const programs: Program[] = []
  beforeEach(() => {
    dataDir = mkdtempSync(join(tmpdir(), 'tollbase-crash-test-'))
  })
  afterEach(async () => {
    for (const program of programs.splice(0)) await program.end('SIGKILL')
    rmSync(dataDir, { recursive: true, force: true })
  })

  const start = async () => {
    const program = startProgram(dataDir)
    programs.push(program)
    return { program, url: await program.url }
  }
  const operator = () => ({
    authorization: `Bearer ${readFileSync(join(dataDir, 'operator-key'), 'utf8').trim()}`,
  })
  const createApp = async (url: string): Promise<Record<string, string>> => {
    const { body } = await send(url, {
      method: 'POST',
      path: '/api/apps',
      body: { name: 'Crash', app_id: 'crash' },
      headers: operator(),
    })
    return { 'x-app-key': body.app_key }
  }

  /** Stores from several writers until stopped; gives the acknowledged records by id. */
  const load = (url: string, headers: Readonly<Record<string, string>>, round: string) => {
    const acknowledged = new Map<string, number>()
    let over = false
    const writer = async (name: string) => {
      for (let n = 0; !over; n++) {
        const id = `${round}-${name}-${n}`
        const data = [
          { id, n },
          { id: `${name}-latest`, n, round },
        ]
        const reply = await send(url, {
          method: 'POST',
          path: '/store',
          body: { root: 'crash::notes', data },
          headers,
        }).catch(() => undefined)
        if (reply?.status === 202) acknowledged.set(id, n)
        else await wait(20)
      }
    }
    const writers = ['a', 'b', 'c', 'd'].map(writer)
    return {
      acknowledged,
      stop: async () => {
        over = true
        await Promise.all(writers)
      },
    }
  }

  const expectAll = async (
    url: string,
    headers: Readonly<Record<string, string>>,
    acknowledged: ReadonlyMap<string, number>,
  ) => {
    // The tables follow the log; once they show this record, they show all before it.
    const last = await send(url, {
      method: 'POST',
      path: '/store?wait=true',
      body: { root: 'crash::notes', data: [{ id: 'last' }] },
      headers,
    })
    expect(last.status).toBe(200)
    const { status, body } = await send(url, {
      method: 'POST',
      path: '/list',
      body: { root: 'crash::notes' },
      headers,
    })
    expect(status).toBe(200)
    const found = new Map(body.records.map((record: Json) => [record.id, record.n]))
    for (const [id, n] of acknowledged) expect(found.get(id), id).toBe(n)
    const sample = [...acknowledged.keys()].filter((_, at) => at % 97 === 0)
    const head = await send(url, {
      method: 'GET',
      path: '/api/apps/crash/chain/checkpoint',
      headers,
    })
    for (const id of sample) {
      const path = `/api/apps/crash/collections/notes/records/${id}/proof`
      const proof = await send(url, { method: 'GET', path, headers })
      expect(verifyDocument(proof.text, { trustedKey: head.body.key }).ok, id).toBe(true)
    }
  }

  test('acknowledged records survive kill -9 of the service and of its database, and audit and rebuild agree', async () => {
    let { program, url } = await start()
    const headers = await createApp(url)
    const all = new Map<string, number>()
    const keep = (acknowledged: ReadonlyMap<string, number>) => {
      expect(acknowledged.size).toBeGreaterThan(10)
      for (const [id, n] of acknowledged) all.set(id, n)
    }

    const first = load(url, headers, 'one')
    await wait(1200)
    await program.end('SIGKILL')
    await first.stop()
    keep(first.acknowledged)
    ;({ program, url } = await start())
    await expectAll(url, headers, all)

    const second = load(url, headers, 'two')
    await wait(800)
    process.kill(readPostmasterPid(dataDir), 'SIGKILL')
    const ready = () =>
      send(url, { method: 'GET', path: '/ready' }).then(
        ({ status }) => status,
        () => 0,
      )
    await expect.poll(ready).not.toBe(200)
    const before = second.acknowledged.size
    await expect
      .poll(() => second.acknowledged.size, { timeout: 30_000 })
      .toBeGreaterThan(before + 10)
    await second.stop()
    keep(second.acknowledged)
    await expectAll(url, headers, all)

    expect(await program.end('SIGTERM'), program.output()).toBe(0)
    const config = readConfig({ dataDir }, {})
    expect(await audit(config, quiet)).toMatchObject({ equal: true })
    expect(await rebuild(config, quiet)).toMatchObject({ equal: true })
    expect(await audit(config, quiet)).toMatchObject({ equal: true })
    ;({ program, url } = await start())
    await expectAll(url, headers, all)
    expect(await program.end('SIGTERM')).toBe(0)
  })

  test('a second process on the data folder is refused, naming the folder and the process', async () => {
    const { program, url } = await start()
    const second = startProgram(dataDir)
    programs.push(second)
    expect(await second.ended).not.toBe(0)
    expect(second.output()).toContain(dataDir)
    expect(second.output()).toContain(String(program.pid))
    expect((await send(url, { method: 'GET', path: '/health' })).status).toBe(200)
    await expect(audit(readConfig({ dataDir }, {}), quiet)).rejects.toThrow(String(program.pid))
  })
})
