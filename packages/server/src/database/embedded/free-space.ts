import { statfsSync } from 'node:fs'
import type { NeedRoom, UseRoom } from '../../base/disk-room.ts'
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
  /** Measures now, and throws where it would be too little with so many more bytes and those that are promised. */
  readonly needFor: NeedRoom
  /**
   * Runs work that writes: what it needs is promised to it alone, so that many who look at once do not each see the room
   * of all. Where it asks again, it has written what it asked for before.
   */
  readonly useRoom: UseRoom
}

/**
 * Watches the disk of a folder. PostgreSQL does not survive a disk on which its log cannot grow, so admission ends
 * before that, and work under way has the rest.
 */
export function watchFreeSpace({ folder, bytesMin, world }: FreeSpaceOptions): FreeSpace {
  let lookedAtMs = Number.NEGATIVE_INFINITY
  let freeBytes = Number.POSITIVE_INFINITY
  let promisedBytes = 0
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
    const internal = `${freeBytes} bytes are free on the disk of ${folder}, ${promisedBytes} of them promised; ${bytesMin} stay free`
    throw new Fault('STORAGE_FULL', { internal, retryAfterSeconds: retrySeconds })
  }
  const needFor = (more: number) => {
    look()
    if (freeBytes - promisedBytes - more < bytesMin) refuse()
  }
  return {
    bytes,
    isShort,
    need: () => {
      if (isShort()) refuse()
    },
    needFor,
    useRoom: async (work) => {
      let own = 0
      const promise = (bytes: number) => {
        promisedBytes += bytes - own
        own = bytes
      }
      try {
        return await work((more) => {
          promise(0)
          needFor(more)
          promise(more)
        })
      } finally {
        promise(0)
      }
    },
  }
}
