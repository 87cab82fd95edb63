/** The answer of an operation for which a plain object is not enough. */
export class HttpReply {
  readonly status: number | undefined
  readonly headers: Readonly<Record<string, string>>
  /** The body as it goes over the wire: JSON text, or text of `contentType`. */
  readonly text: string | Buffer
  readonly contentType: string

  constructor(
    text: string | Buffer,
    options: {
      status?: number
      headers?: Readonly<Record<string, string>>
      contentType?: string
    } = {},
  ) {
    this.text = text
    this.status = options.status
    this.headers = options.headers ?? {}
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
