import { readFileSync, statfsSync } from 'node:fs'
import { freemem } from 'node:os'

/** The folder that Linux keeps in memory. */
const folder = '/dev/shm'
/** The servers and services of a whole run of the tests fill some 5 GiB at once. */
const freeBytesMin = 10 * 1024 ** 3

/**
 * Puts the temporary folders of this process, and of those that it starts, into memory where there is plenty of it.
 * Databases of tests are made and dropped by the thousand, which costs a disk more than all their statements do.
 */
export function useMemoryFolder(): void {
  if (process.env.TMPDIR !== undefined || !isFit()) return
  process.env.TMPDIR = folder
}

function isFit(): boolean {
  try {
    const { bavail, bsize } = statfsSync(folder)
    const limit = process.constrainedMemory() || Number.POSITIVE_INFINITY
    const mounts = readFileSync('/proc/self/mounts', 'utf8').split('\n')
    // Tests start programs there.
    const isMounted = mounts.some((line) => {
      const [, place, , options = ''] = line.split(' ')
      return place === folder && !options.split(',').includes('noexec')
    })
    return isMounted && Math.min(bavail * bsize, freemem(), limit) >= freeBytesMin
  } catch {
    return false
  }
}
