import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Mutex } from '../../base/mutex.ts'
import { realWorld } from '../../base/world.ts'
import { createTestChain } from '../../chain/testing.ts'
import { runMigrations } from '../../database/run-migrations.ts'
import { createTestDatabase, type TestDatabase } from '../../database/testing.ts'
import { emptyCatalog } from '../../model/catalog.ts'
import { migrations } from '../../operator/migrations.ts'
import { DataKeys } from './data-keys.ts'
import { Sealer } from './sealer.ts'

let store: TestDatabase
let folder: string

beforeAll(async () => {
  store = await createTestDatabase()
  await runMigrations(store.database, migrations, { now: Date.now() })
  folder = await mkdtemp(join(tmpdir(), 'tollbase-sealer-'))
})

afterAll(async () => {
  await store?.drop()
  await rm(folder, { recursive: true, force: true })
})

test('forgotten keys are deleted by the process that has the chain, and by none that has lost it', async () => {
  const { database } = store
  const world = realWorld
  const keyFile = join(folder, 'master-keys')
  const dataKeys = new DataKeys({ database, world, keyFile, masterKeys: undefined })
  const sealer = new Sealer('shop', { world, dataKeys })
  const { open } = await createTestChain(database)
  const own = { data: { catalog: emptyCatalog }, definitions: new Mutex() }
  const first = await open({ world: { ...realWorld, every: () => () => undefined } })
  const second = await open({ holder: 'second' })
  await sealer.createKeys(['col_made_by_the_second'])
  await expect(sealer.shredForgotten({ ...own, chain: first })).rejects.toMatchObject({
    code: 'UNAVAILABLE',
  })
  expect(await dataKeys.listOwners('shop')).toEqual(['col_made_by_the_second'])
  await sealer.shredForgotten({ ...own, chain: second })
  expect(await dataKeys.listOwners('shop')).toEqual([])
  await first.close()
  await second.close()
})
