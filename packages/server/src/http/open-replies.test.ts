import type { FastifyReply } from 'fastify'
import { describe, expect, test } from 'vitest'
import { OpenReplies } from './open-replies.ts'
import { RequestContext } from './request-context.ts'

function makeReply(): FastifyReply {
  const context = new RequestContext(0, () => undefined)
  return { request: { context } } as FastifyReply
}

describe('the replies that are not over', () => {
  test('are those that were added and not deleted, in whatever order replies end', () => {
    const open = new OpenReplies()
    const model = new Set<FastifyReply>()
    // A small generator of numbers, so that each run is the same.
    let seed = 7
    const draw = (max: number) => {
      seed = (seed * 48_271) % 2_147_483_647
      return seed % max
    }
    for (let step = 0; step < 2_000; step++) {
      const known = [...model]
      const ended = known[draw(known.length + 1)]
      if (ended !== undefined && draw(2) === 0) {
        open.delete(ended)
        model.delete(ended)
      } else {
        const reply = makeReply()
        open.add(reply)
        model.add(reply)
      }
      expect(open.size).toBe(model.size)
    }
    expect(new Set(open)).toEqual(model)
    for (const reply of model) open.delete(reply)
    expect([...open]).toEqual([])
  })

  test('are all visited, though each of them ends when it is visited', () => {
    const open = new OpenReplies()
    const replies = Array.from({ length: 5 }, makeReply)
    for (const reply of replies) open.add(reply)
    const visited: FastifyReply[] = []
    for (const reply of open) {
      visited.push(reply)
      open.delete(reply)
    }
    expect(visited).toEqual(replies)
    expect(open.size).toBe(0)
  })
})
