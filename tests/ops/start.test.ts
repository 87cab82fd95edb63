import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'

const program = join(import.meta.dirname, '../../bin/tollbase.js')
const folder = mkdtempSync(join(tmpdir(), 'tollbase-start-'))

afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Starts the service as `node bin/tollbase.js serve`; resolves once it is ready. */
async function start(name: string): Promise<{ child: ChildProcess; servicePid: number }> {
  const args = ['serve', '--port', '0', '--data-dir', join(folder, name)]
  const child = spawn(process.execPath, [program, ...args], { stdio: ['ignore', 'pipe', 'ignore'] })
  let output = ''
  while (!output.includes('tollbase listening on'))
    output += String((await once(child.stdout ?? child, 'data'))[0])
  const children = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8')
  return { child, servicePid: Number(children.trim().split(' ')[0]) }
}

/** False also for a process that has ended and waits for whoever asks for its exit code. */
function isRunning(pid: number): boolean {
  const file = `/proc/${pid}/stat`
  return existsSync(file) && !/\) [ZX] /.test(readFileSync(file, 'utf8'))
}

describe.runIf(process.platform === 'linux')('a service started as `node bin/tollbase.js`', () => {
  test('the service has the heap that other starts have, and ends with its exit code when it is told to', async () => {
    const { child, servicePid } = await start('told')
    expect(readFileSync(`/proc/${servicePid}/cmdline`, 'utf8')).toContain(
      '--max-semi-space-size=32',
    )
    child.kill('SIGTERM')
    expect(await once(child, 'exit')).toEqual([0, null])
    expect(isRunning(servicePid)).toBe(false)
  })

  test('the service ends in order when the process that started it is killed, and leaves nothing that holds its data', async () => {
    const { child, servicePid } = await start('killed')
    child.kill('SIGKILL')
    await expect.poll(() => isRunning(servicePid)).toBe(false)
    expect(existsSync(join(folder, 'killed', 'postgres', 'postmaster.pid'))).toBe(false)
  })

  test('a signal to all processes while the database is made ends the start in order, without a page of output', async () => {
    const dataDir = join(folder, 'early')
    const args = [
      '--max-semi-space-size=32',
      program,
      'serve',
      '--port',
      '0',
      '--data-dir',
      dataDir,
    ]
    const child = spawn(process.execPath, args, {
      stdio: ['ignore', 'ignore', 'pipe'],
      detached: true,
    })
    let told = ''
    child.stderr.on('data', (text) => {
      told += text
    })
    const ended = once(child, 'close')
    const hasBegun = () =>
      existsSync(dataDir) && readdirSync(dataDir).some((name) => name.startsWith('postgres.init'))
    await expect.poll(hasBegun, { interval: 10, timeout: 20_000 }).toBe(true)
    // The whole group gets it, as a terminal's Ctrl-C does; initdb may end by it, or be done by then.
    process.kill(-Number(child.pid), 'SIGTERM')
    expect(await ended).toEqual([0, null])
    expect(
      told
        .trim()
        .split('\n')
        .filter((line) => !line.startsWith('{')),
    ).toEqual([])
  })

  test.each([
    ['its shell', 'SIGTERM', 0],
    ['npm itself', 'SIGKILL', 1],
  ] as const)(
    'the service ends in order when npm started it and %s gets %s',
    async (_, signal, at) => {
      // npm names itself so, and starts a shell that waits for the program.
      const service = `${process.execPath} ${program} serve --port 0 --data-dir ${join(folder, `npm${at}`)}; true`
      const npm = `process.title = 'npm exec tollbase'; require('node:child_process').spawn('sh', ['-c', ${JSON.stringify(service)}], { stdio: 'inherit' })`
      const child = spawn(process.execPath, ['-e', npm], {
        stdio: ['ignore', 'pipe', 'ignore'],
        env: { ...process.env, npm_command: 'exec' },
      })
      let output = ''
      while (!output.includes('tollbase listening on'))
        output += String((await once(child.stdout, 'data'))[0])
      const listChildren = (pid: number) =>
        readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').map(Number)
      const npmPid = Number(child.pid)
      const [shell = 0] = listChildren(npmPid)
      const [outer = 0] = listChildren(shell)
      process.kill([shell, npmPid][at] ?? 0, signal)
      await expect.poll(() => isRunning(outer), { timeout: 20_000 }).toBe(false)
      expect(existsSync(join(folder, `npm${at}`, 'postgres', 'postmaster.pid'))).toBe(false)
    },
  )
})

test('a checkout that is not built says in one line what to run', () => {
  const copy = join(folder, 'tollbase.mjs')
  copyFileSync(program, copy)
  const { status, stderr } = spawnSync(process.execPath, [copy, 'dev'], { encoding: 'utf8' })
  expect([status, stderr]).toEqual([
    2,
    'tollbase: is not built yet; run `npm ci`, which builds it, or `npm run build`\n',
  ])
})
