import type { FastifyReply } from 'fastify'

/**
 * The replies that are not over.
 *
 * They stand in an array, and each context knows its place. A Set would keep whole requests in memory until the next
 * full collection of garbage: whenever its table is full, V8 makes a new one and lets the old one point to it. Once one
 * of these is old enough to be promoted, it keeps all later ones alive, with the replies in them (decision 117).
 */
export class OpenReplies implements Iterable<FastifyReply> {
  readonly #replies: FastifyReply[] = []

  get size(): number {
    return this.#replies.length
  }

  add(reply: FastifyReply): void {
    reply.request.context.openAt = this.#replies.push(reply) - 1
  }

  /** Removes a reply that was added; the last one takes its place. */
  delete(reply: FastifyReply): void {
    const { openAt } = reply.request.context
    const last = this.#replies.pop()
    if (last === undefined || last === reply) return
    this.#replies[openAt] = last
    last.request.context.openAt = openAt
  }

  /** Iterates over those that are open now, whatever is added or removed meanwhile. */
  [Symbol.iterator](): Iterator<FastifyReply> {
    return [...this.#replies].values()
  }
}
