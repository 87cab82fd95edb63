import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { mkdir, open, readdir, rename, rm } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { findErrorCode, findStatus, syncPath } from '../../base/files.ts'

/** Bytes read at a time. */
const bufferBytes = 1024 * 1024

export type WrittenFile = { readonly bytes: number; readonly sha256: string }

/** Writes a stream into a new file (mode 0600), durably, and hashes it on the way. */
export async function writeStream(
  source: Readable,
  path: string,
  onBytes: (count: number) => void = () => undefined,
): Promise<WrittenFile> {
  const hash = createHash('sha256')
  let bytes = 0
  const measure = async function* (chunks: AsyncIterable<Buffer>) {
    for await (const chunk of chunks) {
      hash.update(chunk)
      bytes += chunk.length
      onBytes(chunk.length)
      yield chunk
    }
  }
  await pipeline(source, measure, createWriteStream(path, { mode: 0o600, flush: true }))
  return { bytes, sha256: hash.digest('hex') }
}

/** Hashes a file; hexadecimal. */
export async function hashFile(path: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(path, { highWaterMark: bufferBytes }), hash)
  return hash.digest('hex')
}

/** Copies a file by way of a draft, so that the name never stands for half of it. */
export async function copyFile(from: string, to: string): Promise<WrittenFile> {
  await mkdir(dirname(to), { recursive: true, mode: 0o700 })
  const draft = `${to}.draft`
  const written = await writeStream(createReadStream(from, { highWaterMark: bufferBytes }), draft)
  await rename(draft, to)
  return written
}

/** Lists the files below a folder, by their paths in it; none where the folder is not there. Links are no files. */
export async function* listFiles(folder: string, below = folder): AsyncGenerator<string> {
  let names: string[]
  try {
    names = await readdir(below)
  } catch (error) {
    if (findErrorCode(error) === 'ENOENT') return
    throw error
  }
  for (const name of names.sort()) {
    const path = join(below, name)
    const found = await findStatus(path)
    if (found?.isDirectory() === true) yield* listFiles(folder, path)
    else if (found?.isFile() === true) yield relative(folder, path)
  }
}

/** Replaces a small file as a whole, durably. */
export async function replaceFile(path: string, content: string): Promise<void> {
  const draft = `${path}.draft`
  await rm(draft, { force: true })
  const file = await open(draft, 'wx', 0o600)
  try {
    await file.writeFile(content)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(draft, path)
  await syncPath(dirname(path), 'r')
}
