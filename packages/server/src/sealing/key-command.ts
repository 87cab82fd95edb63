import { type ChildProcess, spawn } from 'node:child_process'
import { isRecord } from '../base/is-record.ts'
import { Semaphore } from '../base/semaphore.ts'
import type { World } from '../base/world.ts'
import { aesKeyBytes } from './aes-gcm.ts'
import type { WrappedKey } from './local-master-keys.ts'

/** A program of the operator that has an external key manager wrap and unwrap data keys; see docs/encryption.md. */
export type KeyCommand = {
  /** The name of the manager's key: another one has all data keys wrapped anew. */
  readonly id: string
  readonly program: string
  readonly arguments: readonly string[]
  readonly timeoutMs: number
  /** The time for which unwrapped keys stay in memory. */
  readonly cacheMs: number
  /** The command opens what it wrapped, and wraps nothing more: the way back to a file. */
  readonly unwrapOnly: boolean
}

/**
 * The command failed. The message is for the operator, and contains no key that went in or came out.
 */
export class KeyCommandError extends Error {
  override readonly name = 'KeyCommandError'
}

const idStart = 'command:'
const outputCharsMax = 64 * 1024
const complaintCharsMax = 500
/** At most half of these are of one application: keys of another one never wait for all of its. */
const atOnceMax = 8
const waitingMax = 4_000
const waitingOfApplicationMax = 1_000
const waitMs = 60_000

/** Whose key it is: the text that the manager binds it to, and the application, whose keys take turns with others'. */
export type KeyContext = { readonly owner: string; readonly app: string }

/** The name that keys have which a command wraps. */
export function formatCommandKeyId({ id }: KeyCommand): string {
  return `${idStart}${id}`
}

export function isCommandKeyId(masterKey: string): boolean {
  return masterKey.startsWith(idStart)
}

/** Runs the command; a few at once, however many ask, and in turns of the applications. */
export class KeyCommandRunner {
  readonly command: KeyCommand
  readonly #world: World
  readonly #turns: Semaphore

  constructor(command: KeyCommand, world: World) {
    this.command = command
    this.#world = world
    this.#turns = new Semaphore({
      ...{ world, atOnceMax, waitingMax, waitMs },
      ...{ waitingOfApplicationMax, waitingOfCallerMax: waitingOfApplicationMax },
    })
  }

  /** Wraps a data key for its owner. Throws a KeyCommandError, or a Fault where too many wait. */
  async wrap(plain: Buffer, of: KeyContext): Promise<WrappedKey> {
    const { id } = this.command
    const wrapped = await this.#ask('wrap', of, { key_id: id, key: plain.toString('base64') })
    return { masterKey: formatCommandKeyId(this.command), wrapped: Buffer.from(wrapped) }
  }

  /** Unwraps a data key. Throws as `wrap` does. */
  async unwrap({ masterKey, wrapped }: WrappedKey, of: KeyContext): Promise<Buffer> {
    const key_id = masterKey.slice(idStart.length)
    const text = await this.#ask('unwrap', of, { key_id, wrapped: wrapped.toString() })
    const key = Buffer.from(text, 'base64')
    if (key.length === aesKeyBytes) return key
    throw this.#makeError('unwrap', `gave a key that is not ${aesKeyBytes} bytes in base64`)
  }

  #ask(operation: 'wrap' | 'unwrap', { owner, app }: KeyContext, given: object): Promise<string> {
    const turn = { application: app, caller: '', rank: 'key' } as const
    return this.#turns.run(turn, async () => {
      const request = { version: 1, operation, context: owner, ...given }
      const answer = parse(await this.#run(operation, JSON.stringify(request)))
      const member = operation === 'wrap' ? 'wrapped' : 'key'
      const value = isRecord(answer) ? answer[member] : undefined
      if (typeof value === 'string' && value !== '') return value
      throw this.#makeError(operation, `printed no JSON object with a text "${member}"`)
    })
  }

  #run(operation: string, input: string): Promise<string> {
    const { program, arguments: list, timeoutMs } = this.command
    return new Promise((resolve, reject) => {
      const child = spawn(program, [...list, operation], { detached: true })
      let isOver = false
      const fail = (problem: string) => {
        if (isOver) return
        isOver = true
        stop()
        killAll(child)
        reject(this.#makeError(operation, problem))
      }
      const stop = this.#world.every(timeoutMs, () =>
        fail(`did not end within ${timeoutMs / 1000} seconds`),
      )
      // A child that could not be started for want of open files has no streams, and its error is still to come.
      child.on('error', (error) => fail(`cannot be started: ${error.message}`))
      if (child.pid === undefined) return
      let [output, complaint] = ['', '']
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        output += text
        if (output.length > outputCharsMax) fail(`printed more than ${outputCharsMax} characters`)
      })
      child.stderr.setEncoding('utf8').on('data', (text: string) => {
        complaint = (complaint + text).slice(-complaintCharsMax)
      })
      child.on('close', (code, signal) => {
        stop()
        if (code === 0) resolve(output)
        else
          fail(`ended with ${code ?? signal}: ${complaint.trim() || 'it said nothing on stderr'}`)
      })
      // A program that does not read its input is judged by how it ends.
      child.stdin.on('error', () => undefined).end(`${input}\n`)
    })
  }

  #makeError(operation: string, problem: string): KeyCommandError {
    return new KeyCommandError(
      `encryption_key_command: ${this.command.program} ${operation} ${problem}. Encrypted collections wait for it; docs/encryption.md shows how to run it by hand`,
    )
  }
}

/** Ends the program with all that it has started. */
function killAll(child: ChildProcess): void {
  try {
    if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
  } catch {
    child.kill('SIGKILL')
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
