import type { Node, WindowDef } from 'libpg-query'
import type { Fault } from '../../base/fault.ts'

export type NamedWindows = ReadonlyMap<string, WindowDef>

/** Makes the fault for a construct that is not possible. */
type Refuse = (location: number | undefined, construct: string) => Fault

/** Reads a WINDOW clause. A window that goes on from one before it is given whole. */
export function readWindows(clause: readonly Node[] | undefined, refuse: Refuse): NamedWindows {
  const windows = new Map<string, WindowDef>()
  for (const node of clause ?? []) {
    if (!('WindowDef' in node)) continue
    const { WindowDef: window } = node
    const name = window.name ?? ''
    if (windows.has(name)) throw refuse(window.location, `two windows of the name ${name}`)
    windows.set(name, goOn(window, windows, refuse))
  }
  return windows
}

/** Returns the window that OVER says: a named one, one that goes on from that, or its own. */
export function findWindow(over: WindowDef, windows: NamedWindows, refuse: Refuse): WindowDef {
  if (over.name === undefined) return goOn(over, windows, refuse)
  return requireWindow(over, over.name, { windows, refuse })
}

/** Joins a window with the one that it goes on from, as PostgreSQL does, which lets it add an order and a frame only. */
function goOn(window: WindowDef, windows: NamedWindows, refuse: Refuse): WindowDef {
  const { refname: name, location } = window
  if (name === undefined) return window
  const base = requireWindow(window, name, { windows, refuse })
  if (window.partitionClause !== undefined)
    throw refuse(location, `PARTITION BY in a window that goes on from ${name}`)
  if (window.orderClause !== undefined && base.orderClause !== undefined)
    throw refuse(location, `ORDER BY in a window that goes on from ${name}, which has one`)
  if (((base.frameOptions ?? 0) & frameIsGiven) !== 0)
    throw refuse(location, `a window that goes on from ${name}, which has a frame`)
  const orderClause = window.orderClause ?? base.orderClause
  const { partitionClause } = base
  return {
    ...window,
    ...(partitionClause && { partitionClause }),
    ...(orderClause && { orderClause }),
  }
}

function requireWindow(
  { location }: WindowDef,
  name: string,
  { windows, refuse }: { readonly windows: NamedWindows; readonly refuse: Refuse },
): WindowDef {
  const found = windows.get(name)
  if (found === undefined) throw refuse(location, `the window ${name}, which is not defined`)
  return found
}

/** The bit of frameOptions (PostgreSQL's parsenodes.h) that is set where a frame is written. */
const frameIsGiven = 0x1
