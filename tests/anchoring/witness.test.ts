import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { verifyCheckpoint } from '@tollbase/verify/checkpoint'
import { verifyCosignature } from '@tollbase/verify/cosignature'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { runCommand } from '../../packages/cli/src/commands.ts'
import { realWorld } from '../../packages/server/src/base/world.ts'
import { serveWitness } from '../../packages/server/src/witness/serve-witness.ts'
import { openWitness } from '../../packages/server/src/witness/witness.ts'
import { createOpenData, readChain } from '../support/chains.ts'
import type { Json } from '../support/service.ts'
import { startTestService } from '../support/service.ts'
import { type Liar, startLiar } from './liar.ts'

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tollbase-witness-'))
})
afterEach(() => {
  rmSync(folder, { recursive: true, force: true })
  vi.restoreAllMocks()
})

async function witness(...args: string[]) {
  const said: string[] = []
  vi.spyOn(console, 'error').mockImplementation((text) => said.push(String(text)))
  vi.spyOn(console, 'log').mockImplementation((text) => said.push(String(text)))
  const code = await runCommand(['witness', '--folder', folder, '--once', ...args])
  return { code, said: said.join('\n') }
}

const readState = (): Json => JSON.parse(readFileSync(join(folder, 'checkpoints.json'), 'utf8'))

describe('a witness of a service that lies', () => {
  let liar: Liar
  beforeAll(async () => {
    liar = await startLiar()
  })
  afterAll(() => liar?.close())
  beforeEach(() => liar.answer(undefined))

  const look = () => witness('--url', liar.url, '--log', liar.vkey)

  test('a log that grows is signed, each time anew, and what was signed is on the disk for its owner alone', async () => {
    for (const leaves of [[], ['a'], ['a', 'b', 'c'], ['a', 'b', 'c'], ['a', 'b', 'c', 'd', 'e']]) {
      liar.show(leaves)
      const { code, said } = await look()
      expect(said).toContain(`liar/shop: ${leaves.length} entries, signed`)
      expect(code).toBe(0)
      const [, key = ''] = /witness key: (\S+)/.exec(said) ?? []
      const [{ note, cosigned }] = readState()
      expect(note).toBe(liar.sign(leaves))
      expect(verifyCheckpoint(cosigned, liar.vkey).ok).toBe(true)
      expect(verifyCosignature(cosigned, key)).toMatchObject({ ok: true })
      expect(verifyCosignature(note, key)).toMatchObject({ ok: false })
      const count = leaves.length
      const grown = cosigned.replace(`\n${count}\n`, `\n${count + 1}\n`)
      expect(verifyCosignature(grown, key)).toMatchObject({ ok: false })
    }
    for (const name of ['checkpoints.json', 'key.pem'])
      expect(statSync(join(folder, name)).mode & 0o777, name).toBe(0o600)
  })

  test.each([
    ['another root of the same size', ['a', 'x'], 'FORK: two roots of one size, 2'],
    [
      'a longer log that begins otherwise',
      ['a', 'x', 'c'],
      'FORK: the tree of 3 entries does not begin with that of 2',
    ],
    ['a shorter log', ['a'], 'ROLL-BACK: the log had 2 entries, and now has 1'],
    ['no log', [], 'ROLL-BACK: the log had 2 entries, and now has 0'],
  ])(
    '%s is named with both checkpoints, exit code 1, and never signed, whatever comes later',
    async (_, forked, named) => {
      liar.show(['a', 'b'])
      expect((await look()).code).toBe(0)
      const [{ cosigned }] = readState()
      liar.show(forked)
      const { code, said } = await look()
      expect(code).toBe(1)
      expect(said).toContain(named)
      expect(said).toContain(liar.sign(['a', 'b']))
      expect(said).toContain(liar.sign(forked))
      liar.show(['a', 'b', 'c'])
      expect(await look()).toMatchObject({ code: 1, said: expect.stringContaining(named) })
      expect(readState()[0].cosigned).toBe(cosigned)
    },
  )

  test('answers that prove nothing are no fork: nothing is signed, and the next look goes on', async () => {
    liar.show(['a'])
    await look()
    let { cosigned } = readState()[0]
    const answers: Parameters<Liar['answer']>[0][] = [
      (send) => send('not json'),
      (send) => send('{}'),
      (send) => send('[]'),
      (send) => send(JSON.stringify({ checkpoint: 7 })),
      (send) => send(JSON.stringify({ checkpoint: liar.sign(['a'], 'liar/other') })),
      (send) =>
        send(
          JSON.stringify({ checkpoint: liar.sign(['a']).replace('liar/shop\n', 'liar/shpo\n') }),
        ),
      (send) => send(JSON.stringify({ checkpoint: liar.sign(['a', 'b']) })),
      (send) => send(JSON.stringify({ checkpoint: 'x'.repeat(300 * 1024) })),
      (send) => send('{"error":"later"}', 503),
    ]
    for (const answer of answers) {
      liar.answer(answer)
      const { code, said } = await look()
      expect(said).toContain('not signed')
      expect(code).toBe(2)
      expect(readState()[0].cosigned).toBe(cosigned)
      liar.answer(undefined)
      expect((await look()).code).toBe(0)
      ;({ cosigned } = readState()[0])
    }
    liar.show(['a', 'b'])
    expect((await look()).code).toBe(0)
  })

  test.each([
    ['does not know the log', { shown: ['a', 'b'], status: 404, path: 'checkpoint' }],
    ['refuses to show the log', { shown: ['a', 'b'], status: 401, path: 'checkpoint' }],
    ['shows less and refuses the proof', { shown: ['a'], status: 403, path: 'consistency' }],
    ['shows less and fails at the proof', { shown: ['a'], status: 503, path: 'consistency' }],
    [
      'shows more and refuses the proof',
      { shown: ['x', 'b', 'c'], status: 404, path: 'consistency' },
    ],
  ])(
    'a service that %s three times in a row has lost it: it is named, exit code 1, and signed again once it is shown',
    async (_, { shown, status, path }) => {
      liar.show(['a', 'b'])
      expect((await look()).code).toBe(0)
      liar.show(shown)
      liar.answer((send) => send('{"error":"none"}', status), path)
      for (const code of [2, 2, 1, 1]) {
        const { code: found, said } = await look()
        expect(found, said).toBe(code)
        expect(said).toContain(code === 1 ? 'GONE: the log had 2 entries, and' : 'not signed')
      }
      liar.answer(undefined)
      liar.show(['a', 'b', 'c'])
      expect((await look()).code).toBe(0)
      expect(readState()[0].withheld).toBeUndefined()
    },
  )

  test('a service that is down, busy or broken has not lost its log, however long that lasts', async () => {
    liar.show(['a', 'b'])
    expect((await look()).code).toBe(0)
    for (const status of [500, 502, 503, 429, 408]) {
      liar.answer((send) => send('{"error":"later"}', status))
      expect(await look()).toMatchObject({ code: 2, said: expect.stringContaining('not signed') })
    }
  })

  test('where another log of the service was rolled back, one that is not shown is gone at once', async () => {
    const origins = ['liar/shop', 'liar/system', 'other/shop']
    liar.show(['a', 'b'])
    expect((await look()).code).toBe(0)
    const state = readState()[0]
    const follow = (contradicted: string) => {
      const contradiction = { kind: 'roll-back', problem: '', note: state.note }
      const others = origins.filter((origin) => origin !== 'liar/shop')
      const kept = others.map((origin) => ({
        ...{ origin, note: state.note, cosigned: state.cosigned },
        ...(origin === contradicted && { contradiction }),
      }))
      writeFileSync(join(folder, 'checkpoints.json'), JSON.stringify([state, ...kept]))
      return look()
    }
    liar.answer((send) => send('{"error":"none"}', 404))
    expect(await follow('other/shop')).toMatchObject({ code: 2 })
    expect(await follow('liar/system')).toMatchObject({
      code: 1,
      said: expect.stringContaining('GONE'),
    })
  })

  test('a folder belongs to one process, and one whose memory is damaged signs nothing', async () => {
    liar.show(['a'])
    expect((await look()).code).toBe(0)
    const open = await openWitness({ folder, name: 'tollbase-witness', world: realWorld })
    expect(await look()).toMatchObject({ code: 2, said: expect.stringContaining('in use') })
    open.close()
    writeFileSync(join(folder, 'checkpoints.json'), '[{"origin": "liar/shop"}]')
    expect(await look()).toMatchObject({ code: 2, said: expect.stringContaining('must not sign') })
  })
})

test('a service shows what its witnesses signed, and nothing that it did not sign itself', async () => {
  const opened = await openWitness({ folder, name: 'witness.example', world: realWorld })
  const forged: Json[] = []
  const served = await serveWitness(
    { ...opened, listKept: () => [...opened.listKept(), ...forged] },
    { host: '127.0.0.1', port: 0 },
  )
  const service = await startTestService({
    config: { witnesses: [{ key: opened.vkey, url: served.url }] },
  })
  const liar = await startLiar()
  try {
    const app = await createOpenData(service)
    await app.store('notes', [{ id: 'a' }])
    const { key: vkey, origin } = await readChain(service, app, '/checkpoint')
    const log = { url: service.url, app: app.appId, vkey }
    const { key: systemKey } = (await service.request('GET', '/api/apps/system/chain/checkpoint'))
      .body
    for (const id of ['b', 'c']) {
      await app.store('notes', [{ id }])
      expect(await opened.follow(log)).toMatchObject({ kind: 'consistent' })
    }
    await opened.follow({ url: service.url, app: 'system', vkey: systemKey })
    forged.push(
      { origin, note: '', cosigned: liar.sign(['x']) },
      { origin: 'x', note: '', cosigned: 'x' },
    )
    await service.restart()
    const { size } = await readChain(service, app, '/checkpoint')
    await vi.waitFor(
      async () => {
        const { cosignatures } = await readChain(service, app, '/cosignatures')
        expect(cosignatures).toMatchObject([{ witness: 'witness.example', size }])
        const [{ checkpoint, key }] = cosignatures
        expect(key).toBe(opened.vkey)
        expect(verifyCheckpoint(checkpoint, vkey)).toMatchObject({ ok: true })
        expect(verifyCosignature(checkpoint, key)).toMatchObject({ ok: true })
      },
      { timeout: 10_000, interval: 100 },
    )
    const system = await service.request('GET', '/api/apps/system/chain/cosignatures')
    expect(system.body.cosignatures).toHaveLength(1)
  } finally {
    await service.close()
    await served.close()
    await liar.close()
    opened.close()
  }
})
