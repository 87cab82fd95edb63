import { readdirSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import {
  blobGraceMs,
  collectBlobs,
} from '../../packages/server/src/services/blobs/collect-blobs.ts'
import { createFundedBuyer, quote } from '../payments/buyer.ts'
import { type Blobs, createBlobs } from '../support/blobs.ts'
import { withService } from '../support/per-engine.ts'

describe('the files of blobs', () =>
  withService(
    (service) => {
      const collect = async ({ appId }: Blobs) => {
        const parts = service().running.service
        return collectBlobs(parts, await parts.tenants.load(appId))
      }
      const passGrace = () => service().world.advance(blobGraceMs + 1)

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
