import type { Node } from 'libpg-query'

/** The words of SQL for parts of the parser's tree, where its own name says something else. */
const words: ReadonlyMap<string, string> = new Map([
  ['RowExpr', 'a row of values (a, b)'],
  ['A_ArrayExpr', 'ARRAY[…]'],
  ['A_Indirection', 'an element or a part in brackets, tags[1] or (row).name'],
  ['CoalesceExpr', 'COALESCE'],
  ['MinMaxExpr', 'GREATEST or LEAST'],
  ['SQLValueFunction', 'CURRENT_DATE or one of its kind'],
  ['CollateClause', 'COLLATE'],
  ['GroupingFunc', 'GROUPING'],
  ['XmlExpr', 'XML'],
  ['XmlSerialize', 'XMLSERIALIZE'],
  ['JsonObjectConstructor', 'JSON_OBJECT'],
  ['JsonArrayConstructor', 'JSON_ARRAY'],
  ['JsonArrayQueryConstructor', 'JSON_ARRAY'],
  ['JsonObjectAgg', 'JSON_OBJECTAGG'],
  ['JsonArrayAgg', 'JSON_ARRAYAGG'],
  ['JsonParseExpr', 'JSON(…)'],
  ['JsonScalarExpr', 'JSON_SCALAR'],
  ['JsonSerializeExpr', 'JSON_SERIALIZE'],
  ['JsonFuncExpr', 'JSON_VALUE, JSON_QUERY or JSON_EXISTS'],
  ['JsonIsPredicate', 'IS JSON'],
  ['NamedArgExpr', 'an argument with a name'],
  ['SetToDefault', 'DEFAULT'],
  ['CurrentOfExpr', 'CURRENT OF'],
  ['MergeSupportFunc', 'MERGE_ACTION'],
  ['RangeTableSample', 'TABLESAMPLE'],
  ['RangeTableFunc', 'XMLTABLE'],
  ['JsonTable', 'JSON_TABLE'],
  ['VariableSetStmt', 'SET or RESET statement'],
  ['VariableShowStmt', 'SHOW statement'],
  ['TransactionStmt', 'BEGIN, COMMIT or ROLLBACK statement'],
  ['CheckPointStmt', 'CHECKPOINT statement'],
  ['CreateStmt', 'CREATE TABLE statement'],
  ['ViewStmt', 'CREATE VIEW statement'],
  ['RenameStmt', 'ALTER … RENAME statement'],
  ['IndexStmt', 'CREATE INDEX statement'],
])

/** The ways to write what is not possible as it is written. */
const ways: ReadonlyMap<string, string> = new Map([
  ['A_Indirection', 'write tags -> 1'],
  ['JsonFuncExpr', "write a ->> 'name', or a ? 'name' for whether it is there"],
  ['JsonTable', "write jsonb_array_elements(a #> '{b,c}') AS item"],
  ['JsonObjectConstructor', "write jsonb_build_object('name', value)"],
  ['JsonArrayConstructor', 'write jsonb_build_array(a, b)'],
  ['JsonArrayQueryConstructor', 'write ARRAY(SELECT …)'],
  ['JsonObjectAgg', 'write jsonb_object_agg(name, value)'],
  ['JsonArrayAgg', 'write jsonb_agg(a)'],
  ['RangeTableSample', "write ORDER BY md5(concat(id, 'seed')) LIMIT 100"],
  ['RowExpr', 'compare it, (a, b) = (1, 2), or name each value'],
  ['A_ArrayExpr', 'write jsonb_build_array(…)'],
])

/** Describes a part of the parser's tree that is not possible, with another way if there is one. */
export function describeImpossible(node: Node | undefined): string {
  const way = ways.get(Object.keys(node ?? {})[0] ?? '')
  return `${describeConstruct(node)}, which is not possible${way === undefined ? '' : `; ${way}`}`
}

/** Describes a part of the parser's tree in the words of SQL: `VacuumStmt` is "a VACUUM statement". */
export function describeConstruct(node: Node | undefined): string {
  const [name = 'nothing'] = Object.keys(node ?? {})
  const known = words.get(name)
  if (known !== undefined) return known
  const parts = name
    .replace(/^A_/, '')
    .replace(/Stmt$/, '')
    .replaceAll(/([a-z])([A-Z])/g, '$1 $2')
  return name.endsWith('Stmt')
    ? `${/^[AEIOU]/.test(parts) ? 'an' : 'a'} ${parts.toUpperCase()} statement`
    : parts.toLowerCase()
}
