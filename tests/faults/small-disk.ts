import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, statfsSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A file system of its own that is small enough to fill. */
export type SmallDisk = {
  readonly folder: string
  /** Fills the disk until only that many bytes are free. */
  readonly fill: (bytesLeft: number) => void
  /** Frees the space that `fill` took. */
  readonly empty: () => void
  /** Makes every write fail from now on, as a failing disk does; only with `kind: 'file'`. */
  readonly fail: () => void
  /** Repairs a failed disk as a restart of the machine does; no process may use it. */
  readonly repair: () => void
  /** Makes the disk read-only from now on; no process may have a file open for writing. */
  readonly protect: () => void
  readonly remove: () => void
}

/** Mounting needs root, and a container that allows it. */
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
      // It writes until a write fails, because others may write at the same time.
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
