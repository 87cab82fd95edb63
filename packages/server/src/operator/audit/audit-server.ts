import type { Database } from '../../database/database.ts'
import { pinnedSettings } from '../../database/session-settings.ts'
import { sql } from '../../database/sql.ts'

type Difference = Readonly<Record<string, unknown>>

export type ServerOptions = {
  /** The schemas of chains. */
  readonly schemas: readonly string[]
  /** Names what the operator vouches for, as a difference says it in `what`. */
  readonly trusted: readonly string[]
}

/**
 * Finds what could make PostgreSQL itself deceive all that an audit asks: objects of strangers, built-in objects that
 * were replaced, and settings of our role or database.
 */
export async function auditServer(
  database: Database,
  options: ServerOptions,
): Promise<Difference | undefined> {
  return (
    (await findForeign(database, options)) ??
    (await findReplaced(database, options)) ??
    (await findSetting(database, options))
  )
}

/**
 * Finds objects in our database that are not ours and could change what our statements do: tables beside ours;
 * functions, operators, casts and types that are found in place of PostgreSQL's own; event triggers; subscriptions,
 * which write rows of another server into tables. Those of extensions are allowed, event triggers only of Citus, which
 * cannot do without. An extension that PostgreSQL brings has nothing that was made later.
 */
async function findForeign(
  database: Database,
  { schemas, trusted }: ServerOptions,
): Promise<Difference | undefined> {
  const [foreign] = await database.query<{ what: string }>(sql`
    WITH looked AS (
      SELECT oid, nspname::text AS name, nspname = ANY(${[...schemas, 'operations']}::text[]) AS ours FROM pg_catalog.pg_namespace
      WHERE nspname ~ '^(app_[0-9]+|system|operations|public|pg_catalog)$' OR nspname = current_user),
    object AS (
      SELECT 'event trigger ' || evtname AS what, 'pg_event_trigger'::regclass AS class, oid FROM pg_catalog.pg_event_trigger
      UNION ALL SELECT 'subscription ' || subname, 'pg_subscription'::regclass, oid FROM pg_catalog.pg_subscription
      WHERE subdbid = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())
      UNION ALL SELECT 'function ' || oid::regprocedure, 'pg_proc'::regclass, oid
      FROM pg_catalog.pg_proc WHERE pronamespace IN (SELECT oid FROM looked) AND oid >= ${firstOwnOid}::oid
      UNION ALL SELECT 'operator ' || oid::regoperator, 'pg_operator'::regclass, oid
      FROM pg_catalog.pg_operator WHERE oprnamespace IN (SELECT oid FROM looked) AND oid >= ${firstOwnOid}::oid
      UNION ALL SELECT 'cast from ' || format_type(castsource, NULL) || ' to ' || format_type(casttarget, NULL), 'pg_cast'::regclass, oid
      FROM pg_catalog.pg_cast WHERE oid >= ${firstOwnOid}::oid
      UNION ALL SELECT 'type ' || oid::regtype, 'pg_type'::regclass, oid
      FROM pg_catalog.pg_type WHERE typnamespace IN (SELECT oid FROM looked) AND typrelid = 0 AND typelem = 0
        AND oid >= ${firstOwnOid}::oid
      UNION ALL SELECT 'table ' || looked.name || '.' || relname, 'pg_class'::regclass, class.oid
      FROM pg_catalog.pg_class AS class JOIN looked ON looked.oid = relnamespace
      WHERE NOT looked.ours AND relkind NOT IN ('i', 'I', 't', 'c', 'S') AND class.oid >= ${firstOwnOid}::oid)
    SELECT what FROM object WHERE NOT EXISTS (
      SELECT FROM pg_catalog.pg_depend JOIN pg_catalog.pg_extension AS extension ON extension.oid = refobjid
      WHERE classid = object.class AND objid = object.oid AND deptype = 'e' AND extension.oid >= ${firstOwnOid}::oid
        AND (object.class <> 'pg_event_trigger'::regclass OR extname = 'citus'))
      AND what <> ALL(${trusted}::text[])
    ORDER BY what LIMIT 1`)
  return foreign && { what: foreign.what, expected: 'none', found: 'one that is not ours' }
}

/** Objects that PostgreSQL makes for itself have lower ones. */
const firstOwnOid = 16_384

/**
 * Finds a built-in object whose row was written after the cluster was made: the rows of its first databases are
 * younger than every row that initdb wrote. A change of rights writes a row, too; a function of PostgreSQL's own code
 * is passed over where that is visible.
 */
async function findReplaced(
  database: Database,
  { trusted }: ServerOptions,
): Promise<Difference | undefined> {
  const [replaced] = await database.query<{ what: string }>(sql`
    WITH built AS (
      SELECT 'function ' || fun.oid::regprocedure AS what, fun.oid, fun.xmin FROM pg_catalog.pg_proc AS fun
      JOIN pg_catalog.pg_language AS language ON language.oid = prolang
      LEFT JOIN pg_catalog.pg_init_privs AS privs ON objoid = fun.oid AND classoid = 'pg_proc'::regclass AND objsubid = 0
      WHERE NOT (lanname IN ('internal', 'c') AND proacl IS DISTINCT FROM initprivs)
      UNION ALL SELECT 'operator ' || oid::regoperator, oid, xmin FROM pg_catalog.pg_operator
      UNION ALL SELECT 'cast from ' || format_type(castsource, NULL) || ' to ' || format_type(casttarget, NULL), oid, xmin FROM pg_catalog.pg_cast
      UNION ALL SELECT 'type ' || oid::regtype, oid, xmin FROM pg_catalog.pg_type WHERE typacl IS NULL
      UNION ALL SELECT 'aggregate ' || aggfnoid::oid::regprocedure, aggfnoid, xmin FROM pg_catalog.pg_aggregate
      UNION ALL SELECT 'operator class ' || opcname, oid, xmin FROM pg_catalog.pg_opclass
      UNION ALL SELECT 'operator of a class ' || amopopr::regoperator, oid, xmin FROM pg_catalog.pg_amop
      UNION ALL SELECT 'function of a class ' || amproc::oid::regprocedure, oid, xmin FROM pg_catalog.pg_amproc)
    SELECT what FROM built WHERE oid < ${firstOwnOid}::oid AND xmin::text::int8 > (
      SELECT min(xmin::text::int8) FROM pg_catalog.pg_database WHERE xmin::text::int8 >= ${firstTransaction}::int8)
      AND what <> ALL(${trusted}::text[])
    ORDER BY what LIMIT 1`)
  return (
    replaced && {
      what: replaced.what,
      expected: 'as PostgreSQL made it',
      found: 'one that was changed',
    }
  )
}

/** Transactions of initdb that made the first rows have lower numbers. */
const firstTransaction = 3

/**
 * Finds a setting of our role or database that does more than tune. Those that every connection sets itself are
 * harmless, and so are deadlines and the disks of tables; those of an extension are its operator's choice.
 */
async function findSetting(
  database: Database,
  { trusted }: ServerOptions,
): Promise<Difference | undefined> {
  const pinned = Object.keys(pinnedSettings).map((name) => name.toLowerCase())
  const [found] = await database.query<{ what: string; value: string }>(sql`
    WITH given AS (
      SELECT 'setting ' || split_part(text, '=', 1) || ' of the role or database' AS what, split_part(text, '=', 1) AS name, substr(text, strpos(text, '=') + 1) AS value
      FROM pg_catalog.pg_db_role_setting, unnest(setconfig) AS text
      WHERE setdatabase IN (0, (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database()))
        AND setrole IN (0, (SELECT oid FROM pg_catalog.pg_roles WHERE rolname = current_user)))
    SELECT what, value FROM given LEFT JOIN pg_catalog.pg_settings AS known ON lower(known.name) = lower(given.name)
    WHERE lower(given.name) <> ALL(${pinned}::text[]) AND given.name !~ ${harmlessNames}
      AND coalesce(category, '') !~ ${tuningCategories} AND what <> ALL(${trusted}::text[])
    ORDER BY given.name LIMIT 1`)
  return found && { what: found.what, expected: 'none', found: found.value }
}

const harmlessNames = '_timeout$|_tablespaces?$|[.]'
const tuningCategories =
  '^(Autovacuum|Connections and Authentication|Query Tuning|Reporting and Logging|Resource Usage|Statistics|Vacuuming)'
