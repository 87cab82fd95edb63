import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { type IncomingMessage, type RequestOptions, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { app, createApplication, openPlace, startOurs, startPeer } from './place.ts'
import type { Benchmark, Row } from './report.ts'
import { interleave } from './rounds.ts'

const mebibytes = 100
const pieceBytes = 256 * 1024
const boundary = 'a-boundary-of-the-benchmark'

/** Compares a large blob on its way up and down with a server that streams to a file with fsync, and from it. */
export const blobs: Benchmark = {
  name: 'blobs',
  run: async ({ rounds, nodeOptions }) => {
    const place = await openPlace()
    const folder = mkdtempSync(join(tmpdir(), 'tollbase-bench-'))
    const ours = await startOurs(place, { nodeOptions })
    const peer = await startPeer('file-server', { folder })
    try {
      const key = await createApplication(ours.port)
      const path = `/api/apps/${app}/blobs/files`
      const upload = async () => {
        const { head, tail } = makeForm()
        const headers = {
          'x-app-key': key,
          'content-type': `multipart/form-data; boundary=${boundary}`,
        }
        const to = { port: ours.port, method: 'POST', path: `${path}?wait=true`, headers }
        const text = await send(to, [head, ...makePieces(), tail])
        return String(JSON.parse(text).blob_id)
      }
      let newest = await upload()
      const bring = async () => {
        newest = await upload()
      }
      const down = () =>
        send({
          port: ours.port,
          path: `${path}/${newest}?format=raw`,
          headers: { 'x-app-key': key },
        })
      await down()
      const put = () => send({ port: peer.port, method: 'PUT', path: '/file' }, makePieces())
      await put()
      const growth = await measureGrowth(ours.pid, async () => {
        await bring()
        await down()
      })
      const rows: Row[] = [
        {
          name: `blob of ${mebibytes} MiB up`,
          unit: 'MiB/s',
          target: 0.5,
          comparison: await interleave({
            rounds,
            ours: () => measure(bring),
            peer: () => measure(put),
          }),
          note: 'random bytes; peer: node:http streams the body to a file and syncs it, without a hash',
        },
        {
          name: `blob of ${mebibytes} MiB down`,
          unit: 'MiB/s',
          target: 0.5,
          comparison: await interleave({
            rounds,
            ours: () => measure(down),
            peer: () => measure(() => send({ port: peer.port, path: '/file' })),
          }),
          note: 'peer: node:http streams the file',
        },
        {
          name: `growth of memory by a blob of ${mebibytes} MiB up and down`,
          unit: '',
          value: `${growth} MiB`,
          note: 'aim 32 MiB; the most of the resident set over what it was before, the second blob of the process',
        },
      ]
      return rows
    } finally {
      await ours.stop()
      await peer.stop()
      await place.close()
      rmSync(folder, { recursive: true, force: true })
    }
  },
}

function makeForm(): { readonly head: Buffer; readonly tail: Buffer } {
  const part = `Content-Disposition: form-data; name="blob"; filename="file"\r\nContent-Type: application/octet-stream`
  return {
    head: Buffer.from(`--${boundary}\r\n${part}\r\n\r\n`),
    tail: Buffer.from(`\r\n--${boundary}--\r\n`),
  }
}

/** Makes the bytes of a blob that was never sent before, cheaply: one piece of random bytes again and again. */
function makePieces(): readonly Buffer[] {
  const piece = randomBytes(pieceBytes)
  return Array.from({ length: (mebibytes * 2 ** 20) / pieceBytes }, () => piece)
}

async function measure(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now()
  await work()
  return (mebibytes * 1000) / (performance.now() - startedAt)
}

/** Sends a request and reads its answer to the end; gives the text of a short one. */
async function send(options: RequestOptions, pieces: readonly Buffer[] = []): Promise<string> {
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0)
  const headers = { ...options.headers, ...(length > 0 && { 'content-length': length }) }
  const call = request({ host: '127.0.0.1', ...options, headers })
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    call.once('response', resolve)
    call.once('error', reject)
  })
  for (const piece of pieces)
    if (!call.write(piece)) await new Promise((resolve) => call.once('drain', resolve))
  call.end()
  const answer = await answered
  let text = ''
  for await (const chunk of answer)
    if (text.length < 10_000) text += chunk.toString('latin1', 0, 10_000)
  if ((answer.statusCode ?? 500) >= 300) throw new Error(`${answer.statusCode}: ${text}`)
  return text
}

/** Measures how many MiB the resident set of a process grows by at most (proc(5): clear_refs, VmHWM). */
async function measureGrowth(pid: number, work: () => Promise<void>): Promise<number> {
  const read = (name: string) => {
    const status = readFileSync(`/proc/${pid}/status`, 'latin1')
    return Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? 0)
  }
  writeFileSync(`/proc/${pid}/clear_refs`, '5')
  const before = read('VmRSS')
  await work()
  return Math.max(0, Math.round((read('VmHWM') - before) / 1024))
}
