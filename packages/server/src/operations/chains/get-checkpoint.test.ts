import { createOpenData, readChain } from '@tollbase/testing/chains'
import { withService } from '@tollbase/testing/per-engine'
import { verifyCheckpoint } from '@tollbase/verify/checkpoint'
import { describe, expect, test } from 'vitest'

describe('getCheckpoint', () =>
  withService((service) => {
    test('the checkpoint is signed by the chain`s key over its root and size, and grows with the log', async () => {
      const app = await createOpenData(service())
      await app.store('notes', [{ id: 'a' }])
      const before = await readChain(service(), app, '/checkpoint')
      expect(verifyCheckpoint(before.checkpoint, before.key)).toMatchObject({
        ok: true,
        checkpoint: { origin: before.origin, size: before.size },
      })
      expect(before.origin.endsWith(`/${app.appId}`)).toBe(true)
      await app.store('notes', [{ id: 'b' }, { id: 'c' }])
      expect((await readChain(service(), app, '/checkpoint')).size).toBe(before.size + 2)
    })

    test('a chain goes on after a restart, under the same key', async () => {
      const app = await createOpenData(service())
      await app.store('notes', [{ id: 'a' }])
      const before = await readChain(service(), app, '/checkpoint')
      await service().restart()
      expect(await readChain(service(), app, '/checkpoint')).toEqual(before)
      await app.store('notes', [{ id: 'b' }])
      const after = await readChain(service(), app, '/checkpoint')
      expect(after).toMatchObject({ size: before.size + 1, key: before.key, origin: before.origin })
    })
  }))
