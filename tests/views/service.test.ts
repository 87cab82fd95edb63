import { expect, test } from 'vitest'
import { audit } from '../../packages/server/src/app-audit.ts'
import { rebuild } from '../../packages/server/src/app-rebuild.ts'
import { withService } from '../support/per-engine.ts'
import { followHistory, historySize } from './service-history.ts'

/** More of them, by hand: `npm run views -- --minutes 20 --seed 7`. */
const [first, histories] = [20_261_121, 6]

/** Seeds of histories that found a bug. */
const kept: readonly number[] = []
const seeds = [...kept, ...Array.from({ length: histories }, (_, at) => first + at)]

withService((service) => {
  test.each(seeds)(
    'every view of a service equals its definition at the position that it states: history %i',
    async (seed) => {
      await followHistory(service(), seed, historySize)
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
