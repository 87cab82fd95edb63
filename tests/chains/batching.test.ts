import fc from 'fast-check'
import { expect, test } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { rebuild } from '../../packages/server/src/operator/rebuild.ts'
import { createData, type Data } from '../support/data.ts'
import { describePerEngine } from '../support/per-engine.ts'

const quiet = () => undefined

const record = fc.record(
  {
    id: fc.constantFrom('a', 'b', 'c', 'd'),
    email: fc.constantFrom(
      'x',
      'y',
      'z',
      null,
      1,
      '1',
      [1],
      'x'.repeat(200),
      `${'x'.repeat(199)}y`,
    ),
    phone: fc.constantFrom('p', 'q', 'r'),
    deleted: fc.boolean(),
  },
  { requiredKeys: [] },
)

const step = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      do: fc.constant('store' as const),
      records: fc.array(record, { minLength: 1, maxLength: 6 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('index' as const),
      field: fc.constantFrom('email', 'phone'),
      unique: fc.boolean(),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('unindex' as const),
      field: fc.constantFrom('email', 'phone'),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ do: 'recreate' as const }) },
)

type Step = typeof step extends fc.Arbitrary<infer S> ? S : never

async function take(app: Data, one: Step): Promise<void> {
  const { status, text } = await answer(app, one)
  if (![200, 202, 404].includes(status))
    throw new Error(`${JSON.stringify(one)}: ${status} ${text}`)
}

function answer(app: Data, one: Step) {
  if (one.do === 'store') return app.queue('people', one.records)
  if (one.do === 'index')
    return app.call('POST', '/indexes', {
      collection: 'people',
      field_name: one.field,
      unique_constraint: one.unique,
    })
  if (one.do === 'unindex') return app.call('DELETE', `/indexes/people_${one.field}_index`)
  return app.call('DELETE', '/collections/people')
}

describePerEngine('tables that are made in batches', (service) => {
  test('the tables are the same however entries were gathered into batches, after any history', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 5, maxLength: 25 }),
        fc.boolean(),
        async (steps, atOnce) => {
          const app = await createData(service())
          await take(app, { do: 'store', records: [{ id: 'a' }] })
          if (atOnce) await Promise.all(steps.map((one) => take(app, one)))
          else for (const one of steps) await take(app, one)
        },
      ),
      { numRuns: 12, endOnFailure: true },
    )
    const { database } = service()
    const live = async () =>
      JSON.stringify(
        await database.query(
          sql`SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema LIKE 'app_%' ORDER BY table_schema, table_name`,
        ),
      )
    await service().whileStopped(async (config) => {
      const before = await live()
      // The audit replays 64 blocks in one transaction, where the service applied each as it came.
      expect(await audit(config, quiet)).toMatchObject({ equal: true })
      expect(await rebuild(config, quiet)).toMatchObject({ equal: true })
      expect(await audit(config, quiet)).toMatchObject({ equal: true })
      expect(await live()).toBe(before)
    })
  })
})
