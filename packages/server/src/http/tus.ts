import { PassThrough } from 'node:stream'
import { limits } from '@tollbase/contract/limits'
import { assert } from '../base/assert.ts'
import { Fault, makeInvalidFault } from '../base/fault.ts'
import type { World } from '../base/world.ts'
import type { RequestInfo } from './request-info.ts'
import { toContentType, toFilename } from './upload.ts'
import { startMeter } from './upload-meter.ts'

// The protocol tus 1.0 (https://tus.io/protocols/resumable-upload): uploads in several requests. Its answers are in
// headers.

export const tusVersion = '1.0.0'
export const chunkType = 'application/offset+octet-stream'

type Headers = Pick<RequestInfo, 'headers'>

/** 412 where a client speaks another version. */
export function refuseOtherVersion({ headers }: Headers): void {
  const version = headers['tus-resumable']
  if (version === undefined || version === tusVersion) return
  throw new Fault('UPLOAD_VERSION', {
    message: `The version ${String(version)} of tus is not spoken here; send Tus-Resumable: ${tusVersion}`,
    headers: { 'Tus-Version': tusVersion },
  })
}

/** Reads a header that is a number of bytes. */
export function readByteCount({ headers }: Headers, name: string): number {
  const text = String(headers[name.toLowerCase()] ?? '')
  if (/^(0|[1-9][0-9]{0,14})$/.test(text)) return Number(text)
  throw makeInvalidFault(`/headers/${name.toLowerCase()}`, 'must be a number of bytes')
}

export type UploadNames = {
  readonly contentType: string
  readonly filename: string | undefined
  readonly metadata: string | undefined
}

/** Reads `Upload-Metadata`: names with values in base64. Clients send more than what is known here. */
export function readUploadMetadata({ headers }: Headers): UploadNames {
  const header = String(headers['upload-metadata'] ?? '')
  const values = new Map<string, string>()
  for (const pair of header.split(',').map((one) => one.trim())) {
    if (pair === '') continue
    const [name = '', value = '', more] = pair.split(/ +/)
    if (more !== undefined || values.has(name) || !/^[A-Za-z0-9+/]*={0,2}$/.test(value))
      throw makeInvalidFault('/headers/upload-metadata', 'must be names with values in base64')
    values.set(name, Buffer.from(value, 'base64').toString())
  }
  return {
    contentType: toContentType(values.get('filetype') ?? ''),
    filename: toFilename(values.get('filename')),
    metadata: values.get('metadata'),
  }
}

export type BytesOptions = {
  readonly world: World
  /** Most bytes that the body may have. */
  readonly bytesMax: number
  /** Ends the body where it is aborted. */
  readonly signal: AbortSignal
}

/**
 * Reads the body of a request as bytes, in time: a body below the lowest rate is refused (408), and so is one that is too
 * long (413) or other than its stated hash (400). A body that breaks off is an error at its end.
 */
export async function* readBytes(
  { headers, upload }: Pick<RequestInfo, 'headers' | 'upload'>,
  { world, bytesMax, signal }: BytesOptions,
): AsyncGenerator<Buffer> {
  assert(upload !== undefined, 'the endpoint takes a stream')
  if (Number(headers['content-length'] ?? 0) > bytesMax) throw makeLongFault(bytesMax)
  const { stream } = upload
  const through = new PassThrough({ highWaterMark: 1024 * 1024 })
  const fail = (error: Fault) => through.destroy(error)
  const bounds = { world, bytesMax, makeFault: () => makeLongFault(bytesMax) }
  const meter = startMeter(upload, bounds, fail)
  const breakOff = () => fail(makeInvalidFault('', 'did not arrive whole'))
  const replaced = () => fail(makeInvalidFault('', 'is followed by a later request to this upload'))
  if (signal.aborted) replaced()
  signal.addEventListener('abort', replaced, { once: true })
  stream.on('close', breakOff).on('error', breakOff).on('data', meter.count)
  stream.once('end', () => stream.off('close', breakOff))
  // It was told before that its sender has gone.
  if (stream.destroyed) breakOff()
  stream.pipe(through)
  try {
    yield* through
    const problem = meter.findProblem()
    if (problem !== undefined) throw problem
  } finally {
    meter.stop()
    signal.removeEventListener('abort', replaced)
    stream.unpipe(through)
    stream.off('close', breakOff).off('error', breakOff).off('data', meter.count)
    stream.on('error', () => undefined)
    // The rest is thrown away as it comes.
    stream.resume()
  }
}

function makeLongFault(bytesMax: number): Fault {
  return new Fault('PAYLOAD_TOO_LARGE', {
    message: `The body has more than the ${bytesMax} bytes that are missing`,
    details: { limit: bytesMax },
  })
}

/** The time after which an upload is gone, as the protocol writes it. */
export function formatExpiry(touchedAtMs: number): string {
  return new Date(touchedAtMs + limits.openUploadMs).toUTCString()
}
