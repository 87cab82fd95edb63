import type { Queryable } from '../database/database.ts'
import { type SqlStatement, sql } from '../database/sql.ts'
import type { ApplicationRecord } from '../model/application.ts'
import type { EntryRun, Projection } from './projection.ts'

/** All applications, from `application` entries of the system chain: each holds the newest whole record. */
export class Applications implements Projection {
  readonly types = ['application'] as const
  readonly #byId = new Map<string, ApplicationRecord>()

  get(appId: string): ApplicationRecord | undefined {
    return this.#byId.get(appId)
  }

  findByNumber(number: number): ApplicationRecord | undefined {
    return [...this.#byId.values()].find((one) => one.number === number)
  }

  list(): ApplicationRecord[] {
    return [...this.#byId.values()]
  }

  getNextNumber(): number {
    return Math.max(0, ...this.list().map((one) => one.number)) + 1
  }

  tables(schema: string): SqlStatement[] {
    return [
      sql`CREATE TABLE ${sql.id(schema, 'application')} (
        app_id text NOT NULL, body text NOT NULL, CONSTRAINT application_pkey PRIMARY KEY (app_id))`,
    ]
  }

  tableNames(): string[] {
    return ['application']
  }

  async load(database: Queryable, schema: string): Promise<void> {
    const rows = await database.query<{ body: string }>(
      sql`SELECT body FROM ${sql.id(schema, 'application')}`,
    )
    for (const row of rows) this.#set(row.body)
  }

  async apply(tx: Queryable, schema: string, { entries }: EntryRun): Promise<() => void> {
    for (const entry of entries) {
      await tx.execute(sql`
        INSERT INTO ${sql.id(schema, 'application')} (app_id, body) VALUES (${String(entry.header.app)}, ${entry.body})
        ON CONFLICT (app_id) DO UPDATE SET body = excluded.body`)
    }
    return () => {
      for (const entry of entries) this.#set(entry.body)
    }
  }

  #set(body: string): void {
    const record: ApplicationRecord = JSON.parse(body)
    this.#byId.set(record.app_id, record)
  }
}
