import { createHash } from 'node:crypto'
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { runCommand } from '../../packages/cli/src/commands.ts'
import type { Config } from '../../packages/server/src/config/config.ts'
import { createTestDatabase } from '../../packages/server/src/database/testing.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { listFiles } from '../../packages/server/src/operator/backup/copy-files.ts'
import { createBackup } from '../../packages/server/src/operator/backup/create-backup.ts'
import { readManifest } from '../../packages/server/src/operator/backup/manifest.ts'
import { restoreBackup } from '../../packages/server/src/operator/backup/restore-backup.ts'
import { exportApplication } from '../../packages/server/src/operator/move/export-application.ts'
import { type Blobs, createBlobs } from '../support/blobs.ts'
import { startTestService, type TestService } from '../support/service.ts'

const silent = () => undefined
const root = mkdtempSync(join(tmpdir(), 'tollbase-backup-'))
const place = (name: string) => join(root, name)
const keys = () => place('keys')

let service: TestService
let blobs: Blobs
let cat: string

beforeAll(async () => {
  service = await startTestService({ config: { encryptionUpdatePrice: 0n } })
  blobs = await createBlobs(service)
  cat = (await blobs.upload('pictures', 'a cat')).body.blob_id
  await blobs.upload('pictures', 'a dog')
})

afterAll(async () => {
  await service?.close()
  rmSync(root, { recursive: true, force: true })
})

const backUp = (to: string) =>
  createBackup(service.config, { to: place(to), keysTo: keys() }, silent)

/** Restores into an empty database and data folder, of which the work is told. */
async function restoreInto<T>(work: (config: Config) => Promise<T>): Promise<T> {
  const store = await createTestDatabase()
  const { host, port, user, database } = store.connection
  const databaseUrl = `postgresql://${user}@/${database}?host=${encodeURIComponent(host)}&port=${port}`
  const dataDir = mkdtempSync(join(root, 'data-'))
  try {
    return await work({ ...service.config, dataDir, databaseUrl })
  } finally {
    await store.drop()
  }
}

async function findFile(folder: string, content: string): Promise<string> {
  const sha256 = createHash('sha256').update(content).digest('hex')
  for await (const path of listFiles(folder)) if (path.endsWith(sha256)) return join(folder, path)
  throw new Error(`no file of ${content}`)
}

const findCopy = (backup: string, content: string) =>
  findFile(join(place(backup), 'blobs'), content)
const findSource = (content: string) => findFile(join(service.config.dataDir, 'blobs'), content)

describe('a backup whose files of blobs are not whole', () => {
  test.each([
    ['lacks the file of a blob', rmSync],
    ['has a damaged file of a blob', (path: string) => writeFileSync(path, 'a caT')],
    ['has half a file of a blob', (path: string) => writeFileSync(path, 'a ')],
  ])(
    'one that %s is not restored as whole: the blob is named, and a flag goes on without it',
    async (_, harm) => {
      await backUp('holey')
      harm(await findCopy('holey', 'a cat'))
      await restoreInto(async (config) => {
        const options = { from: place('holey'), keys: keys() }
        const refused = await restoreBackup(config, options, silent)
        expect(refused).toMatchObject({ equal: false, lost: { count: 1 } })
        expect(refused.difference?.found).toBe(
          `1 is missing or damaged: ${blobs.appId}, pictures, ${cat}`,
        )
        await expect(audit(config, silent)).rejects.toThrow(/not finished/)
        const accepted = await restoreBackup(config, { ...options, acceptLost: true }, silent)
        expect(accepted).toMatchObject({
          equal: true,
          lost: { count: 1, first: [`${blobs.appId}, pictures, ${cat}`] },
        })
        expect(await audit(config, silent)).toMatchObject({
          difference: { what: `the file of the blob ${cat}`, found: 'no file' },
        })
      })
      expect((await backUp('holey')).blobs).toMatchObject({ files: 2 })
      expect(readFileSync(await findCopy('holey', 'a cat'), 'utf8')).toBe('a cat')
    },
  )

  test("a damaged file that nobody names is in nobody's way", async () => {
    await backUp('stray')
    const folder = join(place('stray'), 'blobs')
    cpSync(await findCopy('stray', 'a cat'), join(folder, '1', 'ab', 'ab'.repeat(32)), {})
    writeFileSync(join(folder, 'note'), 'of the operator')
    await restoreInto(async (config) => {
      const report = await restoreBackup(config, { from: place('stray'), keys: keys() }, silent)
      expect(report).toMatchObject({ equal: true })
      expect(report.lost).toBeUndefined()
      expect(await audit(config, silent)).toMatchObject({ equal: true })
    })
  })

  test('a copy that a disk has damaged silently is found and replaced within sixteen backups', async () => {
    await backUp('silent')
    const copy = await findCopy('silent', 'a dog')
    writeFileSync(copy, 'a doG')
    // The manifest is younger than the damage, as if nothing had been written.
    const manifest = join(place('silent'), 'manifest.json')
    for (let round = 1; round <= 16; round++) {
      await new Promise((resolve) => setTimeout(resolve, 20))
      utimesSync(manifest, new Date(), new Date())
      const { blobs: copied } = await backUp('silent')
      expect(copied).toMatchObject({ files: 2, turn: round })
    }
    expect(readFileSync(copy, 'utf8')).toBe('a dog')
  })

  test('a backup whose manifest is damaged is replaced, and none of its copies is trusted', async () => {
    await backUp('unread')
    const copy = await findCopy('unread', 'a dog')
    writeFileSync(copy, 'a doG')
    writeFileSync(join(place('unread'), 'manifest.json'), '{')
    expect((await backUp('unread')).blobs).toEqual({ files: 2, bytes: 10, turn: 0 })
    expect(readFileSync(copy, 'utf8')).toBe('a dog')
  })

  test('a file that the service has lost keeps its copy, and without one the backup says so, exit code 1', async () => {
    await backUp('kept')
    const file = await findSource('a cat')
    rmSync(file)
    try {
      expect((await backUp('kept')).blobs).toEqual({ files: 2, bytes: 10, turn: 1 })
      for (const harm of [() => undefined, () => writeFileSync(file, 'a caT')]) {
        harm()
        const to = place(`fresh-${Math.random()}`)
        const said = vi.spyOn(console, 'log').mockImplementation(() => undefined)
        const { dataDir, databaseUrl = '' } = service.config
        const of = ['--data-dir', dataDir, '--database-url', databaseUrl]
        expect(await runCommand(['backup', '--to', to, '--without-keys', ...of])).toBe(1)
        expect(said.mock.calls.join('\n')).toMatch(/the files of 1 blobs .* missing/)
        said.mockRestore()
        expect(readManifest(to).blobs).toMatchObject({ files: 1, lost: 1 })
      }
    } finally {
      writeFileSync(file, 'a cat')
    }
  })
})

test('files that no row names stay out: those of deleted blobs, and the plaintext of what is encrypted by now', async () => {
  const secrets = await createBlobs(service)
  const upload = await secrets.upload('papers', 'a planted secret')
  expect(upload.status, upload.text).toBeLessThan(300)
  await backUp('before')
  expect(existsSync(await findCopy('before', 'a planted secret'))).toBe(true)
  const sealed = await secrets.data.call('POST', '/encryption', {
    collections: ['papers'],
    action: 'add',
  })
  expect(sealed.status, sealed.text).toBe(200)
  const isSealed = async () => {
    const { data } = await service.running.service.tenants.load(secrets.appId)
    return [...data.catalog.resealings.values()].map(({ state }) => state)
  }
  await expect.poll(isSealed, { timeout: 30_000 }).toEqual(['completed'])
  // The file may still be on the shelf, whether the service has removed it by now or not.
  const hash = createHash('sha256').update('a planted secret').digest('hex')
  const { application } = await service.running.service.tenants.load(secrets.appId)
  const folder = join(service.config.dataDir, 'blobs', String(application.number), hash.slice(0, 2))
  cpSync(await findCopy('before', 'a planted secret'), join(folder, hash))
  await backUp('before')
  for await (const path of listFiles(place('before')))
    expect(readFileSync(join(place('before'), path)).includes('a planted secret'), path).toBe(false)
  const to = place('export')
  await exportApplication(service.config, { app: secrets.appId, to }, silent)
  for await (const path of listFiles(to))
    expect(readFileSync(join(to, path)).includes('a planted secret'), path).toBe(false)
  expect(readManifest(place('before')).blobs.files).toBe(3)
})
