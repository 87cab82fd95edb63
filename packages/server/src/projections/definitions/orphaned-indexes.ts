import { type SqlStatement, sql } from '../../database/sql.ts'

/**
 * Finds the collection in the text of an index as the service writes it. A quote inside of a value has a backslash before it,
 * so the first member of that name is the index's own. The text is not parsed: PostgreSQL takes not all that JSON allows.
 */
const collectionPattern = '^[{]"id":"[^"]*?","number":[0-9]+?,"name":".*?","collection":"([^"]*?)"'

/** Builds the statement for all applications: the rows of indexes whose collection or view was deleted before. */
export function buildOrphanedIndexRemoval(): SqlStatement[] {
  return [
    sql`DO $$ DECLARE one name; BEGIN
      FOR one IN SELECT nspname FROM pg_catalog.pg_namespace AS namespace
        JOIN pg_catalog.pg_class AS class ON class.relnamespace = namespace.oid
        WHERE relname = 'definition' AND relkind = 'r' AND nspname LIKE 'app\\_%'
      LOOP
        EXECUTE format('DELETE FROM %1$I.definition WHERE kind = ''index'' AND substring(body FROM %2$L) NOT IN (
          SELECT id FROM %1$I.definition WHERE kind IN (''collection'', ''view''))', one, '${sql.compiled(collectionPattern, [])}');
      END LOOP; END $$`,
  ]
}
