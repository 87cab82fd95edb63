import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startService } from '../../packages/server/src/app.ts'
import { sql } from '../../packages/server/src/database/sql.ts'
import { createTestDatabase } from '../../packages/server/src/database/testing.ts'
import { createBackup } from '../../packages/server/src/operator/backup/create-backup.ts'
import { restoreBackup } from '../../packages/server/src/operator/backup/restore-backup.ts'
import { exportApplication } from '../../packages/server/src/operator/move/export-application.ts'
import { importApplication } from '../../packages/server/src/operator/move/import-application.ts'
import { createData, type Data } from '../support/data.ts'
import { send, startTestService, type TestService } from '../support/service.ts'

const silent = () => undefined
const root = mkdtempSync(join(tmpdir(), 'tollbase-queryable-'))
const place = (name: string) => join(root, name)
const secret = `planted${'y'.repeat(40)}${Date.now()}`

let service: TestService
let app: Data

beforeAll(async () => {
  service = await startTestService({ config: { encryptionUpdatePrice: 0n } })
  app = await createData(service)
  await app.create({ name: 'notes' })
  const body = { action: 'add', collections: ['notes'], queryable: true }
  expect((await app.call('POST', '/encryption', body)).status).toBe(200)
  await app.store('notes', [
    { id: 'a', text: secret },
    { id: 'b', text: 'other' },
  ])
  expect((await countBy(service.url, app)).body.data).toEqual([{ n: 1 }])
})

afterAll(async () => {
  await service?.close()
  rmSync(root, { recursive: true, force: true })
})

/** Counts the records with the secret: only the plaintext table can tell. */
function countBy(url: string, { appId, headers }: Data) {
  const body = {
    sql: `SELECT count(*) AS n FROM "${appId}"::notes WHERE text = '${secret}'`,
  }
  return send(url, { method: 'POST', path: '/query/sql', headers, body })
}

function expectNoSecret(folder: string): void {
  // grep ends with 1 where it finds nothing.
  expect(() => execFileSync('grep', ['-r', '-l', '-a', secret, folder])).toThrow()
}

test('a backup has no plaintext, and what is restored from it is queried as before', async () => {
  await createBackup(service.config, { to: place('backup'), keysTo: place('keys') }, silent)
  expectNoSecret(place('backup'))
  const store = await createTestDatabase()
  const { host, port, user, database } = store.connection
  const databaseUrl = `postgresql://${user}@/${database}?host=${encodeURIComponent(host)}&port=${port}`
  const config = { ...service.config, dataDir: place('restored'), databaseUrl }
  try {
    const from = { from: place('backup'), keys: place('keys') }
    expect(await restoreBackup(config, from, silent)).toMatchObject({ equal: true })
    const running = await startService({ config, world: service.world })
    try {
      await expect.poll(async () => (await countBy(running.url, app)).body.data).toEqual([{ n: 1 }])
    } finally {
      await running.close()
    }
  } finally {
    await store.drop()
  }
})

test('an exported application has no plaintext, and is queried where it was imported', async () => {
  const away = await startTestService()
  try {
    const to = { app: app.appId, to: place('exported') }
    const { key } = await exportApplication(service.config, to, silent)
    expectNoSecret(place('exported'))
    copyFileSync(
      join(service.config.dataDir, 'master-keys'),
      join(away.config.dataDir, 'master-keys'),
    )
    const report = await away.whileStopped((config) =>
      importApplication(config, { from: place('exported'), key }, silent),
    )
    expect(report).toMatchObject({ equal: true })
    await expect.poll(async () => (await countBy(away.url, app)).body.data).toEqual([{ n: 1 }])
  } finally {
    await away.close()
  }
})

test('blocks hold ciphertext alone, and a deleted collection leaves no plaintext table', async () => {
  const { chain, schema } = await service.running.service.tenants.load(app.appId)
  for await (const block of chain.blocksFrom(1))
    for (const entry of block.entries) expect(entry?.body.includes(secret)).not.toBe(true)
  expect((await app.call('DELETE', '/collections/notes')).status).toBe(200)
  await chain.whenApplied(await chain.flushed())
  const left = await service.database.query(sql`
    SELECT relname FROM pg_catalog.pg_class AS class
    JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = relnamespace
    WHERE nspname = ${schema} AND relname ~ '^p_[0-9]+'`)
  expect(left).toEqual([])
})
