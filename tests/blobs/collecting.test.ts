import { readdirSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { awaitTurn } from '../../packages/server/src/base/await-turn.ts'
import type { World } from '../../packages/server/src/base/world.ts'
import { sql } from '../../packages/server/src/database/sql.ts'
import {
  blobGraceMs,
  collectBlobs,
  collectEveryMs,
} from '../../packages/server/src/services/blobs/collect-blobs.ts'
import { removeUnnamedFiles } from '../../packages/server/src/services/blobs/remove-files.ts'
import { type Blobs, createBlobs } from '../support/blobs.ts'
import { createFundedBuyer, quote } from '../support/buyer.ts'
import { withService } from '../support/per-engine.ts'
import type { TestService } from '../support/service.ts'

describe('the files of blobs', () =>
  withService(
    (service) => {
      const collect = async ({ appId }: Blobs) => {
        const parts = service().running.service
        return collectBlobs(parts, await parts.tenants.load(appId))
      }
      const passGrace = () => service().world.advance(blobGraceMs + 1)
      /** Uploads a blob of seven bytes and deletes it; its file can be removed at once, by a world of one's own. */
      const leave = async () => {
        const { database, blobs, tenants } = service().running.service
        const app = await createBlobs(service())
        const blobId = String((await app.upload('files', 'passing')).body.blob_id)
        await app.data.call('DELETE', `/blobs/files/${blobId}?wait=true`)
        const tenant = await tenants.load(app.appId)
        const remove = (world: World) =>
          removeUnnamedFiles({ database, blobs, world }, tenant, {
            hashes: [blobId.slice('blob_'.length)],
            refuseNeeded: () => undefined,
          })
        return { app, tenant, blobId, remove }
      }
      /** Makes a world in which so long a time passes quickly. */
      const makeFast = (long: number): World => {
        const { world } = service()
        return { ...world, every: (ms, call) => world.every(ms === long ? ms / 30 : ms, call) }
      }
      /** Takes the turn of removals; the returned function gives it back. */
      const holdTurn = () => {
        let end: () => void = () => undefined
        const held = service().running.service.blobs.removals.run(
          () =>
            new Promise<void>((resolve) => {
              end = resolve
            }),
        )
        return () => {
          end()
          return held
        }
      }

      // It comes first: a payment made now is late once the clock has moved.
      test('a file that was bought stays as long as its answer is kept', async () => {
        const app = await createBlobs(service())
        const access_policy = { price: { per_access: '100' } }
        await app.data.create({ name: 'sold', collection_type: 'blob', access_policy })
        const { blob_id } = (await app.upload('sold', 'dear')).body
        const path = `/api/apps/${app.appId}/blobs/sold/${blob_id}`
        const buyer = await createFundedBuyer(service())
        const headers = await buyer.payV2(await quote(service(), { method: 'GET', path }))
        const get = () =>
          fetch(service().url + path, { headers: { ...headers, accept: 'text/plain' } })
        expect((await get()).status).toBe(200)
        await app.data.call('DELETE', `/blobs/sold/${blob_id}?wait=true`)
        await collect(app)
        passGrace()
        expect(await collect(app)).toBe(0)
        expect(await (await get()).text()).toBe('dear')
      })

      test('removals at once of several applications each come to their turn, and wait for nobody who takes too long', async () => {
        const { world } = service()
        const removals = [await leave(), await leave(), await leave(), await leave()]
        const outcomes = removals.map(({ remove }) => remove(world))
        expect(await Promise.all(outcomes)).toEqual([7, 7, 7, 7])
        const end = holdTurn()
        const late = await leave()
        expect(await late.remove(makeFast(30_000))).toBeUndefined()
        await end()
        expect(await late.remove(world)).toBe(7)
      })

      test('removals at once keep none of others waiting for tables that are behind, and no file goes that an acknowledged row names', async () => {
        const { world } = service()
        const { database } = service().running.service
        const [late, other] = [await leave(), await leave()]
        const { data, send, download } = late.app
        await data.store('rows', [{ id: 'a' }])
        /** Runs the work while the tables of the first one show nothing new. */
        const holdTables = (work: () => Promise<void>) =>
          database.transaction(async (tx) => {
            const { schema } = late.tenant
            await tx.execute(sql`LOCK TABLE ${sql.id(schema, 'watermark')} IN EXCLUSIVE MODE`)
            await work()
          })
        const refuse = async (outcome: Promise<unknown>) =>
          expect(outcome).rejects.toMatchObject({
            code: 'UNAVAILABLE',
            message: expect.stringContaining('too far behind'),
          })
        await holdTables(async () => {
          expect((await data.queue('rows', [{ id: 'b' }])).status).toBe(202)
          const refused = refuse(late.remove(makeFast(30_000)))
          expect(await other.remove(world)).toBe(7)
          await refused
        })
        await data.store('rows', [{ id: 'c' }])
        const end = holdTurn()
        const refused = refuse(late.remove(makeFast(5_000)))
        await awaitTurn()
        await holdTables(async () => {
          const form = new FormData()
          form.append('blob', new Blob(['passing']), 'file')
          expect((await send('files', form)).status).toBe(202)
          await end()
          await refused
        })
        expect(await late.remove(world)).toBe(0)
        expect((await download('files', late.blobId)).text).toBe('passing')
      })

      test('a file goes once no row has named it for the time of grace: not while another collection has it, and not when it comes back', async () => {
        const app = await createBlobs(service())
        const { body } = await app.upload('one', 'a')
        await app.upload('two', 'a')
        await app.upload('two', 'b')
        const id = String(body.blob_id)
        const remove = (name: string) => app.data.call('DELETE', `/blobs/${name}/${id}?wait=true`)
        await remove('one')
        expect(await collect(app)).toBe(0)
        passGrace()
        expect(await collect(app)).toBe(0)
        await remove('two')
        expect(await collect(app)).toBe(0)
        await app.upload('one', 'a')
        passGrace()
        expect(await collect(app)).toBe(0)
        expect((await app.download('one', id)).text).toBe('a')
        await app.data.call('DELETE', '/collections/one')
        expect([await collect(app), app.listFiles().length]).toEqual([0, 2])
        passGrace()
        expect([await collect(app), app.listFiles().length]).toEqual([1, 1])
      })

      test('an upload counts to the quota of bytes, and what does not fit leaves no file', async () => {
        const app = await createBlobs(service())
        await app.upload('files', Buffer.alloc(500_000, 1))
        await service().request('PATCH', `/api/apps/${app.appId}`, {
          body: { quota: { bytes: 600_000 } },
          headers: service().operator,
        })
        expect(await app.upload('files', Buffer.alloc(500_000, 2))).toMatchObject({
          status: 409,
          body: { code: 'QUOTA_EXCEEDED' },
        })
        expect((await app.upload('files', 'small')).status).toBe(200)
        expect(app.listFiles()).toHaveLength(2)
      })

      test('uploads that come at once do not exceed the quota together, and bytes that are there already need no room', async () => {
        const app = await createBlobs(service())
        await app.upload('files', 'first')
        await service().request('PATCH', `/api/apps/${app.appId}`, {
          body: { quota: { bytes: 500_000 } },
          headers: service().operator,
        })
        const bodies = [1, 2, 3, 4, 5, 6].map((n) => Buffer.alloc(200_000, n))
        const sent = await Promise.all(bodies.map((bytes) => app.upload('files', bytes)))
        expect(sent.map(({ status }) => status).sort()).toEqual([200, 200, 409, 409, 409, 409])
        expect(app.listFiles()).toHaveLength(3)
        const stored = bodies.find((_, at) => sent[at]?.status === 200)
        expect((await app.upload('files', stored ?? '')).status).toBe(200)
      })

      test('files of closed and archived applications go after the time of grace, over restarts; an application whose files are all named is not opened', async () => {
        const apps = [await createBlobs(service()), await createBlobs(service())]
        const whole = await createBlobs(service())
        for (const app of [...apps, whole]) await app.upload('files', 'kept')
        for (const app of apps) {
          const { blob_id } = (await app.upload('files', 'deleted')).body
          await app.data.call('DELETE', `/blobs/files/${blob_id}?wait=true`)
        }
        await apps[1]?.data.call('DELETE', '')
        const { tenants } = service().running.service
        const numbers = [...apps, whole].map(
          ({ appId }) => tenants.system.applications.get(appId)?.number ?? 0,
        )
        const count = () => numbers.map((number) => countFiles(service().config.dataDir, number))
        const round = () => service().world.passInterval(collectEveryMs)
        // No time of the service's life is as long as that of grace.
        for (const part of [0, 1, 2]) {
          // The round that is under way ends before the service stops.
          await service().restart()
          if (part > 0) service().world.advance(blobGraceMs / 3)
          round()
          await expect
            .poll(() => listOpenOf(service()).filter((one) => numbers.includes(one)), {
              timeout: 20_000,
            })
            .toEqual(numbers.slice(0, 2))
          expect(count()).toEqual([2, 2, 1])
        }
        service().world.advance(blobGraceMs / 3 + 1)
        const countAfterRound = () => {
          round()
          return count()
        }
        await expect.poll(countAfterRound, { timeout: 20_000 }).toEqual([1, 1, 1])
        expect(listOpenOf(service())).not.toContain(numbers[2])
      })

      test('an application that was opened and closed since its files were all named is looked at again', async () => {
        const app = await createBlobs(service())
        const { blob_id } = (await app.upload('files', 'deleted')).body
        await service().restart()
        const { tenants } = service().running.service
        const number = tenants.system.applications.get(app.appId)?.number ?? 0
        const isOpenAfterRound = () => {
          service().world.passInterval(collectEveryMs)
          return listOpenOf(service()).includes(number)
        }
        for (let round = 0; round < 3; round++) expect(isOpenAfterRound()).toBe(false)
        await app.data.call('DELETE', `/blobs/files/${blob_id}?wait=true`)
        tenants.reopenAll()
        await expect.poll(() => listOpenOf(service()).includes(number)).toBe(false)
        await expect.poll(isOpenAfterRound, { timeout: 20_000 }).toBe(true)
      })

      test('a client that hangs up in the middle leaves no file, and neither does a process that died', async () => {
        const app = await createBlobs(service())
        const incoming = join(service().config.dataDir, 'blobs', 'incoming')
        const sent = request(`${service().url}/api/apps/${app.appId}/blobs/files`, {
          method: 'POST',
          headers: { ...app.data.headers, 'content-type': 'multipart/form-data; boundary=x' },
        })
        sent.on('error', () => undefined)
        sent.write('--x\r\nContent-Disposition: form-data; name="blob"\r\n\r\n')
        sent.write(Buffer.alloc(100_000))
        await expect.poll(() => readdirSync(incoming), { timeout: 20_000 }).toHaveLength(1)
        sent.destroy()
        await expect.poll(() => readdirSync(incoming), { timeout: 20_000 }).toEqual([])
        writeFileSync(join(incoming, 'half'), 'x')
        await service().restart()
        expect(readdirSync(incoming)).toEqual([])
      })
    },
    { devnet: true },
  ))

function countFiles(dataDir: string, number: number): number {
  const names = readdirSync(join(dataDir, 'blobs', String(number)), { recursive: true })
  return names.filter((name) => /[0-9a-f]{64}$/.test(String(name))).length
}

function listOpenOf({ running }: TestService): number[] {
  return running.service.tenants.listOpen().map(({ application }) => application.number)
}
