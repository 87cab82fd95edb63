import type { Node, SelectStmt, WindowDef } from 'libpg-query'
import type { Fault } from '../../base/fault.ts'
import { readNumberText } from '../../query/tree/make-expression.ts'
import { isQualified } from './print-names.ts'
import type { Json, ViewDefinition } from './view-definition.ts'

/** The context for translating the parts of a statement. */
export type TranslationContext = {
  readonly refuse: (location: number | undefined, problem: string) => Fault
  /** The named windows of this SELECT. */
  readonly windows: ReadonlyMap<string, WindowDef>
  readonly expression: (node: Node, given: TranslationContext) => Json
  readonly query: (select: SelectStmt, given: TranslationContext) => ViewDefinition
}

/** Returns a given name, or refuses it if no path of the grammar can have it. */
export function readName(given: TranslationContext, name: string, location?: number): string {
  if (name === '' || name === '*' || name.startsWith('$') || name.includes('.'))
    throw given.refuse(location, `the name ${name}, which no path of a view's definition can have`)
  return name
}

/** Returns the path of a dotted name. */
export function readPath(
  given: TranslationContext,
  names: readonly string[],
  location?: number,
): string {
  const path = names.map((name) => readName(given, name, location)).join('.')
  if (isQualified(path))
    throw given.refuse(location, `the name ${path}, which reads like app::name`)
  return path
}

/** Returns a number as JSON, as a string if JSON's numbers would lose digits. */
export function toNumberJson(text: string): Json {
  const exact = readNumberText(text) ?? text
  const number = Number(exact)
  return String(number) === exact ? number : { $number: exact }
}

/** Reads a whole number that is written out, also with a sign or a cast; null for NULL. */
export function readCount(
  given: TranslationContext,
  node: Node | undefined,
  location?: number,
): number | null {
  if (node === undefined) return null
  if ('TypeCast' in node) return readCount(given, node.TypeCast.arg, node.TypeCast.location)
  if ('A_Expr' in node && node.A_Expr.lexpr === undefined)
    return readCount(given, node.A_Expr.rexpr, node.A_Expr.location)
  if (!('A_Const' in node)) throw given.refuse(location, 'a number here that is not written out')
  const { isnull, ival, fval, sval } = node.A_Const
  return isnull ? null : Number(fval?.fval ?? sval?.sval ?? ival?.ival ?? 0)
}
