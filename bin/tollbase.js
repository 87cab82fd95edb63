#!/usr/bin/env -S node --max-semi-space-size=32
// The flag above gives young objects room for a request's life, which saves some 5 % of processor time. V8 takes it
// only at its start, so a start without it (`node bin/tollbase.js`, or where shebangs are unknown) starts node again.
import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const flag = '--max-semi-space-size'
const given = [...process.execArgv, process.env.NODE_OPTIONS ?? ''].join(' ')
const main = new URL('../dist/main.js', import.meta.url)
const [major, minor] = process.versions.node.split('.').map(Number)

if (major < 20 || (major === 20 && minor < 19)) {
  console.error(`tollbase: needs Node.js 20.19 or newer; this is ${process.versions.node}`)
  process.exitCode = 2
} else if (!existsSync(main)) {
  console.error('tollbase: is not built yet; run `npm ci`, which builds it, or `npm run build`')
  process.exitCode = 2
} else if (given.includes(flag)) {
  if (process.channel === undefined) endWithNpm()
  else endWithParent()
  void import(main.href)
} else {
  startAgain()
}

function startAgain() {
  const args = [...process.execArgv, `${flag}=32`, fileURLToPath(import.meta.url)]
  const child = spawn(process.execPath, [...args, ...process.argv.slice(2)], {
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
  })
  for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
  // A terminal sends Ctrl-C to both processes, and a second SIGINT would cut the child's orderly end short.
  process.on('SIGINT', () => process.stdin.isTTY || child.kill('SIGINT'))
  endWithNpm()
  child.on('exit', (code, signal) => {
    if (signal === null) process.exit(code)
    process.removeAllListeners(signal)
    process.kill(process.pid, signal)
  })
}

/** Ends this process in order when the one that started it again was killed: nobody else would end it. */
function endWithParent() {
  process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'))
  process.channel?.unref()
}

/**
 * Ends this process in order once npm or npx, which started it, is gone. They do so by a shell that passes no signal
 * on, and a killed one leaves its children behind.
 */
function endWithNpm() {
  if (process.env.npm_command === undefined) return
  const starters = listStarters()
  const watch = setInterval(() => {
    if (listStarters() === starters) return
    clearInterval(watch)
    process.kill(process.pid, 'SIGTERM')
  }, 1000)
  watch.unref()
}

/** The shell and npm; without the shell npm alone, as the one before it is the user's own. */
function listStarters() {
  const { ppid } = readProcess(process.ppid)
  return readProcess(ppid).name.startsWith('npm') ? `${process.ppid} ${ppid}` : `${process.ppid}`
}

/** Where the system shows no processes as files, only the parent is known. */
function readProcess(pid) {
  try {
    const [, name, ppid] = /\((.*)\) \S+ (\d+)/s.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))
    return { name, ppid }
  } catch {
    return { name: '', ppid: '' }
  }
}
