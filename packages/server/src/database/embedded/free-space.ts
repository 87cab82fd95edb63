import { statfsSync } from 'node:fs'
import { Fault } from '../../base/fault.ts'
import type { World } from '../../base/world.ts'

export type FreeSpaceOptions = {
  /** A folder on the watched disk. */
  readonly folder: string
  /** Fewer free bytes than this count as full. */
  readonly bytesMin: number
  readonly world: World
}

const lookEveryMs = 500
const retrySeconds = 10

/** The room that a disk has left. */
export type FreeSpace = {
  /** Free bytes, measured a short time ago. */
  readonly bytes: () => number
  /** True where there is too little for new work. */
  readonly isShort: () => boolean
  /** Throws STORAGE_FULL where it is too little. */
  readonly need: () => void
  /** Measures now, and throws where it would be too little with so many more bytes. */
  readonly needFor: (more: number) => void
}

/**
 * Watches the disk of a folder. PostgreSQL does not survive a disk on which its log cannot grow, so admission ends
 * before that, and work under way has the rest.
 */
export function watchFreeSpace({ folder, bytesMin, world }: FreeSpaceOptions): FreeSpace {
  let lookedAtMs = Number.NEGATIVE_INFINITY
  let freeBytes = Number.POSITIVE_INFINITY
  const look = () => {
    lookedAtMs = world.now()
    const { bavail, bsize } = statfsSync(folder)
    freeBytes = bavail * bsize
  }
  const bytes = () => {
    if (Math.abs(world.now() - lookedAtMs) >= lookEveryMs) look()
    return freeBytes
  }
  const isShort = () => bytes() < bytesMin
  const refuse = () => {
    const internal = `${freeBytes} bytes are free on the disk of ${folder}, fewer than ${bytesMin}`
    throw new Fault('STORAGE_FULL', { internal, retryAfterSeconds: retrySeconds })
  }
  return {
    bytes,
    isShort,
    need: () => {
      if (isShort()) refuse()
    },
    needFor: (more) => {
      look()
      if (freeBytes - more < bytesMin) refuse()
    },
  }
}
