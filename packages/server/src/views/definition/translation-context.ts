import type { Node, SelectStmt, WindowDef } from 'libpg-query'
import type { Fault } from '../../base/fault.ts'
import { numberText } from '../../query/tree/make-expression.ts'
import { isQualified } from './print-names.ts'
import type { Json, ViewDefinition } from './view-definition.ts'

/** What the translation of a statement's parts has at hand. */
export type Given = {
  readonly refuse: (location: number | undefined, problem: string) => Fault
  /** Windows with a name, of this SELECT. */
  readonly windows: ReadonlyMap<string, WindowDef>
  readonly expression: (node: Node, given: Given) => Json
  readonly query: (select: SelectStmt, given: Given) => ViewDefinition
}

/** A name that is given to something, if a path of the grammar can have it. */
export function nameIn(given: Given, name: string, location?: number): string {
  if (name === '' || name === '*' || name.startsWith('$') || name.includes('.'))
    throw given.refuse(location, `the name ${name}, which no path of a view's definition can have`)
  return name
}

/** The path of a dotted name. */
export function pathIn(given: Given, names: readonly string[], location?: number): string {
  const path = names.map((name) => nameIn(given, name, location)).join('.')
  if (isQualified(path))
    throw given.refuse(location, `the name ${path}, which reads like app::name`)
  return path
}

/** A number, as a string where JSON's numbers would not keep its digits. */
export function jsonOfNumber(text: string): Json {
  const exact = numberText(text) ?? text
  const number = Number(exact)
  return String(number) === exact ? number : { $number: exact }
}

/** A whole number that is written out, be it with a sign or a cast; null for NULL. */
export function countIn(given: Given, node: Node | undefined, location?: number): number | null {
  if (node === undefined) return null
  if ('TypeCast' in node) return countIn(given, node.TypeCast.arg, node.TypeCast.location)
  if ('A_Expr' in node && node.A_Expr.lexpr === undefined)
    return countIn(given, node.A_Expr.rexpr, node.A_Expr.location)
  if (!('A_Const' in node)) throw given.refuse(location, 'a number here that is not written out')
  const { isnull, ival, fval, sval } = node.A_Const
  return isnull ? null : Number(fval?.fval ?? sval?.sval ?? ival?.ival ?? 0)
}
