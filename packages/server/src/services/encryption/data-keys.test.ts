import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { limits } from '@tollbase/contract/limits'
import { makeTestWorld } from '@tollbase/testing/test-world'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Database } from '../../database/database.ts'
import { runMigrations } from '../../database/run-migrations.ts'
import { createTestDatabase, type TestDatabase } from '../../database/testing.ts'
import { migrations } from '../../operator/migrations.ts'
import { aesKeyBytes } from '../../sealing/aes-gcm.ts'
import { DataKeys } from './data-keys.ts'

const app = 'shop'
const dayMs = 24 * 3_600_000

describe('DataKeys', () => {
  const world = makeTestWorld()
  let store: TestDatabase
  let folder: string
  let keyFile: string

  beforeAll(async () => {
    store = await createTestDatabase()
    await runMigrations(store.database, migrations, { now: Date.now() })
    folder = await mkdtemp(join(tmpdir(), 'tollbase-keys-'))
    keyFile = join(folder, 'master-keys')
  })
  beforeEach(() => rm(keyFile, { force: true }))
  afterAll(async () => {
    await store?.drop()
    await rm(folder, { recursive: true, force: true })
  })

  const start = (database: Database = store.database) =>
    new DataKeys({ database, world, keyFile, masterKeys: undefined })

  test('new keys are wrapped by the master key that is in the file now, also after a time without any', async () => {
    const running = start()
    const [before, after] = ['col_before', 'col_after'].map((collection) => ({ app, collection }))
    if (before === undefined || after === undefined) return
    await running.create(before)
    await running.shred(app, [before.collection])
    await writeFile(keyFile, world.randomBytes(aesKeyBytes).toString('base64'))
    expect(await running.rewrap()).toBe(0)
    await running.create(after)
    const taken = await running.take(after, 1)
    expect(await start().take(after, 1)).toEqual(taken)
    await running.shred(app, [after.collection])
  })

  test('no key is made while the file of master keys is lost, and records are sealed by the newest key there is', async () => {
    const running = start()
    const owner = { app, collection: 'col_old' }
    await running.create(owner)
    await running.take(owner, 1)
    await rm(keyFile)
    await expect(running.create({ app, collection: 'col_new' })).rejects.toThrow()
    expect((await running.take(owner, 1)).epoch).toBe(1)
    await running.shred(app, [owner.collection])
  })

  test('a successor whose making was not confirmed is used, and nothing is stuck', async () => {
    let isLost = true
    const shaky: Database = {
      ...store.database,
      execute: async (statement) => {
        const count = await store.database.execute(statement)
        if (!isLost || !statement.text.includes('INSERT')) return count
        isLost = false
        throw new Error('the connection was lost')
      },
    }
    const running = start(shaky)
    const owner = { app, collection: 'col_1' }
    await running.create(owner)
    expect((await running.take(owner, 1)).epoch).toBe(1)
    world.advance((limits.dataKeyDaysMax + 1) * dayMs)
    await expect(running.take(owner, 1)).rejects.toThrow('the connection was lost')
    const taken = await running.take(owner, 1)
    expect(taken.epoch).toBe(2)
    expect(await start().take(owner, 1)).toEqual(taken)
    await running.shred(app, [owner.collection])
  })
})
