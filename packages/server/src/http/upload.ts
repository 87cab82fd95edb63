import { createHash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'
import { Busboy } from '@fastify/busboy'
import { limits } from '@tollbase/contract/limits'
import { assert, requirePresent } from '../base/assert.ts'
import { Fault, makeInvalidFault } from '../base/fault.ts'
import type { World } from '../base/world.ts'
import type { RequestInfo } from './request-info.ts'
import { startMeter } from './upload-meter.ts'

/** The file of a form, while its bytes arrive. */
export type FormFile = {
  readonly stream: Readable
  /** As the client says; application/octet-stream where that is no type. */
  readonly contentType: string
  readonly filename: string | undefined
}

export type FormOptions<T> = {
  readonly world: World
  /** The name of the part that is a file, in whatever form a client sends it. */
  readonly file: string
  readonly fileBytesMax: number
  /** Takes the file; it reads the stream to its end. */
  readonly take: (file: FormFile) => Promise<T>
  /** Gives back what was taken of a form that is refused. */
  readonly drop: (taken: T) => Promise<void>
}

/** A form that has arrived whole. */
export type Form<T> = { readonly taken: T; readonly fields: ReadonlyMap<string, string> }

const partsMax = 32
const headerPairsMax = 32
const typePattern = /^[a-z0-9][a-z0-9!#$&^_.+-]{0,99}\/[a-z0-9][a-z0-9!#$&^_.+-]{0,99}$/

/**
 * Reads a multipart form (RFC 7578) as a stream. It ends in time: a body below the lowest rate is refused (408), and
 * so is one that is too long (413), no form (400), or other than its stated hash (400). After a refusal the rest is
 * thrown away as it comes.
 */
export function readForm<T>(
  { headers, upload }: Pick<RequestInfo, 'headers' | 'upload'>,
  options: FormOptions<T>,
): Promise<Form<T>> {
  assert(upload !== undefined, 'the endpoint takes a form')
  refuseLength(headers, options.fileBytesMax)
  const parser = openParser(headers, options)
  return new Promise((resolve, reject) => {
    const parts = new FormParts(options, (error) => end(error))
    const { world, fileBytesMax } = options
    const bounds = {
      bytesMax: fileBytesMax + limits.blobFormBytesMax,
      makeFault: () => makeLargeFault(fileBytesMax),
    }
    const meter = startMeter(upload, { world, ...bounds }, (error) => end(error))
    const { stream } = upload
    const end = (error?: unknown) => {
      meter.stop()
      stream.off('data', write).off('end', finish).off('close', hangUp).off('error', hangUp)
      if (error === undefined) return
      parser.removeAllListeners()
      parser.on('error', () => undefined)
      stream.resume()
      // Nothing of it is left when the refusal goes out.
      void parts.abandon(error).finally(() => reject(error))
    }
    const write = (chunk: Buffer) => {
      meter.count(chunk)
      if (!parser.write(chunk)) stream.pause()
    }
    const finish = () => {
      stream.off('close', hangUp).off('error', hangUp)
      const problem = meter.findProblem()
      if (problem === undefined) parser.end()
      else end(problem)
    }
    const hangUp = () =>
      end(new Fault('VALIDATION_FAILED', { message: 'The body did not arrive whole' }))
    parser.on('drain', () => stream.resume())
    parser.on('error', (error: unknown) => end(toFormFault(error)))
    // biome-ignore lint/complexity/useMaxParams: as busboy calls it.
    parser.on('file', (name, file, filename, _encoding, type) => {
      parts.addFile(name, {
        stream: file,
        contentType: toContentType(type),
        filename: toFilename(filename),
      })
    })
    // biome-ignore lint/complexity/useMaxParams: as busboy calls it.
    parser.on('field', (name, value, _isNameCut, isCut) => parts.addField(name, { value, isCut }))
    for (const limit of ['partsLimit', 'filesLimit', 'fieldsLimit'] as const)
      parser.on(limit, () => end(makeInvalidFault('', 'has too many parts, or two files')))
    parser.on('finish', () => {
      const problem = parts.findProblem()
      end(problem)
      if (problem === undefined) parts.collect().then(resolve, reject)
    })
    stream.on('data', write).on('end', finish).on('close', hangUp).on('error', hangUp)
    // It was told before that its sender has gone.
    if (stream.destroyed) hangUp()
  })
}

export const emptySha256 = createHash('sha256').digest('hex')

/** Says that no body follows (RFC 9112, 6.3). */
export function isBodyEmpty(headers: IncomingHttpHeaders): boolean {
  return headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0
}

/**
 * Finds the hash of a body before it comes, in hex: the stated one (RFC 9530: `Content-Digest: sha-256=:<base64>:`), or
 * that of no bytes where none follow.
 */
export function findDigest(headers: IncomingHttpHeaders): string | undefined {
  const header = headers['content-digest']
  const [, text] = /(?:^|,)\s*sha-256=:([A-Za-z0-9+/]{43}=):/.exec(String(header ?? '')) ?? []
  if (text !== undefined) return Buffer.from(text, 'base64').toString('hex')
  return isBodyEmpty(headers) ? emptySha256 : undefined
}

/** The parts of a form as they come. */
class FormParts<T> {
  readonly #options: FormOptions<T>
  readonly #fail: (error: unknown) => void
  readonly #fields = new Map<string, string>()
  #file: Readable | undefined
  #taken: Promise<T> | undefined

  constructor(options: FormOptions<T>, fail: (error: unknown) => void) {
    this.#options = options
    this.#fail = fail
  }

  addFile(name: string, file: FormFile): void {
    if (name !== this.#options.file) {
      file.stream.resume()
      this.#fail(makeUnknownFault(name))
      return
    }
    this.#file = file.stream
    // Its reader learns of an error by itself; until there is one, nobody else does.
    file.stream.on('error', () => undefined)
    file.stream.once('limit', () => this.#fail(makeLargeFault(this.#options.fileBytesMax)))
    this.#taken = this.#options.take(file)
    this.#taken.catch((error: unknown) => this.#fail(error))
  }

  addField(name: string, { value, isCut }: { value: string; isCut: boolean }): void {
    if (isCut)
      this.#fail(
        new Fault('PAYLOAD_TOO_LARGE', {
          message: `${name} is longer than ${limits.blobMetadataBytesMax} bytes`,
        }),
      )
    if (this.#fields.has(name)) this.#fail(makeInvalidFault(`/${name}`, 'is given more than once'))
    this.#fields.set(name, value)
  }

  /** Tells what a form lacks that has arrived. */
  findProblem(): Fault | undefined {
    const { file } = this.#options
    return this.#taken === undefined ? makeInvalidFault(`/${file}`, 'is needed') : undefined
  }

  /** Waits until the file is taken. */
  async collect(): Promise<Form<T>> {
    const taken = await requirePresent(this.#taken, 'the file of a form')
    return { taken, fields: this.#fields }
  }

  /** Ends the reader of a file that does not come any more, and gives back what it has taken. */
  async abandon(error: unknown): Promise<void> {
    this.#file?.destroy(error instanceof Error ? error : new Error(String(error)))
    await this.#taken?.then(this.#options.drop, () => undefined)
  }
}

function openParser<T>(
  headers: IncomingHttpHeaders,
  { file, fileBytesMax }: FormOptions<T>,
): Busboy {
  const type = headers['content-type'] ?? ''
  if (!/^multipart\/form-data\s*;/i.test(type) || !/boundary=/i.test(type))
    throw makeInvalidFault('', `must be multipart/form-data, with a part ${file}`)
  try {
    return new Busboy({
      headers: { ...headers, 'content-type': type },
      isPartAFile: (name, _type, filename) => name === file || filename !== undefined,
      limits: {
        fileSize: fileBytesMax,
        files: 1,
        fields: partsMax,
        parts: partsMax,
        fieldSize: limits.blobMetadataBytesMax,
        headerPairs: headerPairsMax,
      },
    })
  } catch (error) {
    throw toFormFault(error)
  }
}

/** A body that says that it is too long need not come. */
function refuseLength(headers: IncomingHttpHeaders, fileBytesMax: number): void {
  if (Number(headers['content-length'] ?? 0) > fileBytesMax + limits.blobFormBytesMax)
    throw makeLargeFault(fileBytesMax)
}

function makeLargeFault(bytesMax: number): Fault {
  return new Fault('PAYLOAD_TOO_LARGE', {
    message: `The blob is larger than ${bytesMax} bytes`,
    details: { limit: bytesMax },
  })
}

function makeUnknownFault(name: string): Fault {
  return new Fault('UNKNOWN_MEMBER', {
    message: `/${name} is not known here`,
    details: { field: `/${name}` },
  })
}

function toFormFault(error: unknown): Fault {
  if (error instanceof Fault) return error
  return new Fault('VALIDATION_FAILED', {
    message: 'The body is no multipart form that can be read',
    internal: String(error),
  })
}

/** Parameters are dropped: what a browser does with content must not depend on what an uploader puts there. */
export function toContentType(type: string): string {
  const [plain = ''] = type.toLowerCase().split(';')
  return typePattern.test(plain.trim()) ? plain.trim() : 'application/octet-stream'
}

/**
 * The last part of a path, without signs that have a meaning in headers, or turn the direction of a text, and without
 * halves of surrogate pairs, which a client can write (`filename*=utf-16le''…`) and no row can hold.
 */
export function toFilename(sent: string | undefined): string | undefined {
  const last = (sent ?? '').split(/[\\/]/).at(-1) ?? ''
  const clean = last.replace(/[\p{Cc}\p{Cf}\p{Cs}"]/gu, '').trim()
  const short = [...clean].slice(0, limits.filenameCharsMax).join('')
  return short === '' || short === '.' || short === '..' ? undefined : short
}
