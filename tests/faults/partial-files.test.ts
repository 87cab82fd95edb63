import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
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
        needRoom: () => undefined,
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
