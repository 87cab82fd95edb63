import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, statfsSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A file system of its own, small enough to fill. */
export type SmallDisk = {
  readonly folder: string
  /** Takes all but so many bytes of what is free. */
  readonly fill: (bytesLeft: number) => void
  /** Gives back what `fill` took. */
  readonly empty: () => void
  /** Lets every write fail from now on, as a disk that fails makes its system do; only with `kind: 'file'`. */
  readonly fail: () => void
  /** Brings a failed disk back as a new start of the machine does: nothing may use it. */
  readonly repair: () => void
  /** Lets nothing be written from now on; nothing may have a file open for writing. */
  readonly protect: () => void
  readonly remove: () => void
}

/** Mounting needs root, and a container that lets it. */
export const canMount: boolean = (() => {
  try {
    openSmallDisk({ kind: 'memory', mebibytes: 1 }).remove()
    return true
  } catch {
    return false
  }
})()

/** `memory`: a tmpfs. `file`: ext4 in a file, which can be made to fail. */
export function openSmallDisk(disk: { kind: 'memory' | 'file'; mebibytes: number }): SmallDisk {
  const place = mkdtempSync(join(tmpdir(), 'tollbase-disk-'))
  const folder = join(place, 'mounted')
  const image = join(place, 'image')
  run('mkdir', folder)
  const mount = () =>
    disk.kind === 'memory'
      ? run('mount', '-t', 'tmpfs', '-o', `size=${disk.mebibytes}m`, 'tmpfs', folder)
      : run('mount', '-o', 'loop', image, folder)
  if (disk.kind === 'file') {
    writeFileSync(image, '')
    truncateSync(image, disk.mebibytes * 1024 * 1024)
    run('mkfs.ext4', '-q', '-m', '0', image)
  }
  mount()
  return {
    folder,
    fill: (bytesLeft) => {
      const { bavail, bsize } = statfsSync(folder)
      const bytes = bavail * bsize - bytesLeft
      if (bytesLeft > 0) run('fallocate', '-l', String(bytes), join(folder, 'filler'))
      // Until it fails, because others may write at the same time.
      else spawnSync('sh', ['-c', `cat /dev/zero >'${join(folder, 'filler-too')}'`])
    },
    empty: () => {
      for (const name of ['filler', 'filler-too']) rmSync(join(folder, name), { force: true })
    },
    fail: () => run('mount', '-o', 'remount,abort', folder),
    repair: () => {
      run('umount', folder)
      // 1: it had errors, which are corrected now.
      run('sh', '-c', `e2fsck -fy ${image} >/dev/null 2>&1; [ $? -le 1 ]`)
      mount()
    },
    protect: () => run('mount', '-o', 'remount,ro', folder),
    remove: () => {
      // A database that is being dropped may hold a file a moment longer.
      run('umount', '-l', folder)
      rmSync(place, { recursive: true })
    },
  }
}

function run(command: string, ...args: string[]): void {
  const { status, stderr, error } = spawnSync(command, args, { encoding: 'utf8' })
  if (status !== 0)
    throw new Error(`${command} ${args.join(' ')}: ${error?.message ?? stderr.trim()}`)
}
