import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { UseRoom } from '../../packages/server/src/base/disk-room.ts'
import { Fault } from '../../packages/server/src/base/fault.ts'
import { PartialFiles } from '../../packages/server/src/blobs/partial-files.ts'
import { canMount, openSmallDisk } from './small-disk.ts'

const kib = 1024
const keepAsIs = (piece: Buffer) => piece

async function* send(bytes: Buffer) {
  yield bytes
}

test.skipIf(!canMount)(
  'a piece of which a disk takes a part only, as it is full, comes again as a whole',
  async () => {
    const disk = openSmallDisk({ kind: 'memory', mebibytes: 1 })
    try {
      const files = new PartialFiles({
        root: join(disk.folder, 'uploads'),
        pieceBytes: 64 * kib,
        now: Date.now,
        useRoom: (work) => work(() => undefined),
      })
      const bytes = randomBytes(300 * kib)
      const file = await files.create('one', { length: bytes.length, overhead: 0, info: '' })
      disk.fill(100 * kib)
      await expect(file.append(send(bytes), keepAsIs)).rejects.toMatchObject({
        code: 'STORAGE_FULL',
      })
      disk.empty()
      await file.append(send(bytes.subarray(file.offset)), keepAsIs)
      await file.complete(keepAsIs)
      expect(readFileSync(file.path).equals(bytes)).toBe(true)
    } finally {
      disk.remove()
    }
  },
)

test('nothing of an upload is written where the disk has no room for it', async () => {
  const root = mkdtempSync(join(tmpdir(), 'tollbase-partial-files-'))
  try {
    const fault = new Fault('STORAGE_FULL')
    const useRoom: UseRoom = (work) =>
      work(() => {
        throw fault
      })
    const files = new PartialFiles({ root, pieceBytes: 64 * kib, now: Date.now, useRoom })
    const bytes = randomBytes(300 * kib)
    const file = await files.create('one', { length: bytes.length, overhead: 0, info: '' })
    await expect(file.append(send(bytes), keepAsIs)).rejects.toBe(fault)
    expect([file.offset, statSync(file.path).size]).toEqual([0, 0])
  } finally {
    rmSync(root, { recursive: true, force: true })
  }
})
