import type { OperationId } from '@tollbase/contract/contract'
import { limits } from '@tollbase/contract/limits'
import type { Route } from '@tollbase/contract/route'
import type { Logger } from 'pino'
import { awaitWithin } from '../../base/await-within.ts'
import { Fault } from '../../base/fault.ts'
import type { World } from '../../base/world.ts'
import { runWithCommitNote } from '../../chain/commit-notes.ts'
import type { Database } from '../../database/database.ts'
import { HttpReply } from '../../http/reply.ts'
import type { RequestInfo } from '../../http/request-info.ts'
import type { Caller } from '../access/access.ts'
import type { Tenants } from '../applications/tenants.ts'
import { findPayingKey } from '../payments/budgets/paying-key.ts'
import { hasSignInHeader } from '../payments/budgets/sign-in.ts'
import { hasPayment } from '../payments/presented/presented-payment.ts'
import { type NamedAnswer, openAnswer, sealAnswer } from './named-answer.ts'
import {
  adoptNamedRequest,
  deleteRefused,
  dropExcess,
  dropExpired,
  findNamedRequest,
  insertNamedRequest,
  keepNamedAnswer,
  type NamedRequest,
} from './named-request-store.ts'
import { findRequestName, type RequestName } from './request-name.ts'

export type NamedRequestPorts = {
  readonly database: Database
  readonly tenants: Tenants
  readonly world: World
  readonly log: Pick<Logger, 'warn'>
  /** 32 bytes that the ids of requests are made with. */
  readonly secret: Buffer
  /** 32 bytes that seal named answers. */
  readonly answerKey: Buffer
}

type Call = { readonly caller: Caller; readonly requestInfo: RequestInfo }
type Operation = { readonly operationId: string; readonly route: Route }
type Asked = {
  readonly call: Call
  readonly operation: Operation
  readonly work: () => Promise<unknown>
}

/** An answer, and whether it was given before. */
export type Answered = { readonly answer: unknown; readonly isRepeat: boolean }

/**
 * Operations that find by themselves what they began, under a name that is made of the same key: a crash in between
 * only makes them go on.
 */
const resumed: ReadonlySet<string> = new Set([
  'requestPayout',
  'cancelPayout',
  'withdrawFromWallet',
  'withdrawFromApplication',
  'withdrawFromPlatform',
  'refundSale',
  'settlePayment',
  'migrateCollection',
  'eraseSubject',
] satisfies OperationId[])

const tidyIntervalMs = 60_000

/**
 * Carries out a request with an Idempotency-Key once. Its row is there before it begins; whatever it appends to a chain
 * is noted in the commit of that block; its answer is kept, sealed, before it is sent. So a process that dies leaves a
 * row that tells whether the request is still to be done.
 */
export class NamedRequests {
  readonly #ports: NamedRequestPorts
  readonly #holder: string
  readonly #busy = new Map<string, Promise<unknown>>()

  constructor(ports: NamedRequestPorts) {
    this.#ports = ports
    this.#holder = ports.world.randomBytes(16).toString('hex')
  }

  /** Does the work of a call, unless it was done before by the same caller under the same key. */
  async run(call: Call, operation: Operation, work: () => Promise<unknown>): Promise<Answered> {
    const name = findRequestName(call, operation, this.#ports.secret)
    if (name === undefined) return { answer: await work(), isRepeat: false }
    const until = this.#ports.world.ticks() + limits.namedRequestWaitMs
    // Nothing may come between the look that finds nobody at it and the turn.
    for (let busy = this.#busy.get(name.id); busy !== undefined; busy = this.#busy.get(name.id))
      await this.#awaitOther(busy, until)
    const turn = this.#take(name, { call, operation, work })
    this.#busy.set(name.id, turn)
    try {
      return await turn
    } finally {
      this.#busy.delete(name.id)
    }
  }

  /** Forgets what is past its time or its bounds, at intervals. The returned function ends it. */
  start(): () => Promise<void> {
    const { database, world, log } = this.#ports
    let round: Promise<void> | undefined
    const stop = world.every(tidyIntervalMs, () => {
      const bounds = { countMax: limits.namedRequestsMax, bytesMax: limits.namedAnswersBytesMax }
      round ??= dropExcess(database, bounds)
        .then(() => dropExpired(database, world.now()))
        .catch((error: unknown) =>
          log.warn({ error: String(error) }, 'answers could not be dropped; trying again'),
        )
        .finally(() => {
          round = undefined
        })
    })
    return async () => {
      stop()
      await round
    }
  }

  /** Waits for the same request that is under way in this process; 409 where that takes too long. */
  async #awaitOther(busy: Promise<unknown>, until: number): Promise<void> {
    const { world } = this.#ports
    const ended = busy.then(
      () => true,
      () => true,
    )
    const ms = Math.max(1, until - world.ticks())
    if (!(await awaitWithin(ended, { world, ms, otherwise: false })))
      throw new Fault('REQUEST_IN_PROGRESS', { retryAfterSeconds: 1 })
  }

  async #take(name: RequestName, asked: Asked): Promise<Answered> {
    const known = await this.#claim(name)
    if (known !== undefined) {
      if (known.request_hash !== name.hash) throw new Fault('IDEMPOTENCY_KEY_USED')
      if (known.answer?.length === 0)
        return { answer: await this.#findAnswer(name, asked), isRepeat: false }
      if (known.answer !== null)
        return { answer: this.#open(name.id, known.answer), isRepeat: true }
      if (await this.#adopt(known, asked))
        return { answer: await this.#findAnswer(name, asked), isRepeat: false }
    }
    return { answer: await this.#carryOut(name, asked), isRepeat: false }
  }

  /** Makes the row of a new request; returns what there is where it is not new. */
  async #claim({ id, owner, app, hash }: RequestName): Promise<NamedRequest | undefined> {
    const { database, world } = this.#ports
    const expires_at_ms = BigInt(world.now() + limits.namedRequestSeconds * 1000)
    const row = { id, owner, app, request_hash: hash, holder: this.#holder, expires_at_ms }
    if (await insertNamedRequest(database, row)) return undefined
    const known = await findNamedRequest(database, id)
    if (known !== undefined && known.expires_at_ms >= BigInt(world.now())) return known
    await dropExpired(database, world.now())
    if (await insertNamedRequest(database, row)) return undefined
    throw new Fault('REQUEST_IN_PROGRESS', { retryAfterSeconds: 1 })
  }

  /**
   * Takes over a request that ended without an answer. First it makes sure that this process holds the chains: from
   * then on the former holder cannot write there, and until then the request stays the former holder's. Returns true if
   * the request was carried out and its operation would do it again.
   */
  async #adopt(
    known: NamedRequest,
    { call, operation }: Pick<Asked, 'call' | 'operation'>,
  ): Promise<boolean> {
    const { database, tenants } = this.#ports
    const { app } = call.requestInfo.context
    const chains = [
      tenants.system.chain,
      ...(app === undefined ? [] : [(await tenants.loadEvenArchived(app)).chain]),
    ]
    for (const chain of chains) {
      await chain.confirmHeld()
      await chain.flushed()
    }
    if (!(await adoptNamedRequest(database, known, this.#holder)))
      throw new Fault('REQUEST_IN_PROGRESS', { retryAfterSeconds: 1 })
    const now = await findNamedRequest(database, known.id)
    return now?.isNoted === true && !resumed.has(operation.operationId)
  }

  /**
   * Answers a request that is done, and whose answer was lost or dropped, with what its payment bought: the claim of
   * that very payment leads to it. Without a payment, and with another one, the answer is lost (410), and nothing is
   * bought.
   */
  async #findAnswer({ id }: RequestName, { call, operation, work }: Asked): Promise<unknown> {
    const isPaid =
      hasPayment(call) || hasSignInHeader(call.requestInfo) || findPayingKey(call) !== undefined
    if (operation.route.paid !== true || !isPaid) throw new Fault('ANSWER_LOST')
    const answer = await runWithCommitNote({ id, isDone: true }, work)
    const kept = toNamedAnswer(answer, operation.route)
    if (kept.status === 402) throw new Fault('ANSWER_LOST')
    if (kept.status < 300) await this.#keep(id, kept)
    return answer
  }

  async #carryOut({ id }: RequestName, { call, operation, work }: Asked): Promise<unknown> {
    const answer = await runWithCommitNote({ id, isDone: false }, work).catch(
      async (error: unknown) => {
        if (error instanceof Fault && error.status < 500)
          await this.#endRefused(id, toNamedRefusal(error, call.requestInfo.requestId), error.code)
        throw error
      },
    )
    const kept = toNamedAnswer(answer, operation.route)
    if (kept.status < 300) await this.#keep(id, kept)
    else if (kept.status < 500) await this.#endRefused(id, kept)
    return answer
  }

  /**
   * A refusal that left nothing is forgotten. Nothing that was asked for is done where a payment is asked for, or the
   * money of one is held: once it is released, or another payment is brought, the request is carried out.
   */
  async #endRefused(id: string, refusal: NamedAnswer, code?: Fault['code']): Promise<void> {
    const own = { id, holder: this.#holder }
    const evenNoted = refusal.status === 402 || code === 'PAYMENT_HELD'
    const isForgotten = await deleteRefused(this.#ports.database, own, { evenNoted })
    if (!isForgotten) await this.#keep(id, refusal)
  }

  /** The work is done, so that its answer goes out though it could not be kept. */
  async #keep(id: string, answer: NamedAnswer): Promise<void> {
    const { database, world, log, answerKey: key } = this.#ports
    const sealed = sealAnswer({ key, world }, id, answer)
    await keepNamedAnswer(database, { id, holder: this.#holder }, sealed).catch((error: unknown) =>
      log.warn({ error: String(error) }, 'the answer to a named request could not be kept'),
    )
  }

  #open(id: string, sealed: Buffer): HttpReply {
    try {
      const { text, ...rest } = openAnswer(this.#ports.answerKey, id, sealed)
      return new HttpReply(text, rest)
    } catch (cause) {
      throw new Fault('ANSWER_LOST', { cause })
    }
  }
}

function toNamedAnswer(answer: unknown, { status = 200 }: Route): NamedAnswer {
  const contentType = 'application/json; charset=utf-8'
  if (!(answer instanceof HttpReply))
    return { status, contentType, headers: {}, text: JSON.stringify(answer) }
  const { headers, text } = answer
  return {
    ...{ status: answer.status ?? status, contentType: answer.contentType },
    ...{ headers, text: text.toString() },
  }
}

function toNamedRefusal(fault: Fault, requestId: string): NamedAnswer {
  const { status, headers, message, code, details } = fault
  const body = { error: message, code, ...(details && { details }), request_id: requestId }
  const contentType = 'application/json; charset=utf-8'
  return { status, contentType, headers, text: JSON.stringify(body) }
}
