import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { afterAll, expect, test } from 'vitest'
import type { UseRoom } from '../../packages/server/src/base/disk-room.ts'
import { realWorld } from '../../packages/server/src/base/world.ts'
import type { BlobPlace } from '../../packages/server/src/blobs/blob-shelf.ts'
import { BlobStore } from '../../packages/server/src/blobs/blob-store.ts'
import { FolderShelf } from '../../packages/server/src/blobs/folder-shelf.ts'

const silent = () => undefined
const useRoom: UseRoom = (work) => work(silent)
const root = mkdtempSync(join(tmpdir(), 'tollbase-blob-store-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))

/** Keeps files in a folder; of one number it never says how large a file is, as a bucket that hangs. */
class HangingShelf extends FolderShelf {
  override findSize(place: BlobPlace): Promise<number | undefined> {
    return place.folder === 1 ? new Promise(silent) : super.findSize(place)
  }
}

function send(text: string): Readable {
  return Readable.from([Buffer.from(text)])
}

test('files of a folder that hangs stop those of no other', async () => {
  const shelf = new HangingShelf(join(root, 'hanging'))
  const incoming = join(root, 'hanging', 'incoming')
  const store = new BlobStore({ incoming, shelf, world: realWorld, useRoom })
  const [first, second] = [await store.receive(send('a')), await store.receive(send('bc'))]
  void first.publish(1, silent)
  await second.publish(2, silent)
  expect(await store.measure(2)).toBe(2)
})
