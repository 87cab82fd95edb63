import type { Config } from '../../packages/server/src/config/config.ts'
import { type Database, openDatabase } from '../../packages/server/src/database/database.ts'
import { sql } from '../../packages/server/src/database/sql.ts'

export type Copies = {
  /** A copy of the service's storage to be damaged; it is removed afterwards. */
  readonly harmed: (work: (database: Database, config: Config) => Promise<void>) => Promise<void>
  readonly close: () => Promise<void>
}

let made = 0

/** Makes copies of a stopped service's data, so that each damage is alone. */
export async function openCopies(config: Config): Promise<Copies> {
  const url = new URL(String(config.databaseUrl).replace('@/', '@localhost/'))
  const source = url.pathname.slice(1)
  made += 1
  const prefix = `copy_${process.pid}_${made}`
  const makeUrl = (name: string) => String(config.databaseUrl).replace(`/${source}?`, `/${name}?`)
  const admin = await openDatabase({ connection: { url: makeUrl('postgres') }, poolSize: 1 })
  const copy = async (name: string, from: string) => {
    await admin.query(
      sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = ${from}`,
    )
    await admin.execute(
      sql`CREATE DATABASE ${sql.id(name)} TEMPLATE ${sql.id(from)} STRATEGY file_copy`,
    )
  }
  const drop = (name: string) =>
    admin.execute(sql`DROP DATABASE IF EXISTS ${sql.id(name)} WITH (FORCE)`)
  await copy(prefix, source)
  return {
    harmed: async (work) => {
      const name = `${prefix}_x`
      await copy(name, prefix)
      const databaseUrl = makeUrl(name)
      const database = await openDatabase({ connection: { url: databaseUrl }, poolSize: 1 })
      try {
        await work(database, { ...config, databaseUrl })
      } finally {
        await database.close()
        await drop(name)
      }
    },
    close: async () => {
      await drop(prefix)
      await admin.close()
    },
  }
}
