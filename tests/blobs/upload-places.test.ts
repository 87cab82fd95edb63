import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { realWorld } from '../../packages/server/src/base/world.ts'
import { ResumableUploads } from '../../packages/server/src/services/blobs/resumable-uploads.ts'
import { withService } from '../support/per-engine.ts'

const root = mkdtempSync(join(tmpdir(), 'tollbase-upload-places-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))

withService((service) => {
  test('a few applications never have all places of open uploads: some are for those that have none', async () => {
    const places = { max: 8, ofHolderMax: 3, forNew: 2 }
    const uploads = new ResumableUploads({
      root,
      world: realWorld,
      needRoom: () => undefined,
      places,
    })
    const { tenants } = service().running.service
    const load = async () => tenants.load((await service().createApp()).appId)
    const [first, second, third, fourth] = [await load(), await load(), await load(), await load()]
    const details = { contentType: 'text/plain', filename: undefined, metadata: undefined }
    const create = (tenant: typeof first) =>
      uploads.create(
        { tenant, collection: 'files' },
        { length: 1, details, refuseOverQuota: async () => undefined },
      )
    const refused = { code: 'CONFLICT' }
    for (let at = 0; at < 3; at++) await create(first)
    await expect(create(first)).rejects.toMatchObject(refused)
    for (let at = 0; at < 3; at++) await create(second)
    const own = await create(third)
    await expect(create(third)).rejects.toMatchObject(refused)
    await create(fourth)
    await expect(create(await load())).rejects.toMatchObject(refused)
    await uploads.remove(own)
    await create(await load())
  })
})
