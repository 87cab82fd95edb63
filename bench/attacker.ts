import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { constants, setPriority } from 'node:os'
import { makeHttpRequest, sendOnce } from './load.ts'

export type Attack = {
  readonly name: string
  readonly connections: number
  readonly path: '/list' | '/query/sql' | '/store'
  readonly body: object
  /** The request carries the key of the attacker's own application. */
  readonly isKeyed: boolean
}

export type AttackRun = {
  readonly port: number
  readonly key: string
  readonly forMs: number
}

type Job = { readonly attack: Attack; readonly run: AttackRun }

/**
 * Starts the attack in a process of its own, so that reads that are measured in this one do not wait for its event
 * loop, and returns when it has begun. The process stands for another machine, so it has the lowest priority on this
 * one. `answered` is the number of requests, whatever the answers were.
 */
export async function runAttacker(
  attack: Attack,
  run: AttackRun,
): Promise<{ readonly answered: Promise<number> }> {
  const child = fork(import.meta.filename, ['attack'], { execArgv: ['--import', 'tsx'] })
  const job: Job = { attack, run }
  child.send(job)
  await next(child)
  return { answered: next(child) }
}

async function next(child: ChildProcess): Promise<number> {
  const [message] = await once(child, 'message')
  return Number(message)
}

/** Sends each request on a connection of its own, as often as the connections allow, whatever the answers are. */
async function runAttack({ attack, run }: Job): Promise<number> {
  const headers = attack.isKeyed ? { 'x-app-key': run.key } : {}
  const request = makeHttpRequest(attack.path, JSON.stringify(attack.body), headers)
  process.send?.(0)
  const endsAt = performance.now() + run.forMs
  let answered = 0
  const attacker = async () => {
    while (performance.now() < endsAt) {
      // A body that is refused for its length is answered before it has been sent, and its connection is closed.
      await sendOnce(run.port, request).catch(() => undefined)
      answered += 1
    }
  }
  await Promise.all(Array.from({ length: attack.connections }, attacker))
  return answered
}

if (process.argv[2] === 'attack' && process.argv[1] === import.meta.filename) {
  setPriority(constants.priority.PRIORITY_LOW)
  process.once('message', (job: Job) => {
    void runAttack(job).then((answered) => {
      process.send?.(answered)
      process.disconnect?.()
    })
  })
}
