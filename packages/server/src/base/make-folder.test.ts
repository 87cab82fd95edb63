import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getBundle } from '@tollbase/testing/bundle'
import { afterAll, describe, expect, test } from 'vitest'
import { makeFolder, makeNamedFolder } from './make-folder.ts'

const root = mkdtempSync(join(tmpdir(), 'tollbase-folder-'))

afterAll(() => rmSync(root, { recursive: true, force: true }))

function getMode(...names: string[]): number {
  return statSync(join(root, ...names)).mode & 0o777
}

describe('makeFolder', () => {
  test('a folder is made with all those above it that are missing, each for its owner alone where that is asked', () => {
    makeFolder(join(root, 'a', 'b', 'c'), 0o700)
    for (const names of [['a'], ['a', 'b'], ['a', 'b', 'c']]) expect(getMode(...names)).toBe(0o700)
  })

  test('a folder that is there stays as it is, also behind a link', () => {
    mkdirSync(join(root, 'open'), { mode: 0o755 })
    symlinkSync(join(root, 'open'), join(root, 'link'))
    makeFolder(join(root, 'open'), 0o700)
    makeFolder(join(root, 'link'), 0o700)
    makeFolder(join(root, 'link', '..', 'open', 'below'))
    makeFolder('/')
    expect(getMode('open')).toBe(0o755)
    expect(getMode('open', 'below') & 0o700).toBe(0o700)
  })

  test('a file in the way is refused, as is a link that leads nowhere', () => {
    writeFileSync(join(root, 'file'), '')
    symlinkSync(join(root, 'nothing'), join(root, 'lost'))
    expect(() => makeFolder(join(root, 'file'))).toThrow('EEXIST')
    expect(() => makeFolder(join(root, 'file', 'below', 'it'))).toThrow('ENOTDIR')
    expect(() => makeFolder(join(root, 'lost', 'below'))).toThrow('EEXIST')
    expect(() => makeFolder('')).toThrow('ENOENT')
  })

  test.runIf(process.platform === 'linux')(
    'a folder that its file system does not make is refused at once, and not tried for ever',
    () => {
      expect(() => makeFolder('/proc/tollbase/data')).toThrow('ENOENT')
      expect(() => makeNamedFolder('--to', '/proc/tollbase')).toThrow(
        '--to /proc/tollbase cannot be used: its file system makes no folder there',
      )
    },
  )

  test('a folder that is there and that this user may not write into is told in words', () => {
    const closed = join(root, 'closed')
    mkdirSync(closed, { mode: 0o555 })
    chmodSync(root, 0o755)
    const program = join(root, 'make-folder.mjs')
    copyFileSync(getBundle('packages/server/src/base/make-folder.ts'), program)
    chmodSync(program, 0o644)
    const script = `import('${program}').then((it) => it.makeNamedFolder('--to', '${closed}'))`
    // Nothing is closed to the superuser.
    const isRoot = process.getuid?.() === 0
    const { stderr } = spawnSync(process.execPath, ['-e', script], {
      encoding: 'utf8',
      ...(isRoot && { uid: 65_534, gid: 65_534 }),
    })
    expect(stderr).toContain(`--to ${closed} cannot be used: this user may not write there`)
  })

  test('an option whose folder cannot be made is told in words', () => {
    writeFileSync(join(root, 'a-file'), '')
    expect(() => makeNamedFolder('--to', join(root, 'a-file', 'below'))).toThrow(
      'cannot be used: it is a file, or in one, and not a folder',
    )
  })
})
