import { Transform, type TransformCallback } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Fault } from '../base/fault.ts'
import { makeAbortedFault } from '../base/semaphore.ts'
import { type ByteRange, parseRange } from './byte-range.ts'
import { hasTag } from './entity-tags.ts'
import type { FileBody } from './reply.ts'

type Headers = FastifyRequest['headers']

/**
 * Types that browsers show without running anything; all others are downloads. Even these are shown in a sandbox, so
 * that no content that somebody has uploaded acts as a page of this service.
 */
const shown =
  /^(image\/(png|jpeg|gif|webp|avif|bmp)|audio\/[\w.+-]+|video\/[\w.+-]+|text\/plain)(;|$)/
const fileHeaders = [
  'content-length',
  'content-range',
  'content-disposition',
  'content-security-policy',
  'accept-ranges',
  'etag',
  'cache-control',
]
const policy = "default-src 'none'; style-src 'unsafe-inline'; sandbox"

/**
 * Sends a file: its bytes to callers that ask for bytes, and a JSON string (base64) to all others. HEAD has the same
 * headers.
 */
export async function sendFile(
  request: FastifyRequest,
  reply: FastifyReply,
  file: FileBody,
): Promise<FastifyReply> {
  // Nobody would read the file to its end, or close it.
  if (reply.raw.destroyed || reply.sent) throw makeAbortedFault()
  reply.header('vary', `${String(reply.getHeader('vary') ?? '')}, Accept, Range, If-None-Match`)
  if (!wantsBytes(request)) return sendText(request, reply, file)
  const { headers } = request
  const range = findRange(headers, file)
  if (range === 'unsatisfiable') throw makeRangeFault(file.size)
  setHeaders(reply, file)
  const tag = `"${file.sha256}"`
  // A bought answer has its bytes, whatever its buyer has already.
  const isKnown = hasTag(headers['if-none-match'], (one) => one === tag)
  if (file.access !== 'sold' && isKnown) return reply.code(304).send()
  const { start, end } = range ?? { start: 0, end: file.size - 1 }
  reply.code(range === undefined ? 200 : 206)
  if (range !== undefined) reply.header('content-range', `bytes ${start}-${end}/${file.size}`)
  reply.header('content-length', String(end - start + 1))
  if (request.method === 'HEAD') return sendHead(reply)
  const stream = file.read({ start, end })
  // An error before the first byte is answered as any other, without the file's headers.
  stream.once('error', () => {
    for (const name of fileHeaders) reply.removeHeader(name)
  })
  return reply.send(stream)
}

/** Throws 416 for a range beyond the end, which nobody is asked to pay for. */
export function refuseRange(headers: Headers, file: Pick<FileBody, 'size' | 'sha256'>): void {
  if (findRange(headers, file) === 'unsatisfiable') throw makeRangeFault(file.size)
}

/** An If-Range of other content asks for all of it. */
function findRange(
  headers: Headers,
  { size, sha256 }: Pick<FileBody, 'size' | 'sha256'>,
): ByteRange | 'unsatisfiable' | undefined {
  const condition = headers['if-range']
  if (condition !== undefined && condition !== `"${sha256}"`) return undefined
  return parseRange(headers.range, size)
}

/** Bytes are asked for by a type that is not JSON, by a range or condition, or by the query string. */
function wantsBytes({ headers, query }: FastifyRequest): boolean {
  if (headers.range !== undefined || headers['if-none-match'] !== undefined) return true
  if (headers['if-range'] !== undefined || headers['if-match'] !== undefined) return true
  if (headers['if-modified-since'] !== undefined) return true
  if ((query as Readonly<Record<string, unknown>>).format === 'raw') return true
  return (headers.accept ?? '').split(',').some((one) => {
    const [type = '', ...parameters] = one.split(';').map((part) => part.trim().toLowerCase())
    const isRefused = parameters.some((part) => /^q=0(\.0*)?$/.test(part))
    return type !== '' && type !== '*/*' && type !== 'application/json' && !isRefused
  })
}

function setHeaders(reply: FastifyReply, file: FileBody): void {
  const kind = shown.test(file.contentType) ? 'inline' : 'attachment'
  reply.header('content-type', file.contentType)
  reply.header('content-disposition', `${kind}${formatFilename(file.filename)}`)
  reply.header('content-security-policy', policy)
  reply.header('accept-ranges', 'bytes')
  reply.header('etag', `"${file.sha256}"`)
  // Caches ask each time whether the caller still may; a sold one is for its buyer alone.
  if (file.access !== 'sold')
    reply.header('cache-control', `${file.access === 'public' ? 'public' : 'private'}, no-cache`)
}

/** The name as RFC 6266 writes it, with a plain one for old clients. */
function formatFilename(name: string | undefined): string {
  if (name === undefined) return ''
  const plain = name.replace(/[^\w.\- ]/g, '_')
  const whole = encodeURIComponent(name).replace(
    /['()*]/g,
    (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`,
  )
  return `; filename="${plain}"; filename*=UTF-8''${whole}`
}

function makeRangeFault(size: number): Fault {
  return new Fault('RANGE_NOT_SATISFIABLE', {
    message: `The range begins after the end of the ${size} bytes`,
    details: { size },
  })
}

function sendText(request: FastifyRequest, reply: FastifyReply, file: FileBody): FastifyReply {
  reply.code(200).header('content-type', 'application/json; charset=utf-8')
  reply.header('content-length', String(2 + Math.ceil(file.size / 3) * 4))
  if (request.method === 'HEAD') return sendHead(reply)
  const text = new Base64Text()
  // The end of one is the end of the other: a reader that goes away frees the file.
  const source = file.read({ start: 0, end: file.size - 1 })
  source.once('error', (error) => text.destroy(error))
  text.once('close', () => source.destroy())
  return reply.send(source.pipe(text))
}

/** Fastify would state the length of the empty body. */
function sendHead(reply: FastifyReply): FastifyReply {
  const { raw } = reply.hijack()
  for (const [name, value] of Object.entries(reply.getHeaders()))
    if (value !== undefined) raw.setHeader(name, value)
  raw.statusCode = reply.statusCode
  raw.end()
  return reply
}

/** Turns bytes into a JSON string of their base64. */
class Base64Text extends Transform {
  /** Bytes that do not fill a group of three yet. */
  #rest: Buffer = Buffer.alloc(0)

  constructor() {
    super()
    this.push('"')
  }

  override _transform(chunk: Buffer, _encoding: string, done: TransformCallback): void {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    const whole = bytes.length - (bytes.length % 3)
    this.#rest = bytes.subarray(whole)
    done(null, bytes.toString('base64', 0, whole))
  }

  override _flush(done: TransformCallback): void {
    done(null, `${this.#rest.toString('base64')}"`)
  }
}
