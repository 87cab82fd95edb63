import { Agent } from 'node:http'
import { Agent as SecureAgent } from 'node:https'
import { Fault } from '../base/fault.ts'
import { isRecord } from '../base/is-record.ts'
import type { World } from '../base/world.ts'
import { AnswerTooLarge, postJson, TransportError } from './http-json.ts'

/** The error of a node that answered, with an error of JSON-RPC. */
export class RpcError extends Error {
  override readonly name = 'RpcError'
  readonly code: number
  /** The revert data as hexadecimal text, if the node gave it. */
  readonly data: string | undefined

  constructor(error: { readonly code: number; readonly message: string; readonly data?: string }) {
    super(error.message)
    this.code = error.code
    this.data = error.data
  }

  /** True if the called code refused: an answer of the chain, unlike every other error of a node. */
  get reverted(): boolean {
    return this.code === 3 || /\brevert(ed)?\b/i.test(this.message)
  }
}

export type CallOptions = {
  /** The most bytes of the answer: beyond them the call fails, see `isTooLarge`. */
  readonly answerBytesMax?: number
  /**
   * The answer may be large because of what strangers did: the call travels alone, and few at once, so that no other call
   * waits for it.
   */
  readonly isHeavy?: boolean
  /** The same of a small answer, more at once: in one batch they would pass the bound of one, and come apart. */
  readonly isAlone?: boolean
}

export type Rpc = {
  /** Returns the result; throws RpcError if the node answers with an error, PAYMENT_NETWORK_UNREACHABLE otherwise. */
  readonly call: (
    method: string,
    params: readonly unknown[],
    options?: CallOptions,
  ) => Promise<unknown>
  /** Ends all connections: calls under way fail, and so do later ones. */
  readonly close: () => void
}

/**
 * Makes a client that calls the node only once the check has passed; each call repeats the check until it does. A
 * signed transaction is sent only after a check of its own: another chain of the same id may have come to the address
 * since, and would take it.
 */
export function makeCheckedRpc(rpc: Rpc, check: () => Promise<void>): Rpc {
  let isPassed = false
  let checking: Promise<void> | undefined
  const pass = async () => {
    checking ??= check().finally(() => {
      checking = undefined
    })
    await checking
    isPassed = true
  }
  return {
    call: async (method, params, options) => {
      if (!isPassed || method === 'eth_sendRawTransaction') await pass()
      return rpc.call(method, params, options)
    },
    close: () => rpc.close(),
  }
}

export type RpcOptions = {
  readonly url: string
  readonly world: World
  readonly deadlineMs?: number
  readonly responseBytesMax?: number
}

const deadlineMsDefault = 10_000
const responseBytesMaxDefault = 8 * 1024 * 1024
const batchCallsMax = 100
const socketsMax = 16
/** Calls that travel alone, at once: most connections are left for the others, and heavy answers have some bytes in all. */
const atOnceMax = { heavy: 2, alone: 4 }
/** Calls of each kind that wait for their turn: strangers may ask for any number. */
const waitingMax = 32
/** Characters of an error's message that are kept: code of strangers may have written it. */
const messageCharsMax = 1_000

type Call = {
  readonly method: string
  readonly params: readonly unknown[]
  readonly bytesMax: number
  readonly resolve: (result: unknown) => void
  readonly reject: (error: unknown) => void
}

/**
 * Opens a JSON-RPC client. The calls of one turn of the event loop travel as one batch: a server under load then
 * pays for one HTTP request instead of one for each of a hundred payments.
 */
export function openRpc(options: RpcOptions): Rpc {
  const url = new URL(options.url)
  const secure = url.protocol === 'https:'
  const agent = new (secure ? SecureAgent : Agent)({ keepAlive: true, maxSockets: socketsMax })
  let waiting: Call[] = []
  let isClosed = false

  const bytesMaxDefault = options.responseBytesMax ?? responseBytesMaxDefault

  const flush = () => {
    const all = waiting
    waiting = []
    // The bound of a call is that of its batch, so those of another one travel apart.
    for (const bytesMax of new Set(all.map((call) => call.bytesMax))) {
      const calls = all.filter((call) => call.bytesMax === bytesMax)
      for (let at = 0; at < calls.length; at += batchCallsMax)
        void send(calls.slice(at, at + batchCallsMax), bytesMax)
    }
  }
  const send = async (calls: readonly Call[], bytesMax: number): Promise<void> => {
    try {
      const { status, value } = await postJson({
        url,
        agent,
        body: calls.map(({ method, params }, id) => ({ jsonrpc: '2.0', id, method, params })),
        world: options.world,
        deadlineMs: options.deadlineMs ?? deadlineMsDefault,
        responseBytesMax: bytesMax,
        // A repeated read is harmless, and the same signed bytes count once.
        repeatable: true,
        isClosed: () => isClosed,
      })
      deliver(calls, answersById(value, status))
    } catch (error) {
      if (error instanceof AnswerTooLarge && calls.length > 1) {
        // Anybody can ask for the receipt of a large transaction, which must not spoil the calls of others.
        const half = Math.ceil(calls.length / 2)
        void send(calls.slice(0, half), bytesMax)
        void send(calls.slice(half), bytesMax)
        return
      }
      const fault = toUnreachable(error)
      for (const call of calls) call.reject(fault)
    }
  }
  const sendAlone = async (call: Call) => {
    if (isClosed) call.reject(makeClosedFault())
    else await send([call], call.bytesMax)
  }
  const enterHeavy = openLine(atOnceMax.heavy, sendAlone)
  const enterAlone = openLine(atOnceMax.alone, sendAlone)
  return {
    call: (method, params, { answerBytesMax: bytesMax = bytesMaxDefault, isHeavy, isAlone } = {}) =>
      new Promise((resolve, reject) => {
        if (isClosed) return reject(makeClosedFault())
        const call = { method, params, bytesMax, resolve, reject }
        if (isHeavy === true) return enterHeavy(call)
        if (isAlone === true) return enterAlone(call)
        if (waiting.length === 0) setImmediate(flush)
        waiting.push(call)
      }),
    close: () => {
      isClosed = true
      agent.destroy()
    },
  }
}

/**
 * Opens a line of calls, of which so many are sent at once. One that finds it full fails like a call that the node says
 * nothing to: whoever waits for it asks again.
 */
function openLine(most: number, send: (call: Call) => Promise<void>): (call: Call) => void {
  const line: Call[] = []
  let underWay = 0
  const sendNext = async () => {
    if (underWay === most) return
    underWay += 1
    for (let call = line.shift(); call !== undefined; call = line.shift()) await send(call)
    underWay -= 1
  }
  return (call) => {
    if (line.length >= waitingMax)
      return call.reject(toUnreachable(new TransportError('too many large answers are awaited')))
    line.push(call)
    void sendNext()
  }
}

function makeClosedFault(): Fault {
  return toUnreachable(new TransportError('the client is closed'))
}

/** Returns true for the fault of a call whose answer alone has more bytes than are read. */
export function isTooLarge(error: unknown): boolean {
  return error instanceof Fault && error.cause instanceof AnswerTooLarge
}

/** The words of providers that bound the logs of an answer, by their number or by bytes. */
const tooManyWords =
  /more than \d+ (results|logs)|too many (results|logs)|(response|result)s? (size|set)|size exceeded|too large/i

/** The same for logs, where the node itself may refuse so many. */
export function hasTooManyLogs(error: unknown): boolean {
  if (isTooLarge(error)) return true
  const cause = error instanceof Fault ? error.cause : undefined
  return cause instanceof RpcError && tooManyWords.test(cause.message)
}

/** The codes of a method and of parameters that a node does not know, and of an unknown block. */
const unknownCodes: readonly number[] = [-32_601, -32_602, -39_001]
const unknownWords =
  /finalized|\btag\b|(block|header).*not found|(unknown|invalid|could not find) block|not supported|unsupported|invalid (argument|input|param)|pars(e|ing)|unmarshal/i
/** The words of a node that could tell at another time; it may repeat in them what it was asked. */
const busyWords = /limit|too many|exceeded|quota|capacity|busy|time(d )?out/i

/** Returns true where a node does not know the name of the final block: one that is only busy says nothing about it. */
export function isTagUnknown({ code, message }: RpcError): boolean {
  if (busyWords.test(message)) return false
  return unknownCodes.includes(code) || unknownWords.test(message)
}

/** Returns a fault that tells clients only that the network cannot be reached; the log has the cause. */
export function toUnreachable(error: unknown): Fault {
  if (error instanceof Fault) return error
  return new Fault('PAYMENT_NETWORK_UNREACHABLE', {
    internal: error instanceof Error ? error.message : String(error),
    cause: error,
    retryAfterSeconds: 5,
  })
}

function deliver(calls: readonly Call[], answers: ReadonlyMap<unknown, Answer>): void {
  calls.forEach((call, id) => {
    const answer = answers.get(id)
    if (answer === undefined) {
      call.reject(toUnreachable(new TransportError(`no answer to ${call.method}`)))
    } else if (answer.error !== undefined) {
      call.reject(new RpcError(answer.error))
    } else {
      call.resolve(answer.result)
    }
  })
}

type Answer = {
  readonly result: unknown
  readonly error?: { readonly code: number; readonly message: string; readonly data?: string }
}

function answersById(value: unknown, status: number): Map<unknown, Answer> {
  if (!Array.isArray(value)) {
    throw new TransportError(`status ${status}, not a batch of answers: ${excerpt(value)}`)
  }
  return new Map(value.filter(isRecord).map((each) => [each.id, parseAnswer(each)]))
}

function parseAnswer(each: Readonly<Record<string, unknown>>): Answer {
  if (!isRecord(each.error)) return { result: each.result }
  const { code, message, data } = each.error
  return {
    result: undefined,
    error: {
      code: typeof code === 'number' ? code : 0,
      message:
        typeof message === 'string'
          ? message.slice(0, messageCharsMax)
          : 'an error without a message',
      ...(typeof data === 'string' ? { data } : {}),
    },
  }
}

function excerpt(value: unknown): string {
  return JSON.stringify(value)?.slice(0, 200) ?? 'nothing'
}
