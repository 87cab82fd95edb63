import { createReadStream } from 'node:fs'
import { stat, unlink } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { findErrorCode } from '../base/files.ts'
import type { World } from '../base/world.ts'
import {
  type BlobPlace,
  type BlobShelf,
  type ByteRange,
  formatPlace,
  makeGoneFault,
  parsePlace,
} from './blob-shelf.ts'
import { type S3Bucket, S3Client } from './s3-client.ts'
import { toStorageFault } from './storage-faults.ts'

const bufferBytes = 256 * 1024
/** The most that the protocol lists at once. */
const pageKeysMax = 1_000

/** The largest object that one request may bring: 5 GiB, by the protocol. */
export const s3ObjectBytesMax = 5 * 1024 ** 3

/**
 * Keeps the files as objects of a bucket, by the paths that they have in a folder. Each is sent by one request that
 * states its hash, so the store takes all of its bytes or nothing.
 */
export class S3Shelf implements BlobShelf {
  readonly name: string
  readonly #client: S3Client
  readonly #prefix: string
  readonly #pageKeys: number

  /** `pageKeys`: objects that one answer lists. */
  constructor(bucket: S3Bucket, world: World, pageKeys: number = pageKeysMax) {
    this.name = `s3 ${bucket.endpoint} ${bucket.bucket}/${bucket.prefix}`
    this.#client = new S3Client(bucket, world)
    this.#prefix = bucket.prefix
    this.#pageKeys = pageKeys
  }

  /** The status that the store answers for the bucket; throws where it does not answer. */
  probe(): Promise<number> {
    return this.#client.probe()
  }

  async findSize(place: BlobPlace): Promise<number | undefined> {
    const answer = await this.#client.send({ method: 'HEAD', key: this.#getKey(place) })
    answer.resume()
    return answer.statusCode === 404 ? undefined : Number(answer.headers['content-length'])
  }

  read(place: BlobPlace, range?: ByteRange): Readable {
    // Asked for with the first read, so that nobody has to close what is never read.
    return Readable.from(this.#get(place, range), {
      objectMode: false,
      highWaterMark: bufferBytes,
    })
  }

  async put(path: string, place: BlobPlace): Promise<void> {
    try {
      const { size } = await stat(path)
      const open = () => createReadStream(path, { highWaterMark: bufferBytes })
      const body = { open, size, sha256: place.sha256 }
      const answer = await this.#client.send({ method: 'PUT', key: this.#getKey(place), body })
      answer.resume()
      if (answer.statusCode === 404) throw new Error(`${this.name} has no such bucket`)
      await unlink(path)
    } catch (error) {
      throw toStorageFault(error)
    }
  }

  async remove(place: BlobPlace): Promise<void> {
    const answer = await this.#client.send({ method: 'DELETE', key: this.#getKey(place) })
    answer.resume()
  }

  async *list(folder?: number): AsyncGenerator<BlobPlace & { readonly size: number }> {
    const prefix = folder === undefined ? this.#prefix : `${this.#prefix}${folder}/`
    // The first version of the list goes on after a key; the tokens of the second one not every store can make.
    for (let after = ''; ; ) {
      const query = {
        ...{ prefix, 'max-keys': String(this.#pageKeys) },
        ...(after !== '' && { marker: after }),
      }
      const answer = await this.#client.send({ method: 'GET', query })
      const page = await text(answer)
      if (answer.statusCode === 404) throw new Error(`${this.name} has no such bucket`)
      const found = [...page.matchAll(/<Contents>(.*?)<\/Contents>/gs)].map(([, one = '']) => ({
        key: findText(one, 'Key'),
        size: Number(findText(one, 'Size')),
      }))
      for (const { key, size } of found) {
        const place = parsePlace(key.slice(this.#prefix.length))
        if (place !== undefined) yield { ...place, size }
      }
      after = found.at(-1)?.key ?? ''
      if (after === '' || findText(page, 'IsTruncated') !== 'true') return
    }
  }

  async *#get(place: BlobPlace, range: ByteRange | undefined): AsyncGenerator<Buffer> {
    const headers: Record<string, string> =
      range === undefined ? {} : { range: `bytes=${range.start}-${range.end}` }
    const answer = await this.#client.send({ method: 'GET', key: this.#getKey(place), headers })
    try {
      // It was there when its size was asked for.
      if (answer.statusCode === 404) throw makeGoneFault(place.sha256, `missing in ${this.name}`)
      yield* answer as AsyncIterable<Buffer>
    } catch (error) {
      throw findErrorCode(error) === undefined ? error : new Error(`${this.name}: ${String(error)}`)
    } finally {
      answer.destroy()
    }
  }

  #getKey(place: BlobPlace): string {
    return `${this.#prefix}${formatPlace(place)}`
  }
}

/** Finds the text of an element. Keys of ours, sizes and truth values have nothing that XML escapes. */
function findText(xml: string, element: string): string {
  return new RegExp(`<${element}>([^<]*)</${element}>`).exec(xml)?.[1] ?? ''
}
