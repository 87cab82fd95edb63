import { makeInvalidFault } from '../../base/fault.ts'
import { makeUnknownMemberFault } from '../../base/known-members.ts'
import { extendPointer } from '../field-path.ts'
import type { ParameterValue } from '../parameter.ts'
import type { DeclaredParameter } from './declared-parameter.ts'
import { makeMatchBudget, readText, type TextPlace } from './read-argument-text.ts'

/** The parameters of a query string, as they stand there. */
export type SentTexts = Readonly<Record<string, string | readonly string[]>>

/** The arguments of a run: a value for every parameter but those that are left out. */
export type GivenArguments = ReadonlyMap<string, ParameterValue>

/**
 * Reads the values of the parameters: each is text that is read as its type, never anything else. Throws a 400 that
 * names the first parameter that is unknown (neither declared nor `others`), missing, repeated or not of its type.
 */
export function readArguments(
  declared: readonly DeclaredParameter[],
  sent: SentTexts,
  others: ReadonlySet<string>,
): GivenArguments {
  const names = new Set(declared.map(({ name }) => name))
  const unknown = Object.keys(sent).find((name) => !names.has(name) && !others.has(name))
  if (unknown !== undefined) throw makeUnknownMemberFault('/query', unknown, [...names, ...others])
  const given = new Map<string, ParameterValue>()
  const work = makeMatchBudget()
  for (const one of declared) {
    const text = Object.hasOwn(sent, one.name) ? sent[one.name] : undefined
    const pointer = extendPointer('/query', one.name)
    const value = readArgument(one, text, { pointer, work })
    if (value !== undefined) given.set(one.name, value)
  }
  return given
}

function readArgument(
  declared: DeclaredParameter,
  sent: string | readonly string[] | undefined,
  place: TextPlace,
): ParameterValue | undefined {
  const { pointer } = place
  if (sent === undefined) {
    if (declared.default !== undefined) return declared.default
    if (declared.required) throw makeInvalidFault(pointer, 'is missing')
    return undefined
  }
  if (!declared.isList) {
    if (typeof sent !== 'string') throw makeInvalidFault(pointer, 'is given more than once')
    return readText(sent, declared, place)
  }
  const texts = typeof sent === 'string' ? [sent] : sent
  if (texts.length > declared.maxItems)
    throw makeInvalidFault(pointer, `is given more than ${declared.maxItems} times`)
  return texts.map((text) => readText(text, declared, place))
}
