import type { Socket } from 'node:net'
import { limits } from '@tollbase/contract/limits'

/** The requests of one connection: whether one is at work, and those that wait behind it. */
type Line = { isBusy: boolean; readonly behind: (() => void)[] }

export type Turns = {
  /** Calls `begin` once no earlier request of the connection is at work; never where it ends before. */
  readonly take: (socket: Socket, begin: () => void) => void
  /** Ends the turn of the request that is at work. */
  readonly end: (socket: Socket) => void
}

/**
 * Lets the requests of one connection be worked on one after the other, as they are answered. Node hands over at once
 * all that came together, so one connection would do the work of a thousand; and it never closes an answer that
 * waits behind another one when its client hangs up, so whatever such a request holds would be held for ever.
 */
export function createTurns(): Turns {
  const lines = new WeakMap<Socket, Line>()
  return {
    take: (socket, begin) => {
      const line = lines.get(socket)
      if (line?.isBusy === true) {
        if (line.behind.length < limits.requestsBehindMax) line.behind.push(begin)
        else socket.destroy()
        return
      }
      if (line === undefined) lines.set(socket, { isBusy: true, behind: [] })
      else line.isBusy = true
      begin()
    },
    end: (socket) => {
      const line = lines.get(socket)
      if (line === undefined) return
      const next = socket.destroyed ? undefined : line.behind.shift()
      if (next === undefined) line.isBusy = false
      else next()
    },
  }
}
