import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Database, openDatabase } from '../../packages/server/src/database/database.ts'
import { makePreparedNames } from '../../packages/server/src/database/prepared-names.ts'
import { sql } from '../../packages/server/src/database/sql.ts'
import { createTestDatabase } from '../../packages/server/src/database/testing.ts'
import { type AppKeys, createShop } from './found-shop.ts'
import { writePlates } from './plate-shelf.ts'
import { signingKey } from './shop.ts'
import { createLog } from './summary.ts'

export type Result = {
  /** The problems that were found; none where all is well. */
  readonly problems: readonly string[]
  /** One line for each step. */
  readonly trace: readonly string[]
  /** The pairs of a payment's state and an event that happened. */
  readonly pairs?: ReadonlySet<string>
}

/** A database of its own for one run. */
export type Copy = { readonly name: string; readonly url: string }

type Template = 'shop' | 'log'

/** A real PostgreSQL where each run has a database of its own, copied from a template. */
export type Place = {
  /** A folder with the service's signing key, for the audit. */
  readonly folder: string
  readonly keys: AppKeys
  /** The share of runs of the market that end with the product's own audit, a third of a run's cost. */
  readonly auditedPerMille: number
  readonly createCopy: (template: Template) => Promise<Copy>
  readonly drop: (copy: Copy) => Promise<void>
  readonly close: () => Promise<void>
}

/**
 * The connections of a run. A transaction of a paused process keeps its connection, and a wait for a connection
 * stops the simulated time: so there are more than all processes of a run can use at once.
 */
const poolSize = 24

/**
 * The names of the statements of all runs. A run asks most of its statements a few times only, so to analyze and plan
 * each of them was half of the database's work.
 */
const preparedNames = makePreparedNames(1_024)
/** A plan is made once for a connection, and not anew for the first five sets of values. */
const planOnce = '-c plan_cache_mode=force_generic_plan'

/** A run's connections to its database. */
export function openCopy({ url }: Pick<Copy, 'url'>): Promise<Database> {
  return openDatabase({ connection: { url }, poolSize, preparedNames })
}

let places = 0

export async function openPlace({ auditedPerMille = 1000 } = {}): Promise<Place> {
  const store = await createTestDatabase()
  const folder = mkdtempSync(join(tmpdir(), 'tollbase-simulation-'))
  const pem = signingKey.export({ format: 'pem', type: 'pkcs8' })
  writeFileSync(join(folder, 'signing-key.pem'), pem, { mode: 0o600 })
  const { host, port, user } = store.connection
  const makeUrl = (database: string) =>
    `postgresql://${encodeURIComponent(user)}@/${database}?host=${encodeURIComponent(host)}&port=${port}&options=${encodeURIComponent(planOnce)}`
  places += 1
  const prefix = `simulation_${process.pid}_${places}`
  let runs = 0
  const found = async <T>(name: Template, work: (database: Database) => Promise<T>): Promise<T> => {
    const full = `${prefix}_${name}`
    await store.database.execute(sql`CREATE DATABASE ${sql.id(full)} TEMPLATE template0`)
    const database = await openCopy({ url: makeUrl(full) })
    try {
      return await work(database)
    } finally {
      await database.close()
    }
  }
  const keys = await found('shop', createShop)
  await found('log', createLog)
  writePlates(folder, keys.libraryFolder)
  return {
    folder,
    keys,
    auditedPerMille,
    createCopy: async (template) => {
      runs += 1
      const name = `${prefix}_${runs}`
      const from = `${prefix}_${template}`
      await store.database.execute(
        sql`CREATE DATABASE ${sql.id(name)} TEMPLATE ${sql.id(from)} STRATEGY FILE_COPY`,
      )
      return { name, url: makeUrl(name) }
    },
    drop: async ({ name }) => {
      await store.database.execute(sql`DROP DATABASE ${sql.id(name)} WITH (FORCE)`)
    },
    close: async () => {
      for (const name of [`${prefix}_shop`, `${prefix}_log`])
        await store.database.execute(sql`DROP DATABASE ${sql.id(name)} WITH (FORCE)`)
      await store.drop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
