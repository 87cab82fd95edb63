import { Agent as HttpAgent, type IncomingMessage, request as requestHttp } from 'node:http'
import { Agent as HttpsAgent, request as requestHttps } from 'node:https'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { AwsV4Signer } from 'aws4fetch'
import { Fault } from '../base/fault.ts'
import type { World } from '../base/world.ts'

/** A bucket of a store that speaks the S3 protocol. */
export type S3Bucket = {
  /** For example `https://s3.eu-central-1.amazonaws.com`. */
  readonly endpoint: string
  readonly region: string
  readonly bucket: string
  /** Begins every key; it ends with a slash, or is empty. */
  readonly prefix: string
  /** True where the bucket is in the path, and not in the host's name. */
  readonly isPathStyle: boolean
  readonly accessKeyId: string
  readonly secretAccessKey: string
}

type Asked = {
  readonly method: 'GET' | 'HEAD' | 'PUT' | 'DELETE'
  /** The object; the bucket itself where it is not given. */
  readonly key?: string
  readonly query?: Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: { readonly open: () => Readable; readonly size: number; readonly sha256: string }
}

/** SHA-256 of nothing, in hex. */
const emptyHash = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'
/** The time without a byte in either direction after which a request is given up. */
const idleMs = 30_000
const triesMax = 3
const pauseMs = 200
const retryAfterSeconds = 5
/** Answers after which the same request may succeed: the store is busy, or is being restarted. */
const passing = new Set([429, 500, 502, 503, 504])

/** Sends signed requests for one bucket (AWS Signature Version 4). All of them may be repeated. */
export class S3Client {
  readonly #bucket: S3Bucket
  readonly #world: World
  readonly #agent: HttpAgent
  /** Keys that were derived for signing. */
  readonly #derived = new Map<string, ArrayBuffer>()

  constructor(bucket: S3Bucket, world: World) {
    this.#bucket = bucket
    this.#world = world
    const options = { keepAlive: true }
    this.#agent = this.#isSecure() ? new HttpsAgent(options) : new HttpAgent(options)
  }

  /**
   * Sends a request; the answer is of status 200 to 299 or 404, and its body is to be read. UNAVAILABLE where the store
   * cannot be reached or answers otherwise.
   */
  async send(asked: Asked): Promise<IncomingMessage> {
    for (let count = 1; ; count++) {
      const answer = await this.#try(asked).catch((error: unknown) => {
        if (count === triesMax) throw this.#makeFault(`cannot be reached: ${String(error)}`, error)
        return undefined
      })
      if (answer !== undefined) {
        const { statusCode: status = 0 } = answer
        if ((status >= 200 && status < 300) || status === 404) return answer
        const said = (await text(answer).catch(() => '')).slice(0, 500)
        if (!passing.has(status) || count === triesMax)
          throw this.#makeFault(`answers ${asked.method} with ${status}: ${said}`, { status })
      }
      await this.#world.sleep(pauseMs * 2 ** count)
    }
  }

  /** Asks for the bucket; gives the status of the answer. Throws where none comes. */
  async probe(): Promise<number> {
    const answer = await this.#try({ method: 'HEAD' })
    answer.resume()
    return answer.statusCode ?? 0
  }

  async #try(asked: Asked): Promise<IncomingMessage> {
    const { method, headers = {}, body } = asked
    const url = this.#makeUrl(asked)
    const { region, accessKeyId, secretAccessKey } = this.#bucket
    const signed = await new AwsV4Signer({
      ...{ method, url: url.href, service: 's3', region, accessKeyId, secretAccessKey },
      datetime: new Date(this.#world.now()).toISOString().replace(/[:-]|\.\d{3}/g, ''),
      headers: { ...headers, 'x-amz-content-sha256': body?.sha256 ?? emptyHash },
      cache: this.#derived,
    }).sign()
    const length = body === undefined ? {} : { 'content-length': String(body.size) }
    return new Promise((resolve, reject) => {
      const request = (this.#isSecure() ? requestHttps : requestHttp)(url, {
        ...{ method, agent: this.#agent, timeout: idleMs },
        headers: { ...Object.fromEntries(signed.headers), ...length },
      })
      request.on('timeout', () => request.destroy(new Error(`no byte came for ${idleMs} ms`)))
      request.on('response', resolve)
      request.on('error', reject)
      if (body === undefined) request.end()
      // A store may refuse before it has read all, and then answers for the request.
      else pipeline(body.open(), request).catch(reject)
    })
  }

  #makeUrl({ key, query = {} }: Asked): URL {
    const { endpoint, bucket, isPathStyle } = this.#bucket
    const url = new URL(endpoint)
    if (!isPathStyle) url.hostname = `${bucket}.${url.hostname}`
    const place = [...(isPathStyle ? [bucket] : []), ...(key === undefined ? [] : [key])]
    url.pathname = `${url.pathname.replace(/\/$/, '')}/${place.join('/')}`
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
    return url
  }

  #isSecure(): boolean {
    return this.#bucket.endpoint.startsWith('https:')
  }

  #makeFault(what: string, cause: unknown): Fault {
    const { endpoint, bucket } = this.#bucket
    return new Fault('UNAVAILABLE', {
      message: 'The store of blobs does not answer; send the same request again.',
      internal: `the bucket ${bucket} at ${endpoint} ${what}`,
      ...{ cause, retryAfterSeconds },
    })
  }
}
