import type { Queryable } from '../../database/database.ts'
import { sql } from '../../database/sql.ts'
import { fieldColumnPrefix } from '../../query/field-column.ts'

type Difference = Readonly<Record<string, unknown>>

/** One property of a relation: its kind, a column, a constraint, an index, a trigger or the like. */
export type Part = { readonly relation: string; readonly part: string; readonly text: string }

/**
 * Reads all that decides what a schema's tables hold and how they answer. Settings that only tune (options,
 * statistics, rights) are left out. The schema's own name does not occur, so that two schemas can be compared.
 */
export async function readStructure(database: Queryable, schema: string): Promise<Part[]> {
  return database.query<Part>(sql`
    WITH class AS (
      SELECT class.relname::text AS relation, class.* FROM pg_catalog.pg_class AS class
      JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = class.relnamespace
      WHERE namespace.nspname = ${schema})
    SELECT relation, 'kind' AS part, concat_ws(', ',
      CASE relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'S' THEN 'sequence'
        WHEN 'f' THEN 'foreign table' WHEN 'p' THEN 'partitioned table' ELSE 'relation of kind ' || relkind::text END,
      CASE relpersistence WHEN 'u' THEN 'unlogged' END, CASE WHEN relispartition THEN 'a partition' END,
      CASE WHEN relrowsecurity THEN 'row security' END, CASE WHEN relforcerowsecurity THEN 'forced row security' END) AS text
    FROM class WHERE relkind NOT IN ('i', 'I', 't')
    UNION ALL SELECT relation, 'column ' || attname, concat_ws(' ',
      CASE WHEN NOT starts_with(attname::text, ${fieldColumnPrefix})
        THEN row_number() OVER (PARTITION BY attrelid, starts_with(attname::text, ${fieldColumnPrefix}) ORDER BY attnum) || '.' END,
      format_type(atttypid, atttypmod),
      CASE WHEN attnotnull THEN 'NOT NULL' END, 'DEFAULT ' || pg_get_expr(adbin, adrelid),
      'identity ' || nullif(attidentity::text, ''), 'generated ' || nullif(attgenerated::text, ''),
      'COLLATE ' || collname, 'storage ' || attstorage::text)
    FROM class JOIN pg_catalog.pg_attribute AS attribute ON attrelid = class.oid AND attnum > 0 AND NOT attisdropped
    LEFT JOIN pg_catalog.pg_attrdef ON adrelid = attrelid AND adnum = attnum
    LEFT JOIN pg_catalog.pg_collation AS coll ON coll.oid = attcollation
    WHERE relkind NOT IN ('i', 'I', 't', 'S')
    UNION ALL SELECT relation, 'constraint ' || conname, concat_ws(' ', pg_get_constraintdef(con.oid), CASE WHEN NOT convalidated THEN 'NOT VALID' END)
    FROM class JOIN pg_catalog.pg_constraint AS con ON conrelid = class.oid WHERE contype <> 'n'
    UNION ALL SELECT relation, 'index ' || named.relname, concat_ws(' ',
      replace(pg_get_indexdef(indexrelid), ${`${schema}.`}, ''),
      CASE WHEN NOT (indisvalid AND indisready AND indislive) THEN ${broken}::text END)
    FROM class JOIN pg_catalog.pg_index ON indrelid = class.oid
    JOIN pg_catalog.pg_class AS named ON named.oid = indexrelid WHERE class.relkind <> 't'
    UNION ALL SELECT relation, 'trigger ' || tgname, pg_get_triggerdef(trigger.oid)
    FROM class JOIN pg_catalog.pg_trigger AS trigger ON tgrelid = class.oid WHERE NOT tgisinternal
    UNION ALL SELECT relation, 'rule ' || rulename, pg_get_ruledef(rule.oid)
    FROM class JOIN pg_catalog.pg_rewrite AS rule ON ev_class = class.oid WHERE rulename <> '_RETURN'
    UNION ALL SELECT relation, 'policy ' || polname, concat_ws(' ', pg_get_expr(polqual, polrelid), pg_get_expr(polwithcheck, polrelid))
    FROM class JOIN pg_catalog.pg_policy ON polrelid = class.oid
    UNION ALL SELECT relation, 'inherits ' || inhseqno, inhparent::regclass::text
    FROM class JOIN pg_catalog.pg_inherits ON inhrelid = class.oid WHERE relkind NOT IN ('i', 'I')
    UNION ALL SELECT relation, 'inherited by', inhrelid::regclass::text
    FROM class JOIN pg_catalog.pg_inherits ON inhparent = class.oid WHERE relkind NOT IN ('i', 'I')
    UNION ALL SELECT relation, 'counts', concat_ws(' ', format_type(seqtypid, NULL), seqstart, seqincrement, seqmin, seqmax, seqcycle)
    FROM class JOIN pg_catalog.pg_sequence ON seqrelid = class.oid
    ORDER BY relation, part`)
}

const broken = '(broken)'

/** The first part in which two schemas differ; `optional` are parts that may be there and must then be so. */
export function compareStructure(
  stored: readonly Part[],
  expected: readonly Part[],
  optional: readonly Part[] = [],
): Difference | undefined {
  const found = new Map(stored.map((part) => [getPartName(part), part]))
  const known = new Map(expected.map((part) => [getPartName(part), part]))
  const allowed = new Map(optional.map((part) => [getPartName(part), part]))
  for (const part of expected) {
    const other = found.get(getPartName(part))
    if (isFieldColumn(part) && (other === undefined || other.text === getWrittenForm(part)))
      continue
    if (other?.text !== part.text) return buildDifference(part, part.text, other?.text)
  }
  for (const part of stored) {
    if (known.has(getPartName(part)) || isBrokenOff(part)) continue
    const may = allowed.get(getPartName(part))
    if (may?.text !== part.text) return buildDifference(part, may?.text, part.text)
  }
  return undefined
}

/** A table whose columns are still to be added has none; the rows say whether one that is written is right. */
function isFieldColumn({ part }: Part): boolean {
  return part.startsWith(`column ${fieldColumnPrefix}`)
}

/** The column of a field that was declared when the table was large: the program writes what the database would make. */
function getWrittenForm({ text }: Part): string {
  return text.replace(/ DEFAULT .* generated s/s, '')
}

/** An interrupted concurrent index build leaves such an index; the next build removes it. */
function isBrokenOff({ part, text }: Part): boolean {
  return /^index i_\d/.test(part) && text.endsWith(broken)
}

function buildDifference({ relation, part }: Part, expected = 'none', found = 'none'): Difference {
  return { what: `table ${relation}`, part, expected, found }
}

function getPartName({ relation, part }: Part): string {
  return `${relation} ${part}`
}
