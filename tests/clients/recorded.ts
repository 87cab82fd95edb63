import { Agent, request } from 'node:http'
import type { Json } from '../support/service.ts'

/**
 * One request of a client as it stands on the wire. `{app}`, `{key}`, `{host}` and names that `keeps` gave are filled
 * in wherever they occur; `content-length` is counted from the body.
 */
export type Exchange = {
  /** The client's call that sends it. */
  readonly call: string
  readonly method: string
  readonly path: string
  /** Beside the file's own. */
  readonly headers?: readonly Header[]
  /** Whether the file's headers are left out: a request that another program than the SDK makes. */
  readonly bare?: boolean
  readonly body?: string
  readonly status: number
  /** Where the client looks, and the type that it expects there. */
  readonly reads?: Readonly<Record<string, Kind>>
  /** What the answer must hold. */
  readonly equals?: Json
  /** What the answer must not contain anywhere, as text. */
  readonly lacks?: readonly string[]
  /** Asked again, as the client does, until the answer holds this. */
  readonly until?: Json
  /** Names for later exchanges, and where their values stand in this answer. */
  readonly keeps?: Readonly<Record<string, string>>
}

export type Recording = {
  readonly client: string
  readonly source: string
  readonly headers: readonly Header[]
  readonly exchanges: readonly Exchange[]
}

export type Header = readonly [string, string]
type Kind = 'string' | 'number' | 'boolean' | 'array' | 'object'
export type Names = Readonly<Record<string, string>>

export type Answer = {
  readonly status: number
  readonly headers: NodeJS.Dict<string | string[]>
  readonly text: string
}

/** Sends a request as it was recorded: these headers, spelled and ordered so, and these bytes. */
export async function replay(
  headers: readonly Header[],
  asked: Pick<Exchange, 'method' | 'path' | 'body'>,
  names: Names,
): Promise<Answer> {
  const body = asked.body === undefined ? undefined : Buffer.from(filled(asked.body, names))
  const sent = headers.map(([name, value]): Header => [name, filled(value, names)])
  return send({
    method: asked.method,
    url: `http://${names.host}${filled(asked.path, names)}`,
    headers: body ? [...sent, ['Content-Length', String(body.length)]] : sent,
    body,
  })
}

/** The value at a path such as `result.results.0.id`. */
export function valueAt(value: Json, path: string): Json {
  return path.split('.').reduce((inner, name) => inner?.[name], value)
}

export function kindOf(value: Json): string {
  if (Array.isArray(value)) return 'array'
  return value === null ? 'null' : typeof value
}

/** Fills names into a value of any depth. */
export function filledValue(value: Json, names: Names): Json {
  return JSON.parse(filled(JSON.stringify(value), names))
}

function filled(text: string, names: Names): string {
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => names[name] ?? whole)
}

function send(asked: {
  method: string
  url: string
  headers: readonly Header[]
  body: Buffer | undefined
}): Promise<Answer> {
  // A connection of its own: one that is kept could be closed by the other side just now.
  const agent = new Agent({ keepAlive: false })
  const { method, url, body } = asked
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, agent, headers: asked.headers.flat() }, (reply) => {
      const parts: Buffer[] = []
      reply.on('data', (part: Buffer) => parts.push(part))
      reply.on('error', reject)
      reply.on('end', () =>
        resolve({
          status: reply.statusCode ?? 0,
          headers: reply.headers,
          text: Buffer.concat(parts).toString(),
        }),
      )
    })
    sent.on('error', reject)
    sent.end(body)
  })
}
