import type { Queryable } from '../../packages/server/src/database/database.ts'
import { sql } from '../../packages/server/src/database/sql.ts'
import type { Data } from '../support/data.ts'
import type { TestService } from '../support/service.ts'

/** Locks a table of the application until it is released. */
export function holdTable(service: TestService, app: Data, table = '') {
  return holdOpen(service, app, (tx, schema) =>
    tx.execute(sql`LOCK TABLE ${sql.id(schema, table)} IN ACCESS EXCLUSIVE MODE`),
  )
}

/** Does the work in a transaction that stays open until it is released, and then is rolled back. */
export async function holdOpen(
  service: TestService,
  app: Data,
  work: (tx: Queryable, schema: string) => Promise<unknown>,
) {
  const { schema } = await service.running.service.tenants.load(app.appId)
  let release: () => void = () => undefined
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  let isHeld: () => void = () => undefined
  const held = new Promise<void>((resolve) => {
    isHeld = resolve
  })
  const holding = service.database.transaction(async (tx) => {
    await work(tx, schema)
    isHeld()
    await released
    throw new Undone()
  })
  await held
  return {
    release: async () => {
      release()
      await holding.catch((error: unknown) => {
        if (!(error instanceof Undone)) throw error
      })
    },
  }
}

class Undone extends Error {}
