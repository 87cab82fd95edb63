import { Agent, request } from 'node:http'
import type { Json } from '../support/service.ts'

/**
 * One request of a client as it is sent. `{app}`, `{key}`, `{host}` and names that `keeps` gave are filled in
 * wherever they occur; `content-length` is counted from the body.
 */
export type Exchange = {
  /** The client's call that sends it. */
  readonly call: string
  readonly method: string
  readonly path: string
  /** Headers beside the file's own. */
  readonly headers?: readonly Header[]
  /** The request is made by another program than the SDK, so the file's headers are left out. */
  readonly bare?: boolean
  readonly body?: string
  readonly status: number
  /** The paths that the client reads, and the type that it expects there. */
  readonly reads?: Readonly<Record<string, Kind>>
  /** The value that the answer must hold. */
  readonly equals?: Json
  /** The texts that the answer must not contain anywhere. */
  readonly lacks?: readonly string[]
  /** The request is repeated, as the client does, until the answer holds this. */
  readonly until?: Json
  /** Names for later exchanges, and the paths of their values in this answer. */
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

/** Sends a request as it was recorded: these headers, in this spelling and order, and these bytes. */
export async function replay(
  headers: readonly Header[],
  asked: Pick<Exchange, 'method' | 'path' | 'body'>,
  names: Names,
): Promise<Answer> {
  const body = asked.body === undefined ? undefined : Buffer.from(fillNames(asked.body, names))
  const sent = headers.map(([name, value]): Header => [name, fillNames(value, names)])
  return send({
    method: asked.method,
    url: `http://${names.host}${fillNames(asked.path, names)}`,
    headers: body ? [...sent, ['Content-Length', String(body.length)]] : sent,
    body,
  })
}

/** Returns the value at a path such as `result.results.0.id`. */
export function getValueAt(value: Json, path: string): Json {
  return path.split('.').reduce((inner, name) => inner?.[name], value)
}

export function getKind(value: Json): string {
  if (Array.isArray(value)) return 'array'
  return value === null ? 'null' : typeof value
}

/** Fills names into a value of any depth. */
export function fillValue(value: Json, names: Names): Json {
  return JSON.parse(fillNames(JSON.stringify(value), names))
}

function fillNames(text: string, names: Names): string {
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => names[name] ?? whole)
}

function send(asked: {
  method: string
  url: string
  headers: readonly Header[]
  body: Buffer | undefined
}): Promise<Answer> {
  // The request has a connection of its own: the other side could just now close one that is kept.
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
