import { createReadStream } from 'node:fs'
import { mkdir, readdir, rename, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { findErrorCode, findStatus, syncPath } from '../base/files.ts'
import {
  type BlobPlace,
  type BlobShelf,
  type ByteRange,
  formatPlace,
  isFileName,
} from './blob-shelf.ts'
import { toStorageFault } from './storage-faults.ts'

const readBufferBytes = 256 * 1024

/** Keeps the files below a folder of the disk. */
export class FolderShelf implements BlobShelf {
  readonly name: string

  constructor(root: string) {
    this.name = root
  }

  async findSize(place: BlobPlace): Promise<number | undefined> {
    return (await findStatus(this.#getPath(place)))?.size
  }

  read(place: BlobPlace, range: Partial<ByteRange> = {}): Readable {
    return createReadStream(this.#getPath(place), { ...range, highWaterMark: readBufferBytes })
  }

  /** The bytes are durable before their name is, and the name before this resolves. */
  async put(source: string, place: BlobPlace): Promise<void> {
    const path = this.#getPath(place)
    const shard = join(path, '..')
    try {
      await syncPath(source, 'r+')
      const made = await mkdir(shard, { recursive: true })
      await rename(source, path)
      await syncPath(shard, 'r')
      if (made === undefined) return
      await syncPath(join(shard, '..'), 'r')
      await syncPath(this.name, 'r')
    } catch (error) {
      throw toStorageFault(error)
    }
  }

  async remove(place: BlobPlace): Promise<void> {
    try {
      await unlink(this.#getPath(place))
    } catch (error) {
      if (findErrorCode(error) !== 'ENOENT') throw error
    }
  }

  async *list(folder?: number): AsyncGenerator<BlobPlace & { readonly size: number }> {
    for (const one of folder === undefined ? await this.#listFolders() : [folder]) {
      const root = join(this.name, String(one))
      for (const shard of await listNames(root))
        for (const sha256 of await listNames(join(root, shard))) {
          const found = isFileName(sha256) && (await findStatus(join(root, shard, sha256)))
          if (found) yield { folder: one, sha256, size: found.size }
        }
    }
  }

  async #listFolders(): Promise<number[]> {
    return (await listNames(this.name)).filter((name) => /^\d+$/.test(name)).map(Number)
  }

  #getPath(place: BlobPlace): string {
    return join(this.name, formatPlace(place))
  }
}

async function listNames(folder: string): Promise<string[]> {
  try {
    return await readdir(folder)
  } catch (error) {
    if (findErrorCode(error) === 'ENOENT') return []
    throw error
  }
}
