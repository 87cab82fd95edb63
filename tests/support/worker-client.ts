import { once } from 'node:events'
import { Worker } from 'node:worker_threads'

export type WorkerRequest = {
  readonly method: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

export type WorkerReply = { readonly status: number; readonly text: string; readonly ms: number }

/** Sends requests from a worker thread, so that making and reading them costs this thread nothing. */
export type WorkerClient = {
  /** Sends all at once; gives the replies in the order of the requests, with the beginning of each text. */
  readonly send: (requests: readonly WorkerRequest[]) => Promise<readonly WorkerReply[]>
  readonly close: () => Promise<void>
}

const script = `
const { parentPort, workerData } = require('node:worker_threads')
const { Agent, request } = require('node:http')
const agent = new Agent({ keepAlive: true, maxSockets: 64 })
const one = ({ method, path, headers, body }) => new Promise((resolve) => {
  const start = performance.now()
  const end = (status, text) => resolve({ status, text, ms: performance.now() - start })
  const sent = request(workerData + path, { agent, method, headers }, (reply) => {
    let text = ''
    reply.setEncoding('utf8').on('data', (chunk) => { if (text.length < 2000) text += chunk })
    reply.on('end', () => end(reply.statusCode, text.slice(0, 2000)))
  })
  sent.on('error', (error) => end(0, String(error)))
  if (body !== undefined) {
    sent.setHeader('content-type', 'application/json')
    sent.setHeader('content-length', Buffer.byteLength(body))
  }
  sent.end(body)
})
parentPort.on('message', async (requests) => parentPort.postMessage(await Promise.all(requests.map(one))))
`

export function startWorkerClient(url: string): WorkerClient {
  const worker = new Worker(script, { eval: true, workerData: url })
  let last: Promise<unknown> = Promise.resolve()
  return {
    send: (requests) => {
      const sent = last.then(async () => {
        worker.postMessage(requests)
        const [replies] = await once(worker, 'message')
        return replies
      })
      last = sent.catch(() => undefined)
      return sent
    },
    close: async () => {
      await worker.terminate()
    },
  }
}
