import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import {
  type BlobPlace,
  findFile,
  formatPlace,
} from '../../packages/server/src/blobs/blob-shelf.ts'
import type { Life } from './life.ts'
import { plates } from './plates.ts'

/** The bucket with the library's plates, as a process reaches it. */
export function makePlateStore(life: Life, libraryFolder?: number) {
  const findBytes = ({ sha256 }: BlobPlace) =>
    plates.find((plate) => plate.sha256 === sha256)?.bytes
  const shelf = {
    name: 'the bucket of the simulation',
    findSize: (place: BlobPlace) =>
      life.step('HEAD plate', async () => findBytes(place)?.length, {
        latency: [1, 20],
        lost: undefined,
        perMille: 0,
      }),
    read: (place: BlobPlace) => Readable.from([findBytes(place) ?? Buffer.alloc(0)]),
  }
  return {
    find: (place: BlobPlace, size?: number) => findFile(shelf, place, size),
    list: (folder: number) => listPlates(folder === libraryFolder ? plates : []),
  }
}

async function* listPlates(all: typeof plates) {
  for (const { sha256, bytes } of all) yield { sha256, size: bytes.length }
}

/** Writes the plates into a data folder, where the audit looks for them. */
export function writePlates(dataDir: string, folder: number): void {
  for (const { sha256, bytes } of plates) {
    const path = join(dataDir, 'blobs', formatPlace({ folder, sha256 }))
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, bytes)
  }
}
