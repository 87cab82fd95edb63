import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  closeSync,
  constants,
  existsSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pino from 'pino'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { createData } from '../support/data.ts'
import { startTestService, type TestService } from '../support/service.ts'

const folder = mkdtempSync(join(tmpdir(), 'tollbase-manager-'))
const managerKey = join(folder, 'manager-key')
let service: TestService
let logged = ''

beforeAll(async () => {
  writeFileSync(managerKey, randomBytes(32).toString('base64'))
  const keyCommand = {
    ...{ id: 'k1', program: process.execPath, timeoutMs: 10_000, unwrapOnly: false },
    ...{ arguments: ['examples/key-command.mjs', managerKey], cacheMs: 60_000 },
  }
  const write = (line: string) => {
    logged += line
  }
  service = await startTestService({
    config: { encryptionUpdatePrice: 0n, keyCommand },
    log: pino({ level: 'info' }, { write }),
  })
})

afterAll(async () => {
  await service?.close()
  rmSync(folder, { recursive: true, force: true })
})

test('while a key manager is down, encrypted collections wait for it, all others do not, and the log says what to do', async () => {
  const app = await createData(service)
  await app.create({ name: 'sealed' })
  const set = await app.call('POST', '/encryption', { action: 'add', collections: ['sealed'] })
  expect(set.status, set.text).toBe(200)
  await app.store('sealed', [{ id: 'a', text: 'planted' }])
  await app.store('open', [{ id: 'a' }])
  expect(existsSync(join(service.config.dataDir, 'master-keys'))).toBe(false)

  const key = readFileSync(managerKey, 'utf8')
  rmSync(managerKey)
  expect((await app.record('sealed', 'a')).body.record.text).toBe('planted')
  service.world.advance(60_001)
  for (const reply of [
    await app.record('sealed', 'a'),
    await app.list('sealed'),
    await app.store('sealed', [{ id: 'b' }]),
  ]) {
    expect(reply).toMatchObject({ status: 503, body: { code: 'UNAVAILABLE' } })
    expect(reply.text).not.toContain('key-command')
  }
  expect((await app.record('open', 'a')).status).toBe(200)
  expect(logged).toContain('encryption_key_command')
  expect(logged).toContain('ENOENT')
  expect(logged).not.toContain('planted')

  writeFileSync(managerKey, key)
  service.world.advance(60_001)
  expect((await app.record('sealed', 'a')).body.record.text).toBe('planted')
  expect((await app.store('sealed', [{ id: 'b' }])).status).toBe(200)
})

test('a plaintext table is not read for longer than its keys could be had', async () => {
  const app = await createData(service)
  await app.create({ name: 'sealed' })
  const wish = { action: 'add', collections: ['sealed'], queryable: true }
  expect((await app.call('POST', '/encryption', wish)).status).toBe(200)
  await app.store('sealed', [{ id: 'a' }])
  const key = readFileSync(managerKey, 'utf8')
  rmSync(managerKey)
  expect((await app.list('sealed')).body.total).toBe(1)
  service.world.advance(60_001)
  expect((await app.list('sealed')).status).toBe(503)
  writeFileSync(managerKey, key)
  service.world.advance(60_001)
  await expect.poll(async () => (await app.list('sealed')).body.total).toBe(1)
})

test('a list that waits for a key manager takes no slot from the queries of others', async () => {
  const app = await createData(service)
  await app.create({ name: 'sealed' })
  await app.call('POST', '/encryption', { action: 'add', collections: ['sealed'] })
  await app.store('sealed', [{ id: 'a' }])
  service.world.advance(60_001)
  const key = readFileSync(managerKey, 'utf8')
  rmSync(managerKey)
  // The program waits for somebody to write into its key file, who can open it once the program has.
  execFileSync('sh', ['-c', 'mkfifo "$0"', managerKey])
  const list = app.list('sealed')
  try {
    const open = () => openSync(managerKey, constants.O_WRONLY | constants.O_NONBLOCK)
    const file = await vi.waitFor(open, { timeout: 20_000 })
    expect(service.running.service.queryRunner.semaphore.stats().running).toBe(0)
    closeSync(file)
  } finally {
    // Whoever opened the pipe after this test failed, as the same test that is tried again, would wait for good.
    rmSync(managerKey)
    writeFileSync(managerKey, key)
  }
  expect((await list).status).toBe(503)
})

test('uploads that begin while a key manager hangs keep those of no other collection waiting', async () => {
  const app = await createData(service)
  const names = ['one', 'two']
  for (const name of names) await app.create({ name, collection_type: 'blob' })
  const set = await app.call('POST', '/encryption', { action: 'add', collections: names })
  expect(set.status, set.text).toBe(200)
  const begin = ({ appId, headers }: typeof app, collection: string) =>
    service.request('POST', `/api/apps/${appId}/blobs/${collection}/uploads`, {
      headers: { ...headers, 'tus-resumable': '1.0.0', 'upload-length': '1' },
    })
  const other = await createData(service)
  service.world.advance(60_001)
  const key = readFileSync(managerKey, 'utf8')
  rmSync(managerKey)
  // As above: the program waits for somebody to write into its key file.
  execFileSync('sh', ['-c', 'mkfifo "$0"', managerKey])
  let answers = 0
  const hanging = names.map((name) =>
    begin(app, name).finally(() => {
      answers += 1
    }),
  )
  try {
    const open = () => openSync(managerKey, constants.O_WRONLY | constants.O_NONBLOCK)
    const file = await vi.waitFor(open, { timeout: 20_000 })
    expect((await begin(other, 'open')).status).toBe(201)
    expect((await begin(app, 'open')).status).toBe(201)
    expect(answers).toBe(0)
    closeSync(file)
  } finally {
    rmSync(managerKey)
    writeFileSync(managerKey, key)
  }
  // A program that began late finds the key.
  for (const one of hanging) expect([201, 503]).toContain((await one).status)
})
