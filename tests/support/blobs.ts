import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { createData, type Data } from './data.ts'
import type { Json, TestService } from './service.ts'

export type UploadOptions = {
  readonly metadata?: string
  readonly type?: string
  readonly name?: string
  readonly headers?: Readonly<Record<string, string>>
  /** Sends the body without its length. */
  readonly isChunked?: boolean
}

export type Answer = {
  readonly status: number
  readonly body: Json
  readonly text: string
  readonly headers: Headers
}

export type Blobs = {
  readonly appId: string
  readonly data: Data
  /** Uploads with the application's key and waits until the tables show it. */
  readonly upload: (
    collection: string,
    bytes: string | Uint8Array<ArrayBuffer>,
    options?: UploadOptions,
  ) => Promise<Answer>
  /** Sends a body to the upload, with the application's key. */
  readonly send: (
    collection: string,
    body: FormData | string,
    headers?: Readonly<Record<string, string>>,
  ) => Promise<Answer>
  /** Gets a blob as bytes, with the application's key unless the headers say otherwise. */
  readonly download: (
    collection: string,
    blob: string,
    headers?: Readonly<Record<string, string>>,
  ) => Promise<Answer & { readonly bytes: Buffer }>
  /** Asks for the head of a blob's answer. */
  readonly head: Blobs['download']
  /** The hashes of the application's files. */
  readonly listFiles: () => string[]
}

/** Opens an application for blobs. */
export async function createBlobs(service: TestService): Promise<Blobs> {
  const data = await createData(service)
  const { appId } = data
  const at = (collection: string) => `${service.url}/api/apps/${appId}/blobs/${collection}`
  const send = async (url: string, init: RequestInit) => {
    const answer = await fetch(url, init)
    const bytes = Buffer.from(await answer.arrayBuffer())
    const text = bytes.toString()
    const isJson = answer.headers.get('content-type')?.startsWith('application/json') === true
    const body: Json = isJson && text !== '' ? JSON.parse(text) : undefined
    return { status: answer.status, body, text, headers: answer.headers, bytes }
  }
  const get = (method: string, [collection, blob, headers = {}]: Parameters<Blobs['download']>) =>
    send(`${at(collection)}/${blob}`, {
      method,
      headers: { accept: 'application/octet-stream', ...data.headers, ...headers },
    })
  return {
    appId,
    data,
    upload: (collection, bytes, options = {}) => {
      const { metadata, type = 'application/octet-stream', name = 'file', isChunked } = options
      const form = new FormData()
      form.append('blob', new Blob([bytes], { type }), name)
      if (metadata !== undefined) form.append('metadata', metadata)
      const { body, headers } = new Response(form)
      const init: RequestInit =
        isChunked === true
          ? {
              body,
              headers: { 'content-type': headers.get('content-type') ?? '', ...data.headers },
              duplex: 'half',
            }
          : { body: form, headers: { ...data.headers, ...options.headers } }
      return send(`${at(collection)}?wait=true`, { method: 'POST', ...init })
    },
    send: (collection, body, headers = {}) =>
      send(at(collection), { method: 'POST', body, headers: { ...data.headers, ...headers } }),
    download: (...asked) => get('GET', asked),
    head: (...asked) => get('HEAD', asked),
    listFiles: () => {
      const tenant = service.running.service.tenants.listOpen()
      const number = tenant.find(({ application }) => application.app_id === appId)?.application
        .number
      const root = join(service.config.dataDir, 'blobs', String(number))
      return existsSync(root)
        ? readdirSync(root).flatMap((shard) => readdirSync(join(root, shard)))
        : []
    },
  }
}
