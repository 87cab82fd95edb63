import { Agent } from 'node:http'
import { Agent as SecureAgent } from 'node:https'
import { decodeBase64, FormatError } from '@tollbase/verify/bytes'
import {
  parseCheckpoint,
  type SignedCheckpoint,
  verifyCheckpoint,
} from '@tollbase/verify/checkpoint'
import { isFields, requireCount, requireText, requireTexts } from '@tollbase/verify/fields'
import { verifyConsistency } from '@tollbase/verify/tree'
import type { World } from '../base/world.ts'
import { getJson, TransportError } from '../x402/http-json.ts'

/** A log that is followed. */
export type FollowedLog = {
  /** The service, without a slash at the end. */
  readonly url: string
  readonly app: string
  /** The log's verifier key, from a place that the witness trusts; its name is the log's origin. */
  readonly vkey: string
  /** Sent as X-App-Key, for applications with nothing open to strangers. */
  readonly appKey?: string | undefined
}

/** The result of a look at a log; `note` is its new checkpoint. */
export type Look =
  /** It goes on from the checkpoint before. */
  | { readonly kind: 'consistent'; readonly note: string; readonly size: number }
  /** It contradicts the checkpoint before: the service has shown two histories. */
  | Contradiction
  /** The service answers, and does not show that it still has what it showed before. It may do so later. */
  | { readonly kind: 'gone'; readonly problem: string }

export type Contradiction = {
  readonly kind: 'fork' | 'roll-back'
  readonly note: string
  readonly problem: string
}

/** The service did not answer as it must, which proves nothing; the next look may. */
export class WitnessTrouble extends Error {
  override readonly name = 'WitnessTrouble'
  /** True if the service is there, and withholds the log: it does not know it, or does not prove that it goes on. */
  readonly isWithheld: boolean

  constructor(problem: string, { isWithheld = false } = {}) {
    super(problem)
    this.isWithheld = isWithheld
  }
}

/** Statuses below 500 by which a service says that it is busy. */
const busyStatuses: readonly number[] = [408, 429]

const deadlineMs = 10_000
const answerBytesMax = 256 * 1024
/** A proof between trees of at most 2^53 leaves has no more. */
const hashesMax = 2 * 53

/**
 * Looks whether a log goes on from the checkpoint that was kept (a note by the log's own key; undefined before the first).
 * Throws WitnessTrouble where the service gives no usable answer.
 */
export async function observeLog(
  log: FollowedLog,
  kept: string | undefined,
  world: World,
): Promise<Look> {
  const now = parseSigned(log, await ask(log, 'checkpoint', world))
  const { note } = now
  if (kept === undefined) return { kind: 'consistent', note, size: now.size }
  const before = parseCheckpoint(kept)
  if (now.size === before.size) {
    if (areRootsEqual(now, before)) return { kind: 'consistent', note: kept, size: now.size }
    return fork(note, `two roots of one size, ${now.size}`)
  }
  const [from, to] = now.size > before.size ? [before, now] : [now, before]
  const proof = await askForProof(log, { from: from.size, to: to.size }, world)
  if (now.size < before.size) {
    const problem = `the log had ${before.size} entries, and now has ${now.size}`
    // A tree that is refused as too large is one that the service had.
    if (proof.status === 400) return { kind: 'roll-back', note, problem }
    if (proof.status === 200 && isProven(proof.value, from, to))
      throw new WitnessTrouble(`the service gives an old checkpoint of ${now.size} entries`)
    if (proof.status === 200) return fork(note, problem)
  } else if (proof.status === 200) {
    return isProven(proof.value, from, to)
      ? { kind: 'consistent', note, size: now.size }
      : fork(note, `the tree of ${now.size} entries does not begin with that of ${before.size}`)
  }
  throw new WitnessTrouble(
    `the service shows ${now.size} entries and answers ${proof.status} to a request for a consistency proof`,
    { isWithheld: true },
  )
}

/** Asks for a proof; a service that has just given a checkpoint, and gives no answer to this, withholds it. */
async function askForProof(
  log: FollowedLog,
  { from, to }: { readonly from: number; readonly to: number },
  world: World,
): Promise<Answer> {
  try {
    return await ask(log, `consistency?from=${from}&to=${to}`, world)
  } catch (error) {
    if (!(error instanceof WitnessTrouble)) throw error
    throw new WitnessTrouble(`no consistency proof: ${error.message}`, { isWithheld: true })
  }
}

function fork(note: string, problem: string): Contradiction {
  return { kind: 'fork', note, problem }
}

/** The answer's checkpoint, signed by the log's key. */
function parseSigned(
  { vkey, app }: FollowedLog,
  { status, value }: Answer,
): SignedCheckpoint & { note: string } {
  const isWithheld = status < 500 && !busyStatuses.includes(status)
  const fail = (problem: string) => new WitnessTrouble(problem, { isWithheld })
  const note = read(() => (isFields(value) ? requireText(value, 'checkpoint') : undefined))
  if (note === undefined)
    throw fail(`the service gives no checkpoint of ${app}, with status ${status}`)
  const verdict = verifyCheckpoint(note, vkey)
  if (!verdict.ok) throw fail(verdict.problem)
  const [origin] = vkey.split('+')
  if (verdict.checkpoint.origin !== origin)
    throw fail(`the checkpoint is of ${verdict.checkpoint.origin}, not of ${origin}`)
  return { ...verdict.checkpoint, note }
}

function isProven(value: unknown, from: SignedCheckpoint, to: SignedCheckpoint): boolean {
  const proof = read(() => {
    if (!isFields(value)) return undefined
    const hashes = requireTexts(value, 'hashes')
    const isMeant =
      requireCount(value, 'from') === from.size && requireCount(value, 'to') === to.size
    return isMeant && hashes.length <= hashesMax ? hashes.map(decodeBase64) : undefined
  })
  if (proof === undefined)
    throw new WitnessTrouble('the service gives no consistency proof', { isWithheld: true })
  const sizes = { from: from.size, to: to.size, fromRoot: from.root, toRoot: to.root }
  return verifyConsistency({ ...sizes, proof })
}

function areRootsEqual(one: SignedCheckpoint, other: SignedCheckpoint): boolean {
  return Buffer.from(one.root).equals(other.root)
}

function read<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch (error) {
    if (error instanceof FormatError) return undefined
    throw error
  }
}

type Answer = { readonly status: number; readonly value: unknown }

async function ask({ url, app, appKey }: FollowedLog, path: string, world: World): Promise<Answer> {
  const target = new URL(`${url}/api/apps/${encodeURIComponent(app)}/chain/${path}`)
  const agent = new (target.protocol === 'https:' ? SecureAgent : Agent)()
  try {
    const headers = { ...(appKey !== undefined && { 'x-app-key': appKey }) }
    const limits = { deadlineMs, responseBytesMax: answerBytesMax }
    return await getJson({ url: target, agent, world, headers, ...limits })
  } catch (error) {
    if (error instanceof TransportError) throw new WitnessTrouble(error.message)
    throw error
  } finally {
    agent.destroy()
  }
}
