import { createHash } from 'node:crypto'
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startService } from '../../packages/server/src/app.ts'
import type { Config } from '../../packages/server/src/config/config.ts'
import type { Database } from '../../packages/server/src/database/database.ts'
import { sql } from '../../packages/server/src/database/sql.ts'
import { createTestDatabase } from '../../packages/server/src/database/testing.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { listFiles } from '../../packages/server/src/operator/backup/copy-files.ts'
import { createBackup } from '../../packages/server/src/operator/backup/create-backup.ts'
import { readManifest } from '../../packages/server/src/operator/backup/manifest.ts'
import { restoreBackup } from '../../packages/server/src/operator/backup/restore-backup.ts'
import { type Blobs, createBlobs } from '../support/blobs.ts'
import { type Buyer, createFundedBuyer, list } from '../support/buyer.ts'
import { createData, type Data } from '../support/data.ts'
import { openMarket } from '../support/market.ts'
import { startProgram } from '../support/program.ts'
import {
  type Json,
  startTestService,
  type TestReply,
  type TestService,
} from '../support/service.ts'

const silent = () => undefined
const root = mkdtempSync(join(tmpdir(), 'tollbase-backup-'))
const place = (name: string) => join(root, name)

let service: TestService
let data: Data
let secret: Data
let blobs: Blobs
let buyer: Buyer
let sold: TestReply
let picture: string

beforeAll(async () => {
  service = await startTestService({ devnet: true })
  const market = await openMarket(service, { price: { per_row: '100' } })
  buyer = await createFundedBuyer(service)
  sold = await buyer.buy(service, list({ root: market.root, limit: 3 }))
  expect(sold.status, sold.text).toBe(200)
  data = await createData(service)
  await data.publish('notes', [{ id: 'n0', text: 'first' }])
  await data.call('POST', '/views', {
    name: 'count',
    source_collections: ['notes'],
    query: { aggregate: { rows: { $count: '*' } } },
    refresh_mode: 'live',
  })
  await data.call('POST', '/datasets', { name: 'set', kind: 'values', entries: ['a', 7] })
  secret = await createData(service)
  await secret.create({ name: 'people', primary_column: 'id' })
  const sealed = await secret.call('POST', '/encryption', { private_app: true })
  expect([200, 402]).toContain(sealed.status)
  blobs = await createBlobs(service)
  const upload = await blobs.upload('pictures', 'a picture of a cat')
  picture = upload.body.blob_id
})

afterAll(async () => {
  await service?.close()
  rmSync(root, { recursive: true, force: true })
})

type Restored = { readonly config: Config; readonly database: Database }

/** Gives an empty database and data folder for a restore. */
async function withTarget(name: string, work: (target: Restored) => Promise<void>): Promise<void> {
  const store = await createTestDatabase()
  const { host, port, user, database } = store.connection
  const databaseUrl = `postgresql://${user}@/${database}?host=${encodeURIComponent(host)}&port=${port}`
  try {
    await work({
      config: { ...service.config, dataDir: place(name), databaseUrl },
      database: store.database,
    })
  } finally {
    await store.drop()
  }
}

const keys = () => place('keys')
const backUp = (to: string) =>
  createBackup(service.config, { to: place(to), keysTo: keys() }, silent)

describe('a backup of a service that runs', () => {
  test('it restores every chain, table, sale and file as of one moment, beside writes, and the service goes on from there', async () => {
    let isOver = false
    const write = async () => {
      for (let at = 1; !isOver; at++) await data.store('notes', [{ id: `n${at}`, text: `${at}` }])
    }
    const writing = write()
    const manifest = await backUp('whole')
    isOver = true
    await writing

    await withTarget('whole-data', async ({ config }) => {
      const report = await restoreBackup(config, { from: place('whole'), keys: keys() }, silent)
      expect(report).toMatchObject({ equal: true, made_at: manifest.made_at })
      expect(report.chains).toHaveLength(manifest.chains.length)
      expect(await audit(config, silent)).toMatchObject({ equal: true })
      const running = await startService({
        config: { ...config, devnet: false },
        world: service.world,
      })
      try {
        const ask = async (path: string, init: RequestInit = {}): Promise<Json> =>
          (await fetch(running.url + path, init)).json()
        const body = JSON.stringify({ root: `${data.appId}::notes` })
        const listed = await ask('/list', {
          method: 'POST',
          body,
          headers: { 'content-type': 'application/json' },
        })
        const [count] = (await ask(`/api/apps/${data.appId}/views/count/data`)).data
        expect(listed.records.length).toBeGreaterThan(0)
        expect(count.rows).toBe(listed.records.length)
        const receipt = sold.headers.get('x-receipt-id')
        const { ledger } = (await service.request('GET', `/api/receipts/${receipt}`)).body
        const restored = await ask(`/api/receipts/${receipt}`)
        expect(restored.ledger.entry).toBe(ledger.entry)
        const file = await fetch(
          `${running.url}/api/apps/${blobs.appId}/blobs/pictures/${picture}?format=raw`,
          { headers: blobs.data.headers },
        )
        expect(await file.text()).toBe('a picture of a cat')
      } finally {
        await running.close()
      }
    })
  })

  test('a checkpoint from after the backup contradicts the restored chain, and the audit says so', async () => {
    await backUp('older')
    await data.store('notes', [{ id: 'later', text: 'later' }])
    const { body } = await service.request('GET', `/api/apps/${data.appId}/chain/checkpoint`)
    const kept = place('kept.txt')
    writeFileSync(kept, body.checkpoint)
    await withTarget('older-data', async ({ config }) => {
      await restoreBackup(config, { from: place('older'), keys: keys() }, silent)
      const { equal, difference } = await audit(config, silent, { checkpoints: [kept] })
      expect(equal).toBe(false)
      expect(difference).toMatchObject({ chain: data.appId, what: expect.stringContaining(kept) })
    })
  })

  test('a receipt from after the backup contradicts the restored log, and the audit names its payment; one from before does not', async () => {
    const keep = async (name: string, reply: TestReply, change = (text: string) => text) => {
      const id = reply.headers.get('x-receipt-id')
      const { text } = await service.request('GET', `/api/receipts/${id}`)
      writeFileSync(place(name), change(text))
      return place(name)
    }
    const early = await keep('early.json', sold)
    const forged = await keep('forged.json', sold, (text) =>
      text.replace(/"amount":"\d+"/, '"amount":"1"'),
    )
    await backUp('receipts')
    const market = await openMarket(service, { price: { per_row: '100' } })
    const bought = await buyer.buy(service, list({ root: market.root, limit: 1 }))
    const late = await keep('late.json', bought)
    const { payment_id: payment, ledger } = JSON.parse(readFileSync(late, 'utf8'))
    await withTarget('receipts-data', async ({ config }) => {
      await restoreBackup(config, { from: place('receipts'), keys: keys() }, silent)
      expect(await audit(config, silent, { checkpoints: [early] })).toMatchObject({ equal: true })
      expect(await audit(config, silent, { checkpoints: [early, late] })).toMatchObject({
        equal: false,
        difference: { what: expect.stringContaining(late), payment, entry: ledger.leaf_index },
      })
      await expect(audit(config, silent, { checkpoints: [forged] })).rejects.toThrow(
        /forged.json: the signature/,
      )
    })
  })

  test('a later backup into the same folder replaces the earlier one, and deleted blobs leave it', async () => {
    const { blob_id: id } = (await blobs.upload('pictures', 'short-lived')).body
    const first = await backUp('again')
    expect(first.blobs.files).toBe(2)
    await deleteBlob(id)
    const second = await backUp('again')
    expect(second.blobs.files).toBe(1)
    expect(second.tables[0]?.file).not.toBe(first.tables[0]?.file)
    expect(existsSync(join(place('again'), first.tables[0]?.file ?? ''))).toBe(false)
  })

  test('one that is interrupted leaves the backup before it as it was', async () => {
    const first = await backUp('kept')
    const fail = (text: string) => {
      if (text.includes('app_')) throw new Error('interrupted')
    }
    await expect(createBackup(service.config, { to: place('kept') }, fail)).rejects.toThrow(
      'interrupted',
    )
    expect(readManifest(place('kept'))).toEqual(first)
    await withTarget('kept-data', async ({ config }) => {
      const from = place('kept')
      expect(await restoreBackup(config, { from, keys: keys() }, silent)).toMatchObject({
        equal: true,
      })
    })
  })

  test('a second one into the same folder is refused while the first is under way: each would remove what the other has copied', async () => {
    const both = await Promise.allSettled([backUp('twice'), backUp('twice')])
    const { tables } = readManifest(place('twice'))
    for (const { file } of tables) expect(existsSync(join(place('twice'), file)), file).toBe(true)
    const refused = both.flatMap((one) => (one.status === 'rejected' ? String(one.reason) : []))
    expect(refused).toEqual([expect.stringContaining('is in use by the process')])
    expect(await backUp('twice')).toMatchObject({ blobs: { turn: 1 } })
  })

  test('it needs no stop of a service with an embedded database', async () => {
    const dataDir = place('embedded')
    const program = startProgram(dataDir)
    await program.url
    const config = { ...service.config, databaseUrl: undefined, dataDir }
    const manifest = await createBackup(config, { to: place('beside'), keysTo: keys() }, silent)
    expect(manifest.chains).toEqual([expect.objectContaining({ schema: 'system' })])
    expect(await program.end('SIGTERM')).toBe(0)
    const stopped = await createBackup(config, { to: place('beside') }, silent)
    expect(stopped.chains).toEqual(manifest.chains)
  })

  test('the first start after a restore, and only that, ends what was paid before', async () => {
    await backUp('money')
    await withTarget('money-data', async ({ config, database }) => {
      await restoreBackup(config, { from: place('money'), keys: keys() }, silent)
      const restoredAt = async () => {
        const running = await startService({ config, world: service.world })
        await running.close()
        const [pin] = await database.query<{ at: bigint | null }>(
          sql`SELECT restored_at_ms AS at FROM operations.network_pin`,
        )
        return pin?.at
      }
      const first = await restoredAt()
      expect(first).toBeGreaterThan(0n)
      expect(await restoredAt()).toBe(first)
    })
  })
})

async function deleteBlob(id: string): Promise<void> {
  const path = `/api/apps/${blobs.appId}/blobs/pictures/${id}?wait=true`
  const reply = await service.request('DELETE', path, { headers: blobs.data.headers })
  expect(reply.status, reply.text).toBeLessThan(300)
}

/** Finds the file of a blob in a folder of blobs. */
async function findBlob(folder: string, content: string): Promise<string> {
  const sha256 = createHash('sha256').update(content).digest('hex')
  for await (const path of listFiles(folder)) if (path.endsWith(sha256)) return join(folder, path)
  throw new Error(`no file ${sha256}`)
}

describe('a restore', () => {
  test.each([
    ['a table', (folder: string) => flip(findBlockFile(folder)), /is damaged/],
    [
      'the form of a table, so that PostgreSQL cannot read it,',
      // The length of the first field, behind the head of 19 bytes and the number of fields.
      (folder: string) => flip(findBlockFile(folder), 21),
      /is damaged/,
    ],
    [
      'the manifest',
      (folder: string) => appendFileSync(join(folder, 'manifest.json'), '}'),
      /cannot be read/,
    ],
  ])('it refuses a backup in which %s was changed', async (_, harm, expected) => {
    await backUp('harmed')
    harm(place('harmed'))
    await withTarget(`harmed-${Math.random()}`, async ({ config }) => {
      await expect(
        restoreBackup(config, { from: place('harmed'), keys: keys() }, silent),
      ).rejects.toThrow(expected)
    })
  })

  test('a block that was changed together with its hash in the manifest is named', async () => {
    await backUp('forged')
    const folder = place('forged')
    const manifest = readManifest(folder)
    const block = manifest.tables.find(
      ({ schema, name }) => schema === 'system' && name === 'block',
    )
    if (block === undefined) throw new Error('no block')
    const path = join(folder, block.file)
    flip(path, readFileSync(path).lastIndexOf('"kind"') + 2)
    const sha256 = createHash('sha256').update(readFileSync(path)).digest('hex')
    const tables = manifest.tables.map((one) => (one === block ? { ...one, sha256 } : one))
    writeFileSync(join(folder, 'manifest.json'), JSON.stringify({ ...manifest, tables }))
    await withTarget('forged-data', async ({ config }) => {
      const report = await restoreBackup(config, { from: folder, keys: keys() }, silent)
      expect(report).toMatchObject({ equal: false, difference: { chain: 'system' } })
      await expect(startService({ config, world: service.world })).rejects.toThrow(/not finished/)
    })
  })

  test('one that was interrupted is no service, and is run again from the beginning', async () => {
    await backUp('torn')
    const folder = place('torn')
    const copy = place('torn-copy')
    cpSync(folder, copy, { recursive: true })
    flip(await findBlob(join(copy, 'blobs'), 'a picture of a cat'))
    await withTarget('torn-data', async ({ config }) => {
      const report = await restoreBackup(config, { from: copy, keys: keys() }, silent)
      expect(report.difference).toMatchObject({ what: expect.stringContaining('the blob') })
      await expect(startService({ config, world: service.world })).rejects.toThrow(/not finished/)
      await expect(audit(config, silent)).rejects.toThrow(/not finished/)
      expect(await restoreBackup(config, { from: folder }, silent)).toMatchObject({ equal: true })
      expect(await audit(config, silent)).toMatchObject({ equal: true })
    })
  })

  test('it needs the signing key, an empty database, and a folder that is a backup', async () => {
    await backUp('sound')
    const from = place('sound')
    await withTarget('strict-data', async ({ config, database }) => {
      await expect(restoreBackup(config, { from }, silent)).rejects.toThrow(
        /signing-key.pem.*--keys/,
      )
      await expect(restoreBackup(config, { from: root, keys: keys() }, silent)).rejects.toThrow(
        /is not a backup/,
      )
      await database.execute(sql`CREATE SCHEMA app_7`)
      await expect(restoreBackup(config, { from, keys: keys() }, silent)).rejects.toThrow(
        /schema app_7.*empty/,
      )
    })
    await expect(createBackup(service.config, { to: root }, silent)).rejects.toThrow(
      /no part of a backup/,
    )
  })
})

/** Finds the file of the blocks of the service's own chain in a backup. */
function findBlockFile(folder: string): string {
  const { tables } = readManifest(folder)
  const block = tables.find(({ schema, name }) => schema === 'system' && name === 'block')
  return join(folder, block?.file ?? '')
}

/** Flips a bit in the middle of a file, or at a place. */
function flip(path: string, at?: number): void {
  const bytes = readFileSync(path)
  const index = at ?? bytes.length >> 1
  bytes[index] = (bytes[index] ?? 0) ^ 1
  writeFileSync(path, bytes)
}
