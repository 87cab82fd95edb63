import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { makeData } from '../support/data.ts'
import { idleNetwork } from '../support/idle-network.ts'
import { withService } from '../support/per-engine.ts'
import {
  type Answer,
  type Exchange,
  fillValue,
  getKind,
  getValueAt,
  type Header,
  type Names,
  type Recording,
  replay,
} from './recorded.ts'

const folder = join(import.meta.dirname, 'recorded')
const recordings = readdirSync(folder).map(
  (file): Recording => JSON.parse(readFileSync(join(folder, file), 'utf8')),
)

const patienceMs = 30_000
const pollMs = 10

describe('clients that are not npm packages, byte for byte', () =>
  withService(
    (service) => {
      test.each(recordings)('$client is understood in every call', async (recording) => {
        // The id is like a real one: a name without - needs no quotes in SQL.
        const app = makeData(
          service(),
          await service().createApp(`recorded_${recordings.indexOf(recording)}`),
        )
        if (recording.exchanges.some(({ call }) => /^join_?many/i.test(call))) {
          await app.store('users', [{ id: 'u1', name: 'Ann', profile: { id: 'u1' } }])
          await app.store('comments', [{ id: 'c1', post_id: 'p1', author_id: 'u1' }])
        }
        let names: Names = {
          app: app.appId,
          key: app.key,
          host: new URL(service().url).host,
        }
        for (const exchange of recording.exchanges) {
          const { body } = await answered(recording, exchange, names)
          const kept = Object.entries(exchange.keeps ?? {})
          names = {
            ...names,
            ...Object.fromEntries(kept.map(([name, path]) => [name, getValueAt(body, path)])),
          }
        }
      })

      test('a large body that is announced with Expect: 100-continue, as Guzzle and curl do, is stored', async () => {
        const app = await service().createApp()
        const names = { app: app.appId, key: app.key, host: new URL(service().url).host }
        const records = ['a', 'b'].map((id) => ({ id, text: 'x'.repeat(600_000) }))
        const headers = [
          ['Host', '{host}'],
          ['Content-Type', 'application/json'],
          ['Expect', '100-Continue'],
          ['X-App-Key', '{key}'],
        ] as const
        const body = JSON.stringify({ root: '{app}::posts', data: records })
        const stored = await replay(headers, { method: 'POST', path: '/store', body }, names)
        expect(stored.status, stored.text).toBe(202)
      })
    },
    { config: { networks: [idleNetwork] } },
  ))

/** Returns the answer to an exchange, once it is what the client needs; fails where it is not. */
async function answered(recording: Recording, exchange: Exchange, names: Names) {
  const deadline = Date.now() + patienceMs
  for (;;) {
    const answer = await replay(makeHeaders(recording, exchange), exchange, names)
    const body = judged(exchange, answer, names)
    const isDone = exchange.until === undefined || holds(body, exchange.until)
    if (isDone || Date.now() > deadline) {
      if (exchange.until !== undefined) expect(body, exchange.call).toMatchObject(exchange.until)
      checkContent(exchange, body, names)
      return { body }
    }
    await sleep(pollMs)
  }
}

function makeHeaders(recording: Recording, exchange: Exchange): readonly Header[] {
  return [...(exchange.bare === true ? [] : recording.headers), ...(exchange.headers ?? [])]
}

function judged(exchange: Exchange, answer: Answer, names: Names) {
  const said = `${exchange.call}: ${answer.text.slice(0, 500)}`
  expect(answer.status, said).toBe(exchange.status)
  // Guzzle's wrapper refuses an answer that is not JSON, an empty one too.
  expect(answer.headers['content-type'], said).toMatch(/^application\/json/)
  for (const text of exchange.lacks ?? []) expect(answer.text, said).not.toContain(text)
  const body = JSON.parse(answer.text)
  if (exchange.equals !== undefined)
    expect(body, said).toMatchObject(fillValue(exchange.equals, names))
  if (exchange.status >= 400 && exchange.status !== 402)
    expect(body, said).toMatchObject({ error: expect.any(String), code: expect.any(String) })
  return body
}

function checkContent(exchange: Exchange, body: unknown, names: Names): void {
  const read = fillValue(exchange.reads ?? {}, names)
  const found = Object.keys(read).map((path) => [path, getKind(getValueAt(body, path))])
  expect(Object.fromEntries(found), exchange.call).toEqual(read)
}

function holds(body: unknown, wanted: unknown): boolean {
  try {
    expect(body).toMatchObject(Object(wanted))
    return true
  } catch {
    return false
  }
}
