import { DatabaseSetupError } from './errors.ts'
import { type SqlStatement, sql } from './sql.ts'

/** The oldest major version that the service is tested on. */
const majorMin = 15

/** Collations of the C library that order text by code point, as every sort and range of the service expects. */
const codePointCollations = new Set(['C', 'POSIX', 'C.UTF-8', 'C.UTF8', 'C.utf8'])

type Facts = {
  version: number
  name: string
  encoding: string
  provider: string
  collation: string
  locale: string | null
  role: string
  mayMakeTemporary: boolean
}

/** Returns the server's major version; refuses a server that could give other answers than the tested ones. */
export async function checkServer(server: {
  readonly query: <R extends Record<string, unknown>>(statement: SqlStatement) => Promise<R[]>
}): Promise<number> {
  // to_jsonb hides that the column of the locale has a different name in each of 15, 16 and 17.
  const [facts] = await server.query<Facts>(sql`
    SELECT current_setting('server_version_num')::int4 AS version, d.datname::text AS name,
      pg_encoding_to_char(d.encoding)::text AS encoding, d.datlocprovider::text AS provider,
      d.datcollate::text AS collation, coalesce(to_jsonb(d)->>'datlocale', to_jsonb(d)->>'daticulocale') AS locale,
      current_user::text AS role, has_database_privilege(d.oid, 'TEMPORARY') AS "mayMakeTemporary"
    FROM pg_catalog.pg_database d WHERE d.datname = current_database()`)
  if (facts === undefined)
    throw new DatabaseSetupError('the database does not list itself in pg_database')
  const major = Math.floor(facts.version / 10_000)
  if (major < majorMin) {
    throw new DatabaseSetupError(
      `the server is PostgreSQL ${major}; ${majorMin} or newer is needed`,
    )
  }
  if (facts.encoding !== 'UTF8') {
    throw new DatabaseSetupError(
      `the database "${facts.name}" has the encoding ${facts.encoding}; UTF8 is needed. ${advice(major)}`,
    )
  }
  const ordersByCodePoint =
    facts.provider === 'b' || (facts.provider === 'c' && codePointCollations.has(facts.collation))
  if (!ordersByCodePoint) {
    const shown = facts.provider === 'i' ? `ICU ${facts.locale ?? ''}`.trim() : facts.collation
    throw new DatabaseSetupError(
      `the database "${facts.name}" sorts text by the collation ${shown}; one that sorts by code point is needed. ` +
        advice(major),
    )
  }
  if (!facts.mayMakeTemporary)
    throw new DatabaseSetupError(
      `the role "${facts.role}" may make no temporary tables, in which long blocks are sent: GRANT TEMPORARY ON DATABASE "${facts.name}" TO "${facts.role}";`,
    )
  return major
}

function advice(major: number): string {
  const locale =
    major >= 17 ? "LOCALE_PROVIDER builtin BUILTIN_LOCALE 'C.UTF-8' LOCALE 'C'" : "LOCALE 'C.UTF-8'"
  return `Make one that fits: CREATE DATABASE tollbase TEMPLATE template0 ENCODING 'UTF8' ${locale};`
}
