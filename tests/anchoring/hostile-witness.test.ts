import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { formatCheckpoint, formatNote, parseVerifierKey } from '@tollbase/verify/checkpoint'
import {
  computeWitnessKeyId,
  encodeCosignedMessage,
  formatCosignature,
  formatWitnessKey,
} from '@tollbase/verify/cosignature'
import { expect, test, vi } from 'vitest'
import { makeSigner } from '../../packages/server/src/chain/signing.ts'
import { createOpenData, readChain } from '../support/chains.ts'
import { meterLoop } from '../support/loop-meter.ts'
import { startTestService } from '../support/service.ts'

const name = 'witness.example'
const signer = makeSigner(generateKeyPairSync('ed25519').privateKey, name)

/** A witness that gives its page when the test does. */
async function startSlowWitness() {
  let give: (page: string) => void = () => undefined
  let isAsked = false
  const page = new Promise<string>((resolve) => {
    give = resolve
  })
  const server = createServer(async (_, reply) => {
    isAsked = true
    reply.end(await page)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/`,
    isAsked: () => isAsked,
    give,
    close: () => server.closeAllConnections() ?? server.close(),
  }
}

/** A note of a log with signatures in its name, which the witness has made in place of the log. */
function forge(vkey: string, size: number, lines: number): string {
  const { name: origin, keyId } = parseVerifierKey(vkey)
  const text = formatCheckpoint({ origin, size, root: randomBytes(32) })
  const forged = Array.from({ length: lines }, () => ({
    name: origin,
    keyId,
    signature: signer.sign(randomBytes(16)),
  }))
  return formatNote(text, forged)
}

function cosign(note: string): string {
  const time = 1_700_000_000
  const text = note.slice(0, note.lastIndexOf('\n\n') + 1)
  const keyId = computeWitnessKeyId(name, signer.publicKey)
  const signature = signer.sign(encodeCosignedMessage(text, time))
  const [line = ''] = formatNote('', [formatCosignature({ name, keyId }, { time, signature })])
    .split('\n')
    .slice(-2)
  return `${note}${line}\n`
}

const many = <T>(count: number, make: (at: number) => T) =>
  Array.from({ length: count }, (_, at) => make(at))

test('a page of a witness with thousands of wrong signatures or empty logs holds up nobody', async () => {
  const witness = await startSlowWitness()
  const key = formatWitnessKey(name, signer.publicKey)
  const service = await startTestService({ config: { witnesses: [{ key, url: witness.url }] } })
  try {
    const app = await createOpenData(service)
    await app.store('notes', [{ id: 'a' }])
    const { checkpoint, origin } = await readChain(service, app, '/checkpoint')
    const system = (await service.request('GET', '/api/apps/system/chain/checkpoint')).body
    const logs = [
      ...many(3000, (at) => ({ origin: system.origin, checkpoint: forge(system.key, at, 1) })),
      ...many(200, (at) => ({
        origin: `${system.origin}${at}`,
        checkpoint: forge(system.key, at, 64),
      })),
      { origin, checkpoint: cosign(checkpoint) },
    ]
    await vi.waitFor(() => expect(witness.isAsked()).toBe(true))
    const page = JSON.stringify({ logs, more: many(250_000, () => []) })
    expect(page.length).toBeLessThan(4 * 1024 * 1024)
    const meter = meterLoop()
    witness.give(page)
    await vi.waitFor(
      async () =>
        expect((await readChain(service, app, '/cosignatures')).cosignatures).toMatchObject([
          { witness: name, checkpoint: cosign(checkpoint) },
        ]),
      { timeout: 60_000, interval: 200 },
    )
    expect(meter.stop()).toBeLessThan(200)
  } finally {
    witness.close()
    await service.close()
  }
}, 120_000)
