import { limits } from '@tollbase/contract/limits'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { Fault } from '../base/fault.ts'
import type { World } from '../base/world.ts'

export type OutgoingBounds = {
  /** Bytes of all large answers together that may wait in memory for their readers. */
  readonly bytesMax: number
  /** Time for an answer, beside the time that its bytes need at the lowest rate. */
  readonly patienceMs: number
  readonly bytesPerSecondMin: number
}

/** Bytes from which an answer counts; smaller ones are a part of their connection's cost. */
const largeBytes = 64 * 1024
const looksPerPatience = 10

/**
 * Bounds the memory of slow readers: an answer stays in memory until its reader has taken it. Past the bound large
 * answers are refused (503) instead of delayed, and a reader below the rate loses the connection.
 */
export function limitOutgoing(
  fastify: FastifyInstance,
  world: World,
  bounds: OutgoingBounds = limits.outgoing,
): void {
  const underWay = new Map<{ readonly destroy: () => unknown }, { bytes: number; until: number }>()
  let total = 0
  const admit = (reply: FastifyReply, payload: unknown): Fault | undefined => {
    const bytes =
      typeof payload === 'string' || Buffer.isBuffer(payload) ? Buffer.byteLength(payload) : 0
    if (bytes < largeBytes || underWay.has(reply.raw)) return undefined
    if (total + bytes > bounds.bytesMax)
      return new Fault('UNAVAILABLE', {
        message: 'Too many large answers are still being read; ask for less, or try again shortly',
      })
    total += bytes
    const timeMs = bounds.patienceMs + (bytes / bounds.bytesPerSecondMin) * 1000
    underWay.set(reply.raw, { bytes, until: world.now() + timeMs })
    reply.raw.once('close', () => {
      underWay.delete(reply.raw)
      total -= bytes
    })
    return undefined
  }
  // biome-ignore lint/complexity/useMaxParams: as Fastify calls it.
  fastify.addHook('onSend', (_request, reply, payload, done) => {
    const refusal = admit(reply, payload)
    if (refusal === undefined) done()
    else done(refusal)
  })
  const stop = world.every(bounds.patienceMs / looksPerPatience, () => {
    const now = world.now()
    for (const [response, { until }] of underWay) if (now > until) response.destroy()
  })
  fastify.addHook('onClose', async () => stop())
}
