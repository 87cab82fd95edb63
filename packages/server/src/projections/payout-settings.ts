import type { Queryable } from '../database/database.ts'
import { type SqlStatement, sql } from '../database/sql.ts'
import { makeDefaultSettings, type PayoutSettings } from '../model/payout-settings.ts'
import type { EntryRun, Projection } from './projection.ts'

/** The settings of payouts, from `payout_settings` entries of the system chain: each holds all of an application's. */
export class PayoutSettingsTable implements Projection {
  readonly types = ['payout_settings'] as const
  readonly #byApp = new Map<string, PayoutSettings>()

  get(appId: string): PayoutSettings {
    return this.#byApp.get(appId) ?? makeDefaultSettings(appId)
  }

  /** Lists the settings by which money is paid out without being asked for. */
  listAutomatic(): PayoutSettings[] {
    return [...this.#byApp.values()].filter((one) => one.auto_payout_enabled)
  }

  /** Lists the settings by which more will stay on a balance later. */
  listLocking(): PayoutSettings[] {
    return [...this.#byApp.values()].filter(({ locked_later: later }) => later)
  }

  tables(schema: string): SqlStatement[] {
    return [
      sql`CREATE TABLE ${sql.id(schema, 'payout_settings')} (
        app_id text NOT NULL, body text NOT NULL, CONSTRAINT payout_settings_pkey PRIMARY KEY (app_id))`,
    ]
  }

  tableNames(): string[] {
    return ['payout_settings']
  }

  async load(database: Queryable, schema: string): Promise<void> {
    const rows = await database.query<{ body: string }>(
      sql`SELECT body FROM ${sql.id(schema, 'payout_settings')}`,
    )
    for (const { body } of rows) this.#set(body)
  }

  async apply(tx: Queryable, schema: string, { entries }: EntryRun): Promise<() => void> {
    for (const { header, body } of entries) {
      await tx.execute(sql`
        INSERT INTO ${sql.id(schema, 'payout_settings')} (app_id, body) VALUES (${String(header.app)}, ${body})
        ON CONFLICT (app_id) DO UPDATE SET body = excluded.body`)
    }
    return () => {
      for (const { body } of entries) this.#set(body)
    }
  }

  #set(body: string): void {
    const settings: PayoutSettings = JSON.parse(body)
    this.#byApp.set(settings.app_id, settings)
  }
}
