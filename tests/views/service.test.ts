import { expect, test } from 'vitest'
import { audit } from '../../packages/server/src/app-audit.ts'
import { rebuild } from '../../packages/server/src/app-rebuild.ts'
import { withService } from '../support/per-engine.ts'
import { followHistory } from './service-history.ts'

const size = { views: 8, steps: 14 }
const first = Number(process.env.TOLLBASE_VIEW_SEED ?? 20_261_121)
const histories = Number(process.env.TOLLBASE_VIEW_SERVICE_HISTORIES ?? 8)

/** Seeds of histories that found a bug. */
const kept: readonly number[] = []
const seeds = [...kept, ...Array.from({ length: histories }, (_, at) => first + at)]

withService((service) => {
  test.each(seeds)(
    'every view of a service equals its definition at the position that it states: history %i',
    async (seed) => {
      await followHistory(service(), seed, size)
    },
  )

  test('the audit and a rebuild agree with all views that these histories left', async () => {
    await service().whileStopped(async (config) => {
      expect(await audit(config, () => undefined)).toMatchObject({ equal: true })
      expect(await rebuild(config, () => undefined)).toMatchObject({ equal: true })
      expect(await audit(config, () => undefined)).toMatchObject({ equal: true })
    })
  })
})
