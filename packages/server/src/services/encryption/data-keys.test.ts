import { randomBytes } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeTestWorld } from '@tollbase/testing/test-world'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Database } from '../../database/database.ts'
import { runMigrations } from '../../database/run-migrations.ts'
import { createTestDatabase, type TestDatabase } from '../../database/testing.ts'
import { migrations } from '../../operator/migrations.ts'
import { aesKeyBytes } from '../../sealing/aes-gcm.ts'
import type { KeyCommand } from '../../sealing/key-command.ts'
import { DataKeys, dataKeyDaysMax } from './data-keys.ts'

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
  const startWith = (keyCommand: KeyCommand) =>
    new DataKeys({ database: store.database, world, keyFile, masterKeys: undefined, keyCommand })

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
    world.advance((dataKeyDaysMax + 1) * dayMs)
    await expect(running.take(owner, 1)).rejects.toThrow('the connection was lost')
    const taken = await running.take(owner, 1)
    expect(taken.epoch).toBe(2)
    expect(await start().take(owner, 1)).toEqual(taken)
    await running.shred(app, [owner.collection])
  })

  test('keys move from the file to a key manager, to its next key and back, and open all the time', async () => {
    const managerKey = join(folder, 'manager-key')
    await writeFile(managerKey, randomBytes(aesKeyBytes).toString('base64'))
    const command: KeyCommand = {
      ...{ id: 'k1', program: process.execPath, timeoutMs: 10_000, unwrapOnly: false },
      ...{ arguments: ['examples/key-command.mjs', managerKey], cacheMs: 60_000 },
    }
    const running = start()
    const owner = { app, collection: 'col_moved' }
    await running.create(owner)
    const taken = await running.take(owner, 1)
    const managed = startWith(command)
    expect(await managed.take(owner, 1)).toEqual(taken)
    expect(await managed.rewrap()).toBe(2)
    expect(await managed.rewrap()).toBe(0)
    await rm(keyFile)
    expect(await startWith(command).take(owner, 1)).toEqual(taken)
    const next = startWith({ ...command, id: 'k2' })
    expect(await next.rewrap()).toBe(2)
    expect(await next.listMasterKeys()).toEqual(['command:k2'])

    // Unwrapped keys are gone after their time; while the manager is down, so is the collection.
    await rm(managerKey)
    expect(await managed.take(owner, 1)).toEqual(taken)
    world.advance(60_001)
    managed.forgetOld()
    await expect(managed.take(owner, 1)).rejects.toMatchObject({
      code: 'UNAVAILABLE',
      internal: expect.stringContaining('ENOENT'),
    })
    await expect(start().take(owner, 1)).rejects.toMatchObject({
      internal: expect.stringContaining('set encryption_key_command'),
    })
    await running.shred(app, [owner.collection])
  })

  test('a key manager whose keys do not open again gets none, and a way back leads to the file', async () => {
    const running = start()
    const owner = { app, collection: 'col_back' }
    await running.create(owner)
    const taken = await running.take(owner, 1)
    const forgetful: KeyCommand = {
      ...{ id: 'k1', program: 'sh', timeoutMs: 10_000, cacheMs: 60_000, unwrapOnly: false },
      arguments: [
        '-c',
        `case $0 in wrap) echo '{"wrapped":"x"}';; *) echo '{"key":"${Buffer.alloc(32).toString('base64')}"}'; esac`,
      ],
    }
    await expect(startWith(forgetful).rewrap()).rejects.toThrow('does not open')
    await expect(startWith(forgetful).tryCommand()).rejects.toThrow('another key')
    expect(await start().take(owner, 1)).toEqual(taken)

    const managerKey = join(folder, 'manager-key')
    await writeFile(managerKey, randomBytes(aesKeyBytes).toString('base64'))
    const list = ['examples/key-command.mjs', managerKey]
    const command = { ...forgetful, program: process.execPath, arguments: list }
    await startWith(command).rewrap()
    expect(await startWith({ ...command, unwrapOnly: true }).rewrap()).toBe(2)
    expect(await start().take(owner, 1)).toEqual(taken)
    await running.shred(app, [owner.collection])
  })

  test('a key manager that refuses late is not asked again at once', async () => {
    const own = await mkdtemp(join(folder, 'late-'))
    const [managerKey, asked, go] = ['late-key', 'asked', 'go'].map((name) => join(own, name))
    if (managerKey === undefined || asked === undefined || go === undefined) return
    await writeFile(managerKey, randomBytes(aesKeyBytes).toString('base64'))
    const command: KeyCommand = {
      ...{ id: 'k1', program: process.execPath, timeoutMs: 10_000, unwrapOnly: false },
      ...{ arguments: ['examples/key-command.mjs', managerKey], cacheMs: 60_000 },
    }
    const owner = { app, collection: 'col_late' }
    await startWith(command).create(owner)
    const wait = `echo asked >> '${asked}'; until [ -e '${go}' ]; do sleep 0.02; done; exit 1`
    const late = startWith({ ...command, program: 'sh', arguments: ['-c', wait] })
    const countAsked = async () => (await readFile(asked, 'utf8').catch(() => '')).length / 6
    const first = expect(late.take(owner, 1)).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    await expect.poll(countAsked, { timeout: 20_000 }).toBe(2)
    world.advance(5_000)
    await writeFile(go, '')
    await first
    await expect(late.take(owner, 1)).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    expect(await countAsked()).toBe(2)
    world.advance(2_001)
    await expect(late.take(owner, 1)).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    // The first refusal is enough for the answer; the other command may only begin then.
    await expect.poll(countAsked, { timeout: 20_000 }).toBe(4)
    await late.shred(app, [owner.collection])
  })
})
