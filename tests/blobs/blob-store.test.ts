import { hash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { makeTestWorld } from '@tollbase/testing/test-world'
import { afterAll, expect, test, vi } from 'vitest'
import type { UseRoom } from '../../packages/server/src/base/disk-room.ts'
import { realWorld } from '../../packages/server/src/base/world.ts'
import {
  type BlobPlace,
  type ByteRange,
  formatPlace,
} from '../../packages/server/src/blobs/blob-shelf.ts'
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

class CountingShelf extends FolderShelf {
  reads = 0

  override read(place: BlobPlace, range?: ByteRange): Readable {
    this.reads += 1
    return super.read(place, range)
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

test('files that nobody names are noted some at a time, are known after a restart, and are not written down anew where nothing changed', async () => {
  const folder = join(root, 'notes')
  const shelf = new FolderShelf(folder)
  const path = join(folder, 'unnamed.json')
  const world = makeTestWorld()
  const open = () => new BlobStore({ incoming: join(folder, 'incoming'), shelf, world, useRoom })
  let store = open()
  const places = Array.from({ length: 3_000 }, (_, n) => ({
    ...{ folder: 1, sha256: hash('sha256', String(n)) },
  }))
  const graceMs = 60_000
  const sweepAll = async (isNamed: boolean) => {
    const removed: boolean[] = []
    for (const place of places) removed.push(await store.sweep(place, { isNamed, graceMs }))
    return removed.filter(Boolean).length
  }
  await sweepAll(false)
  const print = vi.spyOn(JSON, 'stringify')
  await store.keepNotes()
  const printed = print.mock.calls.map(([value]) => value.length)
  print.mockRestore()
  expect(Math.max(...printed)).toBeLessThanOrEqual(1_000)
  expect(JSON.parse(readFileSync(path, 'utf8'))).toHaveLength(places.length)
  const written = statSync(path).ino
  await sweepAll(false)
  await store.keepNotes()
  expect(statSync(path).ino).toBe(written)
  world.advance(graceMs + 1)
  store = open()
  expect(await sweepAll(false)).toBe(places.length)
  await store.keepNotes()
  expect(readFileSync(path, 'utf8')).toBe('[]')
})

test('a file that is sold many times is read once in ten minutes to see that it is intact, and a damaged one each time', async () => {
  const folder = join(root, 'intact')
  const [shelf, world] = [new CountingShelf(folder), makeTestWorld()]
  const store = new BlobStore({ incoming: join(folder, 'incoming'), shelf, world, useRoom })
  const { sha256, publish } = await store.receive(send('sold'))
  const place = { folder: 1, sha256 }
  await publish(1, silent)
  const look = async () => (await store.find(place, 4))?.isIntact()
  const looks = await Promise.all(Array.from({ length: 20 }, look))
  expect([new Set(looks), shelf.reads]).toEqual([new Set([true]), 1])
  expect([await look(), shelf.reads]).toEqual([true, 1])
  world.advance(10 * 60_000 + 1)
  expect([await look(), shelf.reads]).toEqual([true, 2])
  const path = join(folder, formatPlace(place))
  writeFileSync(path, 'bent')
  world.advance(10 * 60_000 + 1)
  expect([await look(), await look(), shelf.reads]).toEqual([false, false, 4])
  writeFileSync(path, 'sold')
  expect([await look(), shelf.reads]).toEqual([true, 5])
  rmSync(path)
  expect(await look()).toBeUndefined()
})
