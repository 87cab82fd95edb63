import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { createBlobs } from '../support/blobs.ts'
import {
  type Hostile,
  type HostileScene,
  type Manifest,
  openHostileScene,
  type Written,
} from './stranger.ts'

// The other service is a stranger's, whose operator signs whatever he likes.

let scene: HostileScene
beforeAll(async () => {
  scene = await openHostileScene()
})
afterAll(() => scene?.close())

describe('what is not taken in', () => {
  test('files that no row names are left where they are, whatever they are and wherever', async () => {
    const [bytes, other] = ['planted', 'other']
    const name = createHash('sha256').update(bytes).digest('hex')
    const mover = await scene.stranger.createMover()
    const options = await scene.stranger.exportChanged(mover)
    const files: [string, string, string][] = [
      [join('deep', 'below'), name, bytes],
      [name.slice(0, 2), name, bytes],
      [name.slice(0, 2), 'ab'.repeat(32), other],
      [name.slice(0, 2), `${name}x`, bytes],
    ]
    for (const [folder, file, content] of files) {
      mkdirSync(join(options.from, 'blobs', folder), { recursive: true })
      writeFileSync(join(options.from, 'blobs', folder, file), content)
    }
    expect(await scene.importInto(options)).toMatchObject({ equal: true })
    const { number } = (await scene.away.running.service.tenants.load(mover.appId)).application
    expect(existsSync(join(scene.away.config.dataDir, 'blobs', String(number)))).toBe(false)
  })

  test('a file of other bytes, or of another kind, is none, and neither log nor files stay', async () => {
    const mover = await createBlobs(scene.home)
    const { blob_id: id } = (await mover.upload('pictures', 'planted')).body
    const hash = id.slice('blob_'.length)
    const options = await scene.stranger.exportChanged(mover.data)
    const path = join(options.from, 'blobs', hash.slice(0, 2), hash)
    const harms = [
      () => writeFileSync(path, 'other'),
      () => writeFileSync(path, 'Planted'),
      () => rmSync(path),
      () => symlinkSync('/dev/zero', path),
    ]
    for (const harm of harms) {
      harm()
      expect(await scene.importInto(options)).toMatchObject({ equal: false, lost: { count: 1 } })
      expect((await scene.away.request('GET', `/api/apps/${mover.appId}`)).status).toBe(404)
    }
    const schemas = await scene.away.database.query(
      sql`SELECT nspname::text FROM pg_catalog.pg_namespace WHERE nspname LIKE 'rebuild%'`,
    )
    expect(schemas).toEqual([])
  })
})

describe('what a manifest says of an application', () => {
  const hash = 'ab'.repeat(32)
  const account = `wallet:0x${'11'.repeat(20)}`
  const authorization = {
    ...{ id: 'auth_1', app_id: 'any', account, grantee: 'me', spend_limit: '1000000000' },
    ...{ max_per_tx: null, daily_limit: null, allowed_targets: null, key_hash: hash },
    ...{ prefix: 'app_0000', created_at: '', expires_at: '2999-01-01T00:00:00.000Z' },
    revoked_at: null,
  }

  test('keys and records of other forms are refused', async () => {
    const changes: [string, (manifest: Manifest) => void][] = [
      [
        'a key that spends from the balance of somebody else',
        ({ keys }) => Object.assign(keys[0] ?? {}, { permissions: ['Pay'], authorization }),
      ],
      [
        'a key of another form',
        ({ keys }) => Object.assign(keys[0] ?? {}, { permissions: ['Operator'] }),
      ],
      [
        'a key that spends what is no key’s',
        ({ keys }) => Object.assign(keys[0] ?? {}, { budget: 'auth_1' }),
      ],
      [
        'an owner that is no address',
        ({ application }) => Object.assign(application, { owner_address: 'me' }),
      ],
    ]
    const mover = await scene.stranger.createMover()
    const exports = new Map<string, Hostile>()
    for (const [what, change] of changes)
      exports.set(what, await scene.stranger.exportChanged(mover, change))
    await scene.expectRefusals(exports, /in a form that this program knows/)
  })

  test('the id of the service’s own chain is refused', async () => {
    const changed = await scene.stranger.exportChanged(
      await scene.stranger.createMover(),
      ({ application, keys }) => {
        application.app_id = 'system'
        for (const key of keys) key.app_id = 'system'
      },
    )
    await expect(scene.importInto(changed)).rejects.toThrow(/the id system is taken/)
    expect((await scene.away.request('GET', '/api/apps/system')).status).toBe(404)
  })

  test('a key that is known here, also behind an authorization or as the first of a budget, is refused', async () => {
    const { keyHash } = await scene.away.createApp()
    const body = { ...authorization, app_id: scene.victim.appId }
    await scene.away.whileStopped(async () => {
      await scene.away.database.execute(sql`
        INSERT INTO system.authorization (id, leaf, key_hash, body) VALUES ('auth_1', 0, ${hash}, ${JSON.stringify(body)})`)
    })
    const changes: ((key: Record<string, unknown>) => void)[] = [
      (key) => Object.assign(key, { key_hash: keyHash }),
      (key) => Object.assign(key, { key_hash: hash }),
      (key) => Object.assign(key, { budget: `key:${keyHash}` }),
    ]
    const exports = new Map<string, Hostile>()
    for (const change of changes)
      exports.set(
        String(change),
        await scene.stranger.exportChanged(await scene.stranger.createMover(), ({ keys }) =>
          change(keys[0] ?? {}),
        ),
      )
    await scene.expectRefusals(exports, /is a key of .* here already/)
    await scene.away.database.execute(sql`DELETE FROM system.authorization WHERE id = 'auth_1'`)
  })
})

describe('definitions that no request makes', () => {
  const at = '2026-01-31T12:00:00.000Z'
  const rule = (more: object) => ({
    kind: 'pricing',
    id: 'pricing',
    body: {
      rules: [{ target: { collection: 'notes' }, operation: 'read', model: 'per_row', ...more }],
    },
  })
  const index = (price: object) => ({
    kind: 'index',
    id: 'idx_1',
    body: {
      ...{ id: 'idx_1', number: 50, name: 'i', collection: 'any', fields: ['a'] },
      ...{ index_type: 'number', unique: false, created_at: at, price },
    },
  })
  const query = (price: object) => ({
    kind: 'query',
    id: 'q@1',
    body: { name: 'q', parameters: [], version: 1, sources: ['notes'], created_at: at, price },
  })

  test('prices and shares that would take from others are refused', async () => {
    const definitions = new Map<string, Written>([
      ['a price below nothing', rule({ amount: '-5' })],
      ['a tier below nothing', rule({ amount: '5', tiers: [{ above: 1, amount: '-5' }] })],
      ['a quota below nothing', rule({ model: 'free_quota', unit: 'row', quantity: -5 })],
      ['a price of a query below nothing', query({ per_access: -5 })],
      ['a price of a query that is no whole number', query({ per_access: 0.5 })],
      [
        'a share that takes from the wallet that it names',
        index({ platform_basis_points: 20_000, owner: `0x${'11'.repeat(20)}` }),
      ],
      ['a share below nothing', index({ platform_basis_points: -1, owner: null })],
      [
        'a share of an account that is no wallet',
        index({ platform_basis_points: 0, owner: 'platform' }),
      ],
    ])
    const exports = new Map<string, Hostile>()
    for (const [what, one] of definitions)
      exports.set(
        what,
        await scene.stranger.exportChanged(await scene.stranger.createDefining(one)),
      )
    await scene.expectRefusals(exports, /is damaged/)
  })

  test('tiers that make the charge higher than its quote are refused', async () => {
    const tiers = [{ above: 0, amount: '1000000' }]
    const exported = await scene.stranger.exportChanged(
      await scene.stranger.createDefining(rule({ amount: '5', tiers })),
    )
    await expect(scene.importInto(exported)).rejects.toThrow(/none that this service would take/)
  })

  test('a view that reads what it does not name is refused', async () => {
    const { data } = await scene.away.running.service.tenants.load(scene.victim.appId)
    const id = data.catalog.byName.get('private')?.id ?? ''
    const model = `${scene.victim.appId}::private`
    const mover = await scene.stranger.createMover()
    const tenant = await scene.home.running.service.tenants.load(mover.appId)
    const view = {
      ...{ id: 'view_1', app: mover.appId, number: 50, name: 'all', refresh_mode: 'lazy' },
      ...{
        query: { from: model, select: { word: `${model}.word` } },
        source_collections: [],
        sources: [],
      },
      ...{ reads: [{ model, app: scene.victim.appId, id }], inner: {}, types: {} },
      ...{ positions: { [scene.victim.appId]: 100 }, variables: null, description: null },
      ...{ access_policy: null, created_at: at },
    }
    const { height } = await tenant.chain.append([
      { header: { type: 'definition', kind: 'view', id: 'view_1' }, body: JSON.stringify(view) },
    ])
    await tenant.chain.whenApplied(height)
    await expect(scene.importInto(await scene.stranger.exportChanged(mover))).rejects.toThrow(
      `the view all reads the application ${scene.victim.appId}`,
    )
  })
})
