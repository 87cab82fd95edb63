import { Agent, request as httpRequest, type IncomingHttpHeaders } from 'node:http'
import { meterLoop } from '../../support/loop-meter.ts'
import type { TestService } from '../../support/service.ts'
import { createFixture, type Fixture, fillRequest } from './fixture.ts'
import { type Answer, findProblem } from './oracle.ts'
import { type FuzzRequest, makeRequest } from './requests.ts'

export type Failure = {
  readonly why: string
  readonly request: FuzzRequest
  readonly status?: number
  readonly text?: string
}

export type Report = {
  readonly requests: number
  readonly byStatus: ReadonlyMap<number, number>
  readonly failures: readonly Failure[]
  /** The longest turn of the event loop, which the service and the campaign share, while requests were under way. */
  readonly heldMs: number
}

export type CampaignOptions = {
  readonly seed: string
  readonly requests: number
  readonly concurrency: number
  /** The number of requests on one fixture before a new one is made: some requests remove parts of it. */
  readonly perFixture: number
  readonly failuresMax: number
  /** Called between requests; true ends the campaign. */
  readonly isOver?: () => boolean
  readonly onProgress?: (done: number) => void
}

const deadlineMs = 30_000

/** Sends the requests of a seed, several at a time, and checks every answer. */
export async function runCampaign(service: TestService, options: CampaignOptions): Promise<Report> {
  const agent = new Agent({ keepAlive: true, maxSockets: options.concurrency })
  const byStatus = new Map<number, number>()
  const failures: Failure[] = []
  let done = 0
  let started = 0
  let heldMs = 0
  const isOver = () =>
    started >= options.requests ||
    failures.length >= options.failuresMax ||
    options.isOver?.() === true
  try {
    while (!isOver()) {
      const end = Math.min(options.requests, started + options.perFixture)
      const fixture = await createFixture(service)
      // To make the first fixture runs code that no request has warmed.
      const meter = meterLoop()
      const worker = async () => {
        while (started < end && !isOver()) {
          const request = makeRequest(options.seed, started++)
          const outcome = await judge(service.url, { agent, request, fixture })
          byStatus.set(outcome.status, (byStatus.get(outcome.status) ?? 0) + 1)
          if (outcome.failure !== undefined) failures.push(outcome.failure)
          options.onProgress?.(++done)
        }
      }
      try {
        await Promise.all(Array.from({ length: options.concurrency }, worker))
      } finally {
        heldMs = Math.max(heldMs, meter.stop())
      }
    }
  } finally {
    agent.destroy()
  }
  return { requests: done, byStatus, failures, heldMs }
}

/** Sends recorded requests, in their order, on a fixture of their own. */
export async function replay(
  service: TestService,
  requests: readonly FuzzRequest[],
): Promise<Failure[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  try {
    const fixture = await createFixture(service)
    const failures: Failure[] = []
    for (const request of requests) {
      const { failure } = await judge(service.url, { agent, request, fixture })
      if (failure !== undefined) failures.push(failure)
    }
    return failures
  } finally {
    agent.destroy()
  }
}

async function judge(
  url: string,
  asked: { agent: Agent; request: FuzzRequest; fixture: Fixture },
): Promise<{ status: number; failure?: Failure }> {
  const request = fillRequest(asked.request, asked.fixture)
  let answer: Answer
  try {
    answer = await send(url, asked.agent, request)
  } catch (error) {
    return { status: 0, failure: { why: `no answer: ${String(error)}`, request: asked.request } }
  }
  const why = findProblem(request, answer)
  const { status, text } = answer
  if (why === undefined) return { status }
  return { status, failure: { why, request: asked.request, status, text: text.slice(0, 1000) } }
}

/** Sends by node:http, which keeps the path as it is, where fetch would normalize it. */
function send(url: string, agent: Agent, request: FuzzRequest): Promise<Answer> {
  const { method, path } = request
  const body = request.bytes === undefined ? request.body : Buffer.from(request.bytes, 'base64')
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    const sent = httpRequest(
      { hostname, port, agent, method, path: sendable(path), headers: request.headers },
      (reply) => {
        const chunks: Buffer[] = []
        reply.on('data', (chunk: Buffer) => chunks.push(chunk))
        reply.on('error', reject)
        reply.on('end', () => {
          const headers: IncomingHttpHeaders = reply.headers
          const text = Buffer.concat(chunks).toString()
          resolve({ status: reply.statusCode ?? 0, headers, text })
        })
      },
    )
    sent.on('error', reject)
    sent.setTimeout(deadlineMs, () => sent.destroy(new Error('the answer took too long')))
    if (body !== undefined) sent.setHeader('content-length', Buffer.byteLength(body))
    sent.end(body)
  })
}

/** Blanks and characters past ASCII cannot be sent in an address. */
function sendable(path: string): string {
  return path.replace(/[^\u0021-\u007e]/gu, (character) =>
    encodeURIComponent(character.toWellFormed()),
  )
}
