/** Time-out of an idle transaction, which would keep locks and dead rows. */
const idleTransactionTimeoutMs = 60_000

export type SessionOptions = {
  /** Longest run of one statement, 0 is no limit. */
  readonly statementTimeoutMs: number
  /** Makes the session read only, with this much temporary space on disk per statement. */
  readonly readOnly: { readonly temporaryKbMax: number } | undefined
  /** Plans each statement once, for all values, and not anew for those of each run. */
  readonly keepPlans?: boolean
}

/** The settings that change results: they are ours, whatever the server, its role or its database say. */
export const pinnedSettings = {
  TimeZone: 'UTC',
  DateStyle: 'ISO, YMD',
  IntervalStyle: 'postgres',
  standard_conforming_strings: 'on',
  extra_float_digits: '1',
  bytea_output: 'hex',
  array_nulls: 'on',
  transform_null_equals: 'off',
  lc_numeric: 'C',
  lc_monetary: 'C',
  lc_time: 'C',
  // EST is another offset in Australia.
  timezone_abbreviations: 'Default',
  // A limit would leave rows out of what an index finds.
  gin_fuzzy_search_limit: '0',
  // The audit compares definitions of indexes as PostgreSQL writes them.
  quote_all_identifiers: 'off',
  default_transaction_isolation: 'read committed',
  // Names are always written with their schema.
  search_path: 'pg_catalog',
} as const

/** A statement that pins the settings of a connection and bounds its statements. It tells the server's process as `pid`. */
export function formatSessionSettings(options: SessionOptions): string {
  const { statementTimeoutMs, readOnly, keepPlans } = options
  const settings = {
    ...pinnedSettings,
    jit: 'off',
    statement_timeout: String(statementTimeoutMs),
    idle_in_transaction_session_timeout: String(idleTransactionTimeoutMs),
    ...(readOnly && { default_transaction_read_only: 'on' }),
    ...(keepPlans === true && { plan_cache_mode: 'force_generic_plan' }),
  }
  const columns = Object.entries(settings).map(([name, value]) => setting(name, value))
  // Only a superuser may bound temporary space; elsewhere the server's own setting counts.
  const space =
    readOnly &&
    `CASE WHEN (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user) THEN ${setting('temp_file_limit', String(readOnly.temporaryKbMax))} END`
  const pid = 'pg_catalog.pg_backend_pid() AS pid'
  return `SELECT ${[pid, ...columns, ...(space === undefined ? [] : [space])].join(', ')}`
}

function setting(name: string, value: string): string {
  return `pg_catalog.set_config('${name}', '${value}', false)`
}
