import { Agent, createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { limits } from '@tollbase/contract/limits'
import { afterEach, expect, test } from 'vitest'
import { realWorld as world } from '../base/world.ts'
import { getJson, TransportError } from './http-json.ts'

const closers: (() => unknown)[] = []
afterEach(() => {
  for (const close of closers.splice(0)) close()
})

/** Gets a text of so many characters, each of which comes in a chunk of its own. */
async function getInChunks(count: number): Promise<unknown> {
  const server = createServer((_, response) => {
    response.write('"')
    for (let at = 2; at < count; at++) response.write('x')
    response.end('"')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const agent = new Agent()
  closers.push(() => {
    agent.destroy()
    server.close()
  })
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
  const call = { url, agent, world, deadlineMs: 30_000, responseBytesMax: 1_000_000 }
  return (await getJson(call)).value
}

test('an answer is read in as many chunks of one byte as a body may have, and refused in one more', async () => {
  const { bodyPartsMax, bytesOfPartMin } = limits
  const most = Math.floor((bodyPartsMax * bytesOfPartMin) / (bytesOfPartMin - 1))
  expect(await getInChunks(most)).toBe('x'.repeat(most - 2))
  const past = getInChunks(most + 1)
  await expect(past).rejects.toThrow('too many small chunks')
  await expect(past).rejects.toBeInstanceOf(TransportError)
})
