import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { limits } from '@tollbase/contract/limits'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { ConcurrencyLimit } from '../base/concurrency-limit.ts'
import { Fault } from '../base/fault.ts'
import { makeAbortedFault } from '../base/semaphore.ts'
import { type Place, type PlaceBounds, SharedRoom } from '../base/shared-room.ts'
import type { World } from '../base/world.ts'
import { toAddressKey } from './rate-limits.ts'

export type OutgoingBounds = {
  /** Bytes of all large answers together that may wait in memory for their readers. */
  readonly bytesMax: number
  /** Time for an answer, beside the time that its bytes need at the lowest rate. */
  readonly patienceMs: number
  readonly bytesPerSecondMin: number
  /** Files that are read at once, by address; those of the contract when not given. */
  readonly downloads?: PlaceBounds
}

/** Bytes from which an answer counts; smaller ones are a part of their connection's cost. */
const largeBytes = 64 * 1024
const looksPerPatience = 10

/**
 * Bounds the memory of slow readers: an answer stays in memory until its reader has taken it. Past the bound large
 * answers are refused (503) instead of delayed, and a reader below the rate loses the connection. One address has a
 * quarter of the bytes at most, and bought answers have an eighth for themselves.
 */
export function limitOutgoing(
  fastify: FastifyInstance,
  world: World,
  bounds: OutgoingBounds = limits.outgoing,
): void {
  const { bytesMax } = bounds
  const [ofHolderMax, forNew, forPaid] = [bytesMax / 4, bytesMax / 4, bytesMax / 8]
  const room = new SharedRoom({ max: bytesMax, ofHolderMax, forNew, forPaid })
  const underWay = new Map<ServerResponse, { readonly place: Place; readonly until: number }>()
  const occupy = (reply: FastifyReply, bytes: number, until: number): Fault | undefined => {
    const { raw } = reply
    // Nobody waits for it, and its end was told before.
    if (raw.destroyed) return undefined
    const known = underWay.get(raw)
    const isPaid = reply.hasHeader('x-payment-id')
    const place = known?.place ?? room.open(toAddressKey(reply.request.ip), { isPaid })
    if (!place.set(bytes))
      return new Fault('UNAVAILABLE', {
        message: 'Too many large answers are still being read; ask for less, or try again shortly',
      })
    underWay.set(raw, { place, until })
    if (known === undefined)
      raw.once('close', () => {
        underWay.delete(raw)
        place.set(0)
      })
    return undefined
  }
  const occupyWhole = (reply: FastifyReply, payload: unknown): Fault | undefined => {
    const bytes =
      typeof payload === 'string' || Buffer.isBuffer(payload) ? Buffer.byteLength(payload) : 0
    const isKnown = underWay.has(reply.raw)
    if (bytes < largeBytes && !isKnown) return undefined
    const timeMs = bounds.patienceMs + (bytes / bounds.bytesPerSecondMin) * 1000
    return occupy(reply, bytes, world.now() + timeMs)
  }
  // The time of its reader begins when it is whole.
  fastify.decorateReply('occupyOutgoing', function (this: FastifyReply, bytes: number) {
    // It would be printed to its end, uncounted.
    if (this.raw.destroyed) throw makeAbortedFault()
    const refusal = occupy(this, bytes, Number.POSITIVE_INFINITY)
    if (refusal !== undefined) throw refusal
  })
  const files = watchFiles(world, bounds)
  // biome-ignore lint/complexity/useMaxParams: as Fastify calls it.
  fastify.addHook('onSend', (request, reply, payload, done) => {
    const refusal =
      payload instanceof Readable
        ? files.occupy(request, reply, payload)
        : occupyWhole(reply, payload)
    if (refusal === undefined) done()
    else done(refusal)
  })
  const stop = world.every(bounds.patienceMs / looksPerPatience, () => {
    const now = world.now()
    for (const [response, { until }] of underWay) if (now > until) response.destroy()
    files.endSlow()
  })
  fastify.addHook('onClose', async () => stop())
}

const placesOfDownloads: PlaceBounds = {
  max: limits.downloadsMax,
  ofHolderMax: limits.downloadsOfAddressMax,
  forNew: limits.downloadsMax / 4,
}

/** Bounds the files that are read at once; a reader that falls below the rate, however far it is, loses the connection. */
function watchFiles(
  world: World,
  { patienceMs, bytesPerSecondMin, downloads = placesOfDownloads }: OutgoingBounds,
) {
  const places = new ConcurrencyLimit(downloads)
  const open = new Map<ServerResponse, { readonly since: number; readonly before: number }>()
  const countSent = (response: ServerResponse) => response.socket?.bytesWritten ?? 0
  return {
    occupy: (request: FastifyRequest, { raw }: FastifyReply, payload: Readable) => {
      if (open.has(raw)) return undefined
      // Nobody waits for it, and its end was told before.
      if (raw.destroyed) {
        payload.destroy()
        return undefined
      }
      try {
        const leave = places.occupy(toAddressKey(request.ip))
        open.set(raw, { since: world.now(), before: countSent(raw) })
        raw.once('close', () => {
          open.delete(raw)
          leave()
        })
        return undefined
      } catch (error) {
        payload.destroy()
        if (error instanceof Fault) return error
        throw error
      }
    },
    endSlow: () => {
      for (const [response, { since, before }] of open) {
        const sentMs = ((countSent(response) - before) / bytesPerSecondMin) * 1000
        if (world.now() > since + patienceMs + sentMs) response.destroy()
      }
    },
  }
}
