import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import { describe, expect, test } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { createBackup } from '../../packages/server/src/operator/backup/create-backup.ts'
import { copyWithBlobs } from '../../packages/server/src/operator/copy-with-blobs.ts'
import { type Blobs, createBlobs } from '../support/blobs.ts'
import { withService } from '../support/per-engine.ts'

describe('a copy that names the files of its snapshot', () =>
  withService((service) => {
    const hash = (text: string) => createHash('sha256').update(text).digest('hex')
    const keep = async (app: Blobs, collection: string, text: string) => {
      const { status, text: answer } = await app.upload(collection, text)
      expect(status, answer).toBe(200)
    }
    /** Copies nothing but names; `between` runs after the snapshot, before any table is locked. */
    const name = async (app: Blobs, between: () => Promise<void>) => {
      const { schema, application } = await service().running.service.tenants.load(app.appId)
      const { named } = await copyWithBlobs(
        { url: service().config.databaseUrl ?? '' },
        {
          listPlaces: async (session) => {
            // This takes the snapshot.
            await session.query(sql`SELECT 1`)
            await between()
            return [{ schema, folder: application.number }]
          },
          copy: async () => undefined,
        },
      )
      return [...named.values()].map(({ sha256 }) => sha256).sort()
    }
    const findTable = async (app: Blobs, collection: string) => {
      const { schema, data } = await service().running.service.tenants.load(app.appId)
      return { schema, table: data.catalog.byName.get(collection)?.table ?? '' }
    }

    test('it begins anew where a table is written anew after the snapshot', async () => {
      const app = await createBlobs(service())
      await keep(app, 'scans', 'scan')
      const { schema, table } = await findTable(app, 'scans')
      let tries = 0
      const found = await name(app, async () => {
        tries += 1
        if (tries < 3)
          await service().database.execute(
            sql`ALTER TABLE ${sql.id(schema, table)} ALTER body TYPE text USING body || ''`,
          )
      })
      expect(tries).toBe(3)
      expect(found).toEqual([hash('scan')])
    })

    test('it begins anew where it and a drop of several tables wait for each other', async () => {
      const app = await createBlobs(service())
      for (const text of ['one', 'two']) await keep(app, text, text)
      const tables = [await findTable(app, 'one'), await findTable(app, 'two')]
      const { byId } = (await service().running.service.tenants.load(app.appId)).data.catalog
      const order = [...byId.values()].map(({ table }) => table)
      const [first, second] = tables
        .toSorted((a, b) => order.indexOf(a.table) - order.indexOf(b.table))
        .map(({ schema, table }) => `"${schema}"."${table}"`)
      const dropping = new Client({ connectionString: service().config.databaseUrl })
      await dropping.connect()
      try {
        await dropping.query(`BEGIN; LOCK TABLE ${second}`)
        const count = async () =>
          (await dropping.query('SELECT FROM pg_locks WHERE NOT granted')).rowCount
        const lockFirst = async () => {
          await expect.poll(count, { interval: 10 }).toBe(1)
          await dropping.query(`LOCK TABLE ${first}`)
          await dropping.query('ROLLBACK')
        }
        const [found] = await Promise.all([name(app, async () => undefined), lockFirst()])
        expect(found).toEqual([hash('one'), hash('two')].sort())
      } finally {
        await dropping.end()
      }
    })

    test('a table that a backup has copied can be dropped while it copies others', async () => {
      const to = mkdtempSync(join(tmpdir(), 'tollbase-backup-'))
      await service().database.execute(sql`CREATE TABLE operations.data_set_old (value text)`)
      let dropped: string | undefined
      const progress = (step: string) => {
        if (dropped !== undefined || step.startsWith('copying operations.')) return
        // The copy goes no further meanwhile.
        const text = "SET lock_timeout = '1s'; DROP TABLE operations.data_set_old"
        const program = `
          const client = new (require('pg').Client)({ connectionString: process.argv[1] })
          client.connect().then(() => client.query(process.argv[2])).then(() => 'dropped', String)
            .then((end) => { console.log(end); return client.end() })`
        const given = ['-e', program, service().config.databaseUrl ?? '', text]
        dropped = execFileSync(process.execPath, given, { encoding: 'utf8' }).trim()
      }
      try {
        const manifest = await createBackup(service().config, { to }, progress)
        expect(manifest.tables.map(({ name: each }) => each)).toContain('data_set_old')
        expect(dropped).toBe('dropped')
      } finally {
        rmSync(to, { recursive: true, force: true })
      }
    })

    test('it fails after ten tries where a table is missing for good', async () => {
      const app = await createBlobs(service())
      await keep(app, 'scans', 'scan')
      const { schema } = await findTable(app, 'scans')
      const broken = `${schema}0000`
      await service().database.execute(sql`CREATE SCHEMA ${sql.id(broken)}`)
      await service().database.execute(
        sql`CREATE TABLE ${sql.id(broken, 'definition')} AS TABLE ${sql.id(schema, 'definition')}`,
      )
      let calls = 0
      const copying = copyWithBlobs(
        { url: service().config.databaseUrl ?? '' },
        {
          listPlaces: async () => {
            calls += 1
            return [{ schema: broken, folder: 1 }]
          },
          copy: async () => undefined,
        },
      )
      await expect(copying).rejects.toThrow('does not exist')
      expect(calls).toBe(10)
      await service().database.execute(sql`DROP SCHEMA ${sql.id(broken)} CASCADE`)
    })
  }))
