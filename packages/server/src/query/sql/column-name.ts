import type { Node, SelectStmt } from 'libpg-query'
import { listTexts } from './sql-reader.ts'

/** Returns the name of a column without AS: as in PostgreSQL by its field or function, else by its place. */
export function getColumnName(node: Node | undefined, place: number): string {
  if (node === undefined) return `column${place + 1}`
  if ('ColumnRef' in node) return listTexts(node.ColumnRef.fields).at(-1) ?? `column${place + 1}`
  if ('FuncCall' in node) return (listTexts(node.FuncCall.funcname).at(-1) ?? '').toLowerCase()
  if ('TypeCast' in node) {
    const { arg, typeName } = node.TypeCast
    const names = listTexts(typeName?.names)
    if (isFieldOfCollection(names)) return names.at(-1) ?? ''
    const inner = getColumnName(findCastValue(arg), place)
    return inner === `column${place + 1}` ? (names.at(-1) ?? inner).toLowerCase() : inner
  }
  if ('CaseExpr' in node) return 'case'
  if ('CoalesceExpr' in node) return 'coalesce'
  if ('MinMaxExpr' in node) return node.MinMaxExpr.op === 'IS_LEAST' ? 'least' : 'greatest'
  if ('SubLink' in node && node.SubLink.subLinkType === 'EXISTS_SUBLINK') return 'exists'
  if ('A_Expr' in node && node.A_Expr.kind === 'AEXPR_NULLIF') return 'nullif'
  return `column${place + 1}`
}

/**
 * Names the first columns of a query whose names do not count, as others stand behind an alias, `t (a, b)`, or before
 * UNION: of two without AS that would have one name the second is called by its place.
 */
export function renameTwins(select: SelectStmt, count: number): SelectStmt {
  if (select.larg !== undefined) return { ...select, larg: renameTwins(select.larg, count) }
  const names = new Set<string>()
  const rename = (node: Node, place: number): Node => {
    if (!('ResTarget' in node)) return node
    const { name, val } = node.ResTarget
    const own = name ?? getColumnName(val, place)
    const isTwin = name === undefined && place < count && names.has(own)
    const called = isTwin ? `column${place + 1}` : own
    names.add(called)
    return isTwin ? { ResTarget: { ...node.ResTarget, name: called } } : node
  }
  const targets = select.targetList ?? []
  return targets.some(isStarTarget) ? select : { ...select, targetList: targets.map(rename) }
}

function isStarTarget(node: Node): boolean {
  return 'ResTarget' in node && node.ResTarget.val !== undefined && isStar(node.ResTarget.val)
}

/** Returns true of `*` and `name.*`. */
export function isStar(node: Node): boolean {
  return 'ColumnRef' in node && (node.ColumnRef.fields ?? []).some((field) => 'A_Star' in field)
}

/** Finds what a chain of casts begins with: only the last of them can give a column its name. */
function findCastValue(node: Node | undefined): Node | undefined {
  if (node === undefined || !('TypeCast' in node)) return node
  const { arg, typeName } = node.TypeCast
  return isFieldOfCollection(listTexts(typeName?.names)) ? node : findCastValue(arg)
}

/** Returns true of `app::collection.field`, which the parser reads as a cast to a type of a schema. */
function isFieldOfCollection(names: readonly string[]): boolean {
  return names[0] !== 'pg_catalog' && names.length > 1
}
