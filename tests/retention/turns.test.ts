import { expect, test } from 'vitest'
import { realWorld } from '../../packages/server/src/base/world.ts'
import {
  retentionSweepMs,
  startRetentionSweeps,
} from '../../packages/server/src/services/retention/sweep-retention.ts'
import { createData } from '../support/data.ts'
import { withService } from '../support/per-engine.ts'
import { dayMs, keepFor } from './sweep.ts'

withService((service) => {
  test('an application whose sweep does not end keeps neither those of others nor the end of the service waiting', async () => {
    const [slow, other] = [await createData(service()), await createData(service())]
    for (const app of [slow, other]) {
      await app.store('c', [{ id: 'a' }])
      await keepFor(service(), app, ['c', 1])
    }
    service().world.advance(3 * dayMs)
    const { definitions } = await service().running.service.tenants.load(slow.appId)
    let release: () => void = () => undefined
    const held = definitions.run(
      () =>
        new Promise<void>((resolve) => {
          release = resolve
        }),
    )
    let sweep: () => void = () => undefined
    const every: typeof realWorld.every = (ms, call) => {
      if (ms !== retentionSweepMs) return realWorld.every(Math.min(ms, 200), call)
      sweep = call
      return () => undefined
    }
    const stop = startRetentionSweeps({
      ...service().running.service,
      world: { ...service().world, every },
    })
    sweep()
    const read = async () => (await other.record('c', 'a')).status
    await expect.poll(read, { timeout: 5_000 }).toBe(410)
    expect((await slow.record('c', 'a')).status).toBe(200)
    await stop()
    release()
    await held
  })
})
