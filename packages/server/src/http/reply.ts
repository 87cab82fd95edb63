import type { Readable } from 'node:stream'

/** A file as an answer; the caller's headers decide what of it is sent, and in which form. */
export type FileBody = {
  readonly size: number
  /** The hash of its bytes, in hex. */
  readonly sha256: string
  readonly contentType: string
  readonly filename: string | undefined
  /** Open to everybody, to this caller, or sold to him. */
  readonly access: 'public' | 'own' | 'sold'
  /** Reads the bytes from the first to the last (both included). */
  readonly read: (range: { readonly start: number; readonly end: number }) => Readable
}

/** The answer of an operation for which a plain object is not enough. */
export class HttpReply {
  readonly status: number | undefined
  readonly headers: Readonly<Record<string, string>>
  /** The body as it goes over the wire: JSON text, or text of `contentType`. */
  readonly text: string | Buffer
  readonly contentType: string
  /** Sent in place of the text. */
  readonly file: FileBody | undefined
  /** False of what was bought, and pays less than its entry in the log costs: it counts as work without money. */
  readonly paysForEntry: boolean

  constructor(
    text: string | Buffer,
    options: {
      status?: number
      headers?: Readonly<Record<string, string>>
      contentType?: string
      file?: FileBody
      paysForEntry?: boolean
    } = {},
  ) {
    this.text = text
    this.status = options.status
    this.headers = options.headers ?? {}
    this.file = options.file
    this.paysForEntry = options.paysForEntry ?? true
    this.contentType = options.contentType ?? 'application/json; charset=utf-8'
  }
}

/** Makes a JSON answer with a status or headers of its own. */
export function makeJsonReply(
  body: unknown,
  options: { status?: number; headers?: Readonly<Record<string, string>> } = {},
): HttpReply {
  return new HttpReply(JSON.stringify(body), options)
}
