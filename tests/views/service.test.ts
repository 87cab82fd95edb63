import { expect, test } from 'vitest'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { rebuild } from '../../packages/server/src/operator/rebuild.ts'
import { chooseSeed } from '../support/by-commit.ts'
import { withService } from '../support/per-engine.ts'
import { readKeptHistories } from './kept-histories.ts'
import { followService } from './service-case.ts'
import { runServiceCase, type ServiceCase } from './service-run.ts'

/** Others for each commit; more of them by hand: `npm run views -- --only service --minutes 20 --seed 7`. */
const [first, histories] = [chooseSeed(), 3]
/** The tries are shared by all cases, so that a service that is wrong everywhere is reported in time. */
const tries = { left: 60 }

withService((service) => {
  test.each(readKeptHistories<ServiceCase>('service'))(
    'a history in which a view of a service was wrong once is right: $name',
    async ({ history }) => {
      await expect(runServiceCase(service(), history)).resolves.toBeUndefined()
    },
  )

  test.each(Array.from({ length: histories }, (_, at) => first + at))(
    'every view of a service equals its definition at the position that it states: history %i',
    async (seed) => {
      await followService(service(), seed, { tries })
    },
    600_000,
  )

  test('the audit and a rebuild agree with all views that these histories left', async () => {
    await service().whileStopped(async (config) => {
      expect(await audit(config, () => undefined)).toMatchObject({ equal: true })
      expect(await rebuild(config, () => undefined)).toMatchObject({ equal: true })
      expect(await audit(config, () => undefined)).toMatchObject({ equal: true })
    })
  })
})
