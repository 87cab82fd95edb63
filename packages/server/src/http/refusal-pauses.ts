import { limits } from '@tollbase/contract/limits'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Fault } from '../base/fault.ts'
import type { World } from '../base/world.ts'

/** Refusals of too much, by size, rate or load: a caller who gets one at once sends the next one at once. */
const statuses: ReadonlySet<number> = new Set([413, 429, 503])

export type RefusalPauses = {
  /** Resolves when the refusal may be sent; undefined where that is now. */
  readonly wait: (fault: Fault, reply: FastifyReply) => Promise<void> | undefined
}

/**
 * Delays refusals that cost us more than the caller: those for too much, and those of bodies that took turns to read. A
 * client that waits for its answers can then cause only a few of them per second on each connection. A waiting
 * connection costs no more than an idle one: its body is released, and nothing is read from it.
 */
export function createRefusalPauses({
  world,
  refusalsWaitingMax: waitingMax = limits.refusalsWaitingMax,
}: {
  readonly world: World
  readonly refusalsWaitingMax?: number
}): RefusalPauses {
  let waiting = 0
  const pause = async (reply: FastifyReply) => {
    const { request } = reply
    const { socket } = request.raw
    request.body = undefined
    waiting += 1
    // Requests behind this one wait for their turn anyway; their bytes wait in the client, and so does the rest of a
    // body. Whoever counts that body has made it flow, and a flowing request would start its socket again.
    request.raw.pause()
    socket.pause()
    // Callers that were refused together would otherwise come back together.
    const share = (world.randomBytes(1)[0] ?? 0) / 256
    await world.sleep(limits.refusalPauseMs * (1 + share))
    socket.resume()
    waiting -= 1
  }
  return {
    wait: (fault, reply) => {
      const isCostly = statuses.has(fault.status) || hasLongBody(reply.request)
      return isCostly && waiting < waitingMax ? pause(reply) : undefined
    },
  }
}

/** Says that the body is long, whether it was read or is still to come: it comes and is thrown away in any case. */
function hasLongBody({ body, raw, headers }: FastifyRequest): boolean {
  if (Buffer.isBuffer(body)) return body.length > limits.bodyBytesAtOnce
  if (raw.complete) return false
  const length = headers['content-length']
  return length === undefined
    ? 'transfer-encoding' in headers
    : Number(length) > limits.bodyBytesAtOnce
}
